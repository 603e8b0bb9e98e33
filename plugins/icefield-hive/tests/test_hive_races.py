"""Many processes commit to a table of a Hive Metastore; and what happens without its lock and its condition."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import many_writers
import pyarrow as pa
import pytest
from icefield import Catalog, Table, load_catalog
from icefield.abc import Proposal
from icefield_hive.strategy import KEEP_STATISTICS, HiveStrategy
from many_writers import COMMITS, PROCESSES


def properties_of(hive: str, folder: Path) -> dict[str, str]:
    return {"type": "hive", "uri": hive, "warehouse": f"file://{folder}/warehouse"}


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.spec("COMMIT-01", "COMMIT-03", "COMMIT-07", "COMMIT-13", "FS-09", "FS-10", "FS-13", "META-01")
def test_no_commit_of_many_processes_is_lost(hive: str, tmp_path: Path) -> None:
    table, ended = many_writers.race(properties_of(hive, tmp_path), PROCESSES, COMMITS)
    assert ended == [0] * PROCESSES
    assert many_writers.lost(table, PROCESSES, COMMITS) == set()
    check_history(table, PROCESSES * COMMITS)


def check_history(table: Table, snapshots: int) -> None:
    """One line of snapshots; a metadata file for each, and no file missing or left over."""
    found = table.snapshots()
    assert [snapshot.sequence_number for snapshot in found] == list(range(1, snapshots + 1))
    parents = [None, *(snapshot.snapshot_id for snapshot in found[:-1])]
    assert [snapshot.parent_snapshot_id for snapshot in found] == parents
    stored = {info.location for info in table.io.list_files(table.location())}
    versions = sorted(int(at.rpartition("/")[2][:5]) for at in stored if at.endswith(".metadata.json"))
    assert versions == list(range(snapshots + 1))
    data = {at for at in stored if "/data/" in at}
    assert data == set(table.inspect.files().column("file_path").to_pylist())


@pytest.fixture
def catalog(hive: str, tmp_path: Path) -> Catalog:
    return load_catalog("test", **properties_of(hive, tmp_path))


@pytest.mark.spec("COMMIT-01")
def test_looking_first_and_altering_then_loses_updates(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: what the lock and the condition are there for."""

    def plain(self: HiveStrategy, old: str | None, new: str, proposal: Proposal) -> bool:
        class NoLock:
            def ensure_held(self) -> None:
                barrier()

        lock: Any = NoLock()
        return self._update(lock, str(old), new, proposal) if old else self._create(lock, new, proposal)

    schema = pa.schema([("n", pa.int64())])
    space = f"r{uuid4().hex[:12]}"
    catalog.create_namespace(space)
    catalog.create_table(f"{space}.t", schema)
    one, two = (catalog.load_table(f"{space}.t") for _ in range(2))
    waiting: list[Any] = [lambda: two.append(pa.table({"n": [2]}, schema=schema))]

    def barrier() -> None:
        if waiting:  # between the look and the change another commits
            waiting.pop()()

    alter = HiveStrategy._alter
    monkeypatch.setattr(HiveStrategy, "swap_pointer", plain)
    monkeypatch.setattr(HiveStrategy, "_alter", lambda self, record, _: alter(self, record, KEEP_STATISTICS))
    one.append(pa.table({"n": [1]}, schema=schema))
    assert two.refresh().scan().to_arrow().column("n").to_pylist() == [1], "an acknowledged update should be lost"

    monkeypatch.setattr(HiveStrategy, "_alter", alter)  # with the condition it is not
    waiting.append(lambda: two.append(pa.table({"n": [4]}, schema=schema)))
    one.append(pa.table({"n": [3]}, schema=schema))
    assert sorted(one.refresh().scan().to_arrow().column("n").to_pylist()) == [1, 3, 4]
