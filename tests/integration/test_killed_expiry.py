"""A process is killed at every step of an expiry: no kept snapshot loses a row, and the next run finishes the work."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from catalogs import properties_of
from census import present, referenced
from icefield import Table, load_catalog
from icefield_maintenance.doctor import Repair, repair_table
from killing import CHANGING, dies_at
from pyiceberg.table import StaticTable

ROWS = pa.table({"id": pa.array(range(4), pa.int64()), "part": ["a", "b"] * 2})
ALL = 2**60
STRIDE = 1 if os.environ.get("ICEFIELD_SOAK") else 17
"""Every step is walked by `make soak`."""


def opened(given: dict[str, str]) -> Table:
    return load_catalog("test", **given).load_table("db.t")


def made(given: dict[str, str]) -> Table:
    """A table with a tag on an old snapshot, files that nothing needs any more, and merged manifests."""
    catalog = load_catalog("test", **given)
    catalog.create_namespace("db")
    properties = {
        "commit.manifest.min-count-to-merge": "2",
        "file.sync": "false",
        "history.expire.max-snapshot-age-ms": "1",
    }
    table = catalog.create_table("db.t", ROWS.schema, partition_spec=["part"], properties=properties)
    table.append(ROWS)
    table.manage_snapshots().create_tag(table.snapshots()[0].snapshot_id, "first").commit()
    return table


def aged(table: Table) -> Table:
    """Add two snapshots: an append, and an overwrite of the partition ``a``."""
    table.append(ROWS)
    table.overwrite(ROWS, "part = 'a'")
    return table


def expire(table: Table) -> None:
    table.maintenance.expire_snapshots(ALL)


def repair(table: Table) -> None:
    """Expire snapshots through a repair, as ``icefield doctor --repair expire-snapshots`` does."""
    time.sleep(0.002)  # after which every snapshot is older than the table keeps it
    repair_table(table, [Repair.EXPIRE_SNAPSHOTS], dry_run=False)


def shown(table: Table) -> tuple[list[int], list[int]]:
    now, tagged = table.scan().to_arrow(), table.scan(ref="first").to_arrow()
    return sorted(now["id"].to_pylist()), sorted(tagged["id"].to_pylist())


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.spec("REF-09", "SNAP-18")
@pytest.mark.parametrize("kind", ["create", "sql"])
@pytest.mark.parametrize(("run", "counted"), [(expire, None), (repair, CHANGING)])
def test_whatever_step_dies_the_next_run_finishes(
    kind: str, run: Callable[[Table], None], counted: frozenset[str] | None, tmp_path: Path
) -> None:
    given = properties_of(kind, tmp_path)
    made(given)
    seen: set[int] = set()
    for step in range(1, 500, STRIDE):
        table = aged(opened(given))
        before, count = shown(table), len(table.snapshots())
        died = dies_at(step, given, run, counted=counted)
        table = opened(given)
        assert shown(table) == before, f"rows are lost after step {step}"
        assert referenced(table) <= present(table)
        seen.add(len(table.snapshots()) - count)
        if step % 2 == 0:  # others commit between the runs
            table.append(ROWS.slice(0, 1))
            before = shown(table)
        run(table)
        assert shown(table) == before
        left = present(table) - referenced(table)
        # Unpublished files of a dead process are left to orphan removal, because no snapshot ever named them.
        assert not {name for name in left if name.endswith((".parquet", ".avro"))}, f"left after step {step}"
        if not died:
            break
    else:
        pytest.fail("expiry has more steps than the harness walks")
    assert len(seen) > 1, "the harness never met the state before the commit, or never that after it"
    assert step > STRIDE
    peer = StaticTable.from_metadata(table.metadata_location)
    assert sorted(peer.scan().to_arrow()["id"].to_pylist()) == before[0]
    assert sorted(peer.scan(snapshot_id=table.refs()["first"].snapshot_id).to_arrow()["id"].to_pylist()) == before[1]
