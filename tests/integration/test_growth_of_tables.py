"""Twice the snapshots, branches, partitions or older versions take about twice the CPU time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import icefield
import pyarrow as pa
import pytest
from growth import MOST_GROWTH, Work, growth
from icefield.catalog import Table
from icefield.metadata import (
    MetadataLogEntry,
    Snapshot,
    TableMetadata,
    TableUpdate,
    apply_updates,
    decode_metadata,
    encode_metadata,
)
from icefield.metadata.refs import MAIN_BRANCH, branch
from icefield.metadata.updates.snapshots import AddSnapshot, RemoveSnapshots, SetSnapshotRef
from tables import new_table

pytestmark = pytest.mark.slow

EVER = 2**60
COLUMNS = pa.schema([("id", pa.int64()), ("key", pa.int64())])
ROW = pa.table({"id": [1], "key": [1]})


# Metadata alone.


def snapshot(number: int, metadata: TableMetadata) -> Snapshot:
    return Snapshot(
        snapshot_id=number,
        parent_snapshot_id=number - 1 if number > 1 else None,
        sequence_number=number,
        timestamp_ms=metadata.last_updated_ms + number,
        summary={"operation": "append", "added-records": "1"},
        manifest_list=f"memory://t/{number}.avro",
        schema_id=0,
    )


def committed(metadata: TableMetadata, number: int) -> TableMetadata:
    head: list[TableUpdate] = [AddSnapshot(snapshot(number, metadata)), SetSnapshotRef(MAIN_BRANCH, branch(number))]
    return apply_updates(metadata, head)


@cache
def with_snapshots(count: int) -> TableMetadata:
    metadata = new_table(schema=COLUMNS, **{"format-version": "2"}).metadata
    updates: list[TableUpdate] = []
    for number in range(1, count + 1):
        updates += [AddSnapshot(snapshot(number, metadata)), SetSnapshotRef(MAIN_BRANCH, branch(number))]
    return apply_updates(metadata, updates)


def loading(count: int) -> Work:
    data, location = encode_metadata(with_snapshots(count)), "memory://t"
    return lambda: [each.summary for each in decode_metadata(data, location).snapshots]


def following_the_history(count: int) -> Work:
    metadata = with_snapshots(count)
    return lambda: [metadata.snapshot_by_id(entry.snapshot_id) for entry in metadata.snapshot_log]


def committing_after_many(count: int) -> Work:
    data = encode_metadata(with_snapshots(count))
    return lambda: encode_metadata(committed(decode_metadata(data, "memory://t"), count + 1))


def removing_snapshots(count: int) -> Work:
    metadata = with_snapshots(count)
    return lambda: encode_metadata(apply_updates(metadata, [RemoveSnapshots(tuple(range(1, count, 2)))]))


def keeping_a_log(count: int) -> Work:
    entries = [MetadataLogEntry(1 + number, f"memory://t/{number}.json") for number in range(count)]
    base = with_snapshots(1)
    metadata = replace(base, metadata_log=base.metadata_log.extended(entries))
    return lambda: list(decode_metadata(encode_metadata(metadata), "memory://t").metadata_log)


METADATA = {
    loading: 1000,
    following_the_history: 2000,
    committing_after_many: 2000,
    removing_snapshots: 1000,
    keeping_a_log: 2000,
}


@pytest.mark.parametrize("shape", METADATA, ids=lambda shape: shape.__name__)
def test_twice_the_entries_of_metadata_take_about_twice_the_time(shape: Callable[[int], Work]) -> None:
    assert growth(shape, METADATA[shape]) <= MOST_GROWTH


# Snapshots and branches of a table.


@cache
def overwritten(snapshots: int) -> Table:
    """A table of one row with so many overwrites, so that each snapshot has files of its own."""
    table = new_table(schema=COLUMNS)
    for _ in range(snapshots):
        table.overwrite(ROW)
    return table


def expiring(snapshots: int) -> Work:
    table = overwritten(snapshots)

    def work() -> None:
        icefield.clear_caches()
        assert len(table.maintenance.expire_snapshots(EVER, 1, dry_run=True).snapshot_ids) >= snapshots - 1

    return work


def inspecting_snapshots(snapshots: int) -> Work:
    table = overwritten(snapshots)
    return lambda: (table.inspect.snapshots(), table.inspect.history(), table.inspect.metadata_log_entries())


def with_branches(count: int) -> Table:
    table = new_table(schema=COLUMNS)
    table.append(ROW)
    create_branches(table, count)
    return table


def create_branches(table: Table, count: int) -> None:
    current = table.current_snapshot()
    assert current is not None
    with table.manage_snapshots() as manage:
        for number in range(count):
            manage.create_branch(current.snapshot_id, f"b{number}")


def creating_branches(count: int) -> Work:
    table = new_table(schema=COLUMNS)
    table.append(ROW)
    return lambda: create_branches(table, count)


def listing_branches(count: int) -> Work:
    table = with_branches(count)
    return lambda: (table.refs(), table.inspect.refs(), [table.snapshot_by_name(name) for name in table.refs()])


def committing_beside_branches(count: int) -> Work:
    table = with_branches(count)
    return lambda: table.append(ROW)


def expiring_beside_branches(count: int) -> Work:
    table = with_branches(count)
    table.overwrite(ROW)
    table.overwrite(ROW)
    return lambda: table.maintenance.expire_snapshots(EVER, 1)


TABLES = {
    expiring: 20,
    inspecting_snapshots: 20,
    creating_branches: 2000,
    listing_branches: 400,
    committing_beside_branches: 1000,
    expiring_beside_branches: 400,
}


@pytest.mark.parametrize("shape", TABLES, ids=lambda shape: shape.__name__)
def test_twice_the_snapshots_or_branches_take_about_twice_the_time(shape: Callable[[int], Work]) -> None:
    assert growth(shape, TABLES[shape]) <= MOST_GROWTH


# Partitions.


def partitioned() -> Table:
    table = new_table(schema=COLUMNS)
    with table.update_spec() as update:
        update.add_identity("id")
    return table


def rows_of(partitions: int) -> pa.Table:
    return pa.table({"id": range(partitions), "key": [1] * partitions})


@cache
def with_partitions(count: int) -> Table:
    table = partitioned()
    table.append(rows_of(count))
    table.overwrite(rows_of(count))
    return table


def appending_partitions(count: int) -> Work:
    table, given = partitioned(), rows_of(count)
    return lambda: table.append(given)


def inspecting_partitions(count: int) -> Work:
    table = with_partitions(count)

    def work() -> None:
        icefield.clear_caches()
        assert table.inspect.partitions().num_rows == count

    return work


def expiring_partitions(count: int) -> Work:
    table = with_partitions(count)

    def work() -> None:
        icefield.clear_caches()
        assert table.maintenance.expire_snapshots(EVER, 1, dry_run=True).snapshot_ids

    return work


PARTITIONS = {appending_partitions: 30, inspecting_partitions: 60, expiring_partitions: 60}


@pytest.mark.parametrize("shape", PARTITIONS, ids=lambda shape: shape.__name__)
def test_twice_the_partitions_take_about_twice_the_time(shape: Callable[[int], Work]) -> None:
    assert growth(shape, PARTITIONS[shape]) <= MOST_GROWTH
