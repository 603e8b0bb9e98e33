"""Maintenance of a table that has changed since it was loaded: each call works on the newest version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from icefield import Table, open_table
from icefield.errors import NoSuchSnapshot, NoSuchTable
from icefield_maintenance import MaintenanceTable
from tables import again, meddled, memory_catalog, new_table, orphans, rows, state_of, stored_files

ALL = 2**60
MARKED = {f"write.{change}.mode": "merge-on-read" for change in ("delete", "update", "merge")}

COUNTS: dict[str, Callable[[MaintenanceTable, bool], tuple[int, ...]]] = {
    # what a call, or a dry run of it, says that it took out of the table
    "data files": lambda maintenance, dry: (maintenance.rewrite_data_files(dry_run=dry).rewritten_data_files,),
    "manifests": lambda maintenance, dry: (maintenance.rewrite_manifests(dry_run=dry).rewritten_manifests,),
    "position deletes": lambda maintenance, dry: (
        maintenance.rewrite_position_delete_files(dry_run=dry).rewritten_position_delete_files,
    ),
    "equality deletes": lambda maintenance, dry: (
        maintenance.convert_equality_deletes(dry_run=dry).converted_equality_delete_files,
    ),
    "dangling deletes": lambda maintenance, dry: (
        maintenance.remove_dangling_deletes(dry_run=dry).removed_equality_delete_files,
    ),
    "snapshots": lambda maintenance, dry: _counts(maintenance.expire_snapshots(ALL, dry_run=dry)),
}
CALLS = pytest.mark.parametrize("call", COUNTS)
STATISTICS = pytest.mark.parametrize("kind", ["compute_table_stats", "compute_partition_stats"])


def _counts(result: Any) -> tuple[int, ...]:
    return len(result.snapshot_ids), result.data_files, result.manifest_lists, result.files


def lived_in(times: int = 5) -> Table:
    table = new_table(["kind"], **{"format-version": "2", "commit.manifest-merge.enabled": "false", **MARKED})
    for number in range(times):
        table.append(rows([number, number + 10]))
        table.delete(f"id = {number}")
        table.append(rows([77], "b"))
        table.delete_by_equality(rows([number + 10]).select(["id", "kind"]), ["id", "kind"])
    table.overwrite(rows([78], "b"), "kind = 'b'")
    return table


@CALLS
def test_held_maintenance_sees_what_it_has_done(call: str) -> None:
    count, maintenance = COUNTS[call], lived_in().maintenance
    foreseen = count(maintenance, True)
    assert count(maintenance, False) == foreseen
    after = count(maintenance, True)
    assert after != foreseen or call == "dangling deletes"
    assert count(maintenance, False) == after


@pytest.mark.slow
@CALLS
def test_a_dry_run_foresees_the_run_where_others_have_changed_the_table(call: str) -> None:
    table = lived_in()
    other = again(table)
    for _ in range(3):
        other.append(rows([5, 6]))
        other.delete("id = 5")
        other.delete_by_equality(rows([6]).select(["id", "kind"]), ["id", "kind"])
    other.delete("kind = 'a'")
    foreseen = COUNTS[call](table.maintenance, True)
    assert COUNTS[call](table.maintenance, False) == foreseen


@CALLS
def test_a_dry_run_leaves_the_table_at_its_version(call: str) -> None:
    table = lived_in(1)
    again(table).append(rows([5]))
    before = state_of(table)
    COUNTS[call](table.maintenance, True)
    assert state_of(table) is before
    table.maintenance.rewrite_data_files(rewrite_all=True)
    assert state_of(table) == state_of(again(table).refresh())


@STATISTICS
def test_held_maintenance_computes_the_statistics_of_the_snapshot_that_is_current(kind: str) -> None:
    table = new_table(["kind"])
    table.append(rows([1]))
    compute = getattr(table.maintenance, kind)
    for number in range(2):
        (table if number else again(table)).append(rows([number]))
        made = compute()
        snapshot = table.refresh().current_snapshot()
        assert snapshot is not None
        assert made.snapshot_id == snapshot.snapshot_id


@STATISTICS
def test_statistics_that_have_expired_are_not_given_for_those_of_the_table(kind: str) -> None:
    table = new_table(["kind"])
    table.append(rows([1]))
    getattr(table.maintenance, kind)()
    first = table.current_snapshot()
    assert first is not None
    other = again(table)
    other.append(rows([2]))
    other.maintenance.expire_snapshots(ALL)
    with pytest.raises(NoSuchSnapshot, match=f"{first.snapshot_id}"):
        getattr(again(table).maintenance, kind)(snapshot_id=first.snapshot_id)
    made = getattr(table.maintenance, kind)()
    assert table.snapshot_by_id(made.snapshot_id) == other.current_snapshot()
    assert table.io.exists(made.statistics_path)


@pytest.mark.parametrize("clean_files", [True, False])
@STATISTICS
def test_statistics_whose_snapshot_expires_before_their_commit_are_those_of_the_next(
    kind: str, clean_files: bool
) -> None:
    table = new_table(["kind"])
    table.append(rows([1]))

    def replaced(other: Table) -> None:
        other.append(rows([2]))
        other.maintenance.expire_snapshots(ALL, clean_files=clean_files)

    beside = meddled(table, replaced, replaced)
    made = getattr(beside.maintenance, kind)()
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    assert made.snapshot_id == snapshot.snapshot_id
    assert made in (*table.metadata.statistics, *table.metadata.partition_statistics)
    assert not clean_files or orphans(table) == set()


@STATISTICS
def test_statistics_of_a_named_snapshot_that_expires_are_refused_and_leave_no_file(kind: str) -> None:
    table = new_table(["kind"])
    table.append(rows([1]))
    first = table.current_snapshot()
    assert first is not None
    before: set[str] = set()

    def replaced(other: Table) -> None:
        other.append(rows([2]))
        other.maintenance.expire_snapshots(ALL, clean_files=False)
        before.update(stored_files(table))

    beside = meddled(table, replaced)
    with pytest.raises(NoSuchSnapshot, match=f"no snapshot {first.snapshot_id}"):
        getattr(beside.maintenance, kind)(snapshot_id=first.snapshot_id)
    assert {each for each in stored_files(table) - before if "stats" in each} == set()


def test_orphans_are_those_of_the_newest_version() -> None:
    table = new_table()
    maintenance = table.maintenance
    again(table).append(rows([1]))
    before = state_of(table)
    assert maintenance.remove_orphan_files(ALL, allow_recent=True).files == 0
    assert state_of(table) is before


def test_a_copy_is_one_of_the_newest_version() -> None:
    table = new_table()
    maintenance, location = table.maintenance, table.location()
    other = again(table)
    other.append(rows([1]))
    copied = maintenance.rewrite_table_path(location, "memory://elsewhere/t", staging_location=f"{location}-copied")
    assert copied.latest_version == other.metadata_location.rpartition("/")[2]


def test_a_table_without_a_catalog_is_looked_at_as_it_was_opened() -> None:
    table = lived_in()
    opened = open_table(table.metadata_location)
    table.maintenance.rewrite_data_files()
    assert opened.maintenance.rewrite_data_files(dry_run=True).rewritten_data_files > 0


def test_a_dry_run_on_a_table_that_was_dropped_says_so() -> None:
    catalog = memory_catalog()
    table = new_table(catalog=catalog)
    catalog.drop_table("db.t")
    with pytest.raises(NoSuchTable):
        table.maintenance.rewrite_manifests(dry_run=True)
