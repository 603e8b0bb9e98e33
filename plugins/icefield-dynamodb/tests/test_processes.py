"""Many processes commit under the lock, with each fence: none is lost."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from forked import forking
from icefield import Catalog, LocalFileSystem, load_catalog

PROCESSES, COMMITS = (8, 20) if os.environ.get("ICEFIELD_SOAK") else (4, 5)
SCHEMA = pa.schema([("writer", pa.int64()), ("number", pa.int64())])
RETRIES = {
    "commit.retry.num-retries": "1000",
    "commit.retry.min-wait-ms": "10",
    "commit.retry.max-wait-ms": "2000",
    "commit.retry.total-timeout-ms": "3600000",
}


def open_catalog(folder: str, properties: dict[str, str], fence: bool) -> Catalog:
    if not fence:
        LocalFileSystem.abilities = frozenset(a for a in LocalFileSystem.abilities if a.name == "LIST")
    return load_catalog(
        "x", type="directory", warehouse=f"file://{folder}/warehouse", commit="dynamodb-lock", **properties
    )


def append_many(folder: str, properties: dict[str, str], fence: bool, writer: int) -> None:
    table = open_catalog(folder, properties, fence).load_table("db.t")
    for number in range(COMMITS):
        table.append(pa.table({"writer": [writer], "number": [number]}, schema=SCHEMA))


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.spec("COMMIT-01", "COMMIT-03", "FS-09")
@pytest.mark.parametrize("fence", [True, False], ids=["fenced-by-the-store", "decided-by-items"])
def test_no_commit_of_many_processes_is_lost(
    fence: bool, tmp_path: Path, lock_properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalFileSystem, "abilities", LocalFileSystem.abilities)  # put back afterwards
    properties = {**lock_properties, "lock.heartbeat-timeout-ms": "5000", "lock.heartbeat-interval-ms": "1000"}
    catalog = open_catalog(str(tmp_path), properties, fence)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA, properties=RETRIES)
    context = forking("botocore.session", "botocore.client")
    writers = [
        context.Process(target=append_many, args=(str(tmp_path), properties, fence, number))
        for number in range(PROCESSES)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * PROCESSES
    table = catalog.load_table("db.t")
    rows = table.scan().to_arrow().to_pylist()
    assert sorted((row["writer"], row["number"]) for row in rows) == [
        (writer, number) for writer in range(PROCESSES) for number in range(COMMITS)
    ]
    snapshots = table.snapshots()
    assert [one.sequence_number for one in snapshots] == list(range(1, PROCESSES * COMMITS + 1))
    assert [one.parent_snapshot_id for one in snapshots[1:]] == [one.snapshot_id for one in snapshots[:-1]]
