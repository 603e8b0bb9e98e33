"""Upkeep that reads a version of a table, which others expire before it is read: it reads the newest one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from icefield.catalog import Table
from icefield.manifest import clear_caches
from tables import memory_catalog, new_table, rows

WORKS: dict[str, Callable[[Table], Any]] = {
    "rewrite_data_files": lambda table: table.maintenance.rewrite_data_files(rewrite_all=True, dry_run=True).groups,
    "rewrite_manifests": lambda table: table.maintenance.rewrite_manifests(dry_run=True),
    "rewrite_position_delete_files": lambda table: table.maintenance.rewrite_position_delete_files(dry_run=True),
    "remove_dangling_deletes": lambda table: table.maintenance.remove_dangling_deletes(dry_run=True),
    "compute_partition_stats": lambda table: table.maintenance.compute_partition_stats(),
    "compute_table_stats": lambda table: table.maintenance.compute_table_stats(["id"]),
    "rewrite_table_path": lambda table: table.maintenance.rewrite_table_path(
        table.metadata.location, "memory://elsewhere/t"
    ),
}


@pytest.mark.parametrize("work", WORKS.values(), ids=WORKS.keys())
def test_upkeep_of_a_version_that_expired_is_that_of_the_newest(work: Callable[[Table], Any]):
    catalog = memory_catalog()
    stale = new_table(["kind"], catalog=catalog)
    for number in range(4):
        stale.append(rows([number]))
    other = catalog.load_table(stale.name())
    other.overwrite(rows([10, 11]))
    expired = stale.metadata.current_snapshot_id
    other.maintenance.expire_snapshots(older_than=other.metadata.current_snapshot().timestamp_ms, retain_last=1)
    clear_caches()  # else what was read before still answers
    assert work(stale) is not None
    now = catalog.load_table(stale.name()).metadata
    assert expired not in {each.snapshot_id for each in now.snapshots}
    statistics = [*now.statistics, *now.partition_statistics]
    assert {each.snapshot_id for each in statistics} <= {now.current_snapshot_id}
