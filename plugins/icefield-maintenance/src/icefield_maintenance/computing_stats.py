"""Computing the statistics of a snapshot and registering them, while others may expire it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import pyarrow as pa
from icefield.engine import UnitedPartition, united_partition
from icefield.errors import InvalidArgument, NoSuchSnapshot
from icefield.metadata import (
    WRITE_FORMAT_DEFAULT,
    PartitionStatisticsFile,
    Snapshot,
    StatisticsFile,
    TableMetadata,
    get_str,
)
from icefield.transaction import TableAccess, UpdateStatistics

from icefield_maintenance import partition_stats_file as stats_file
from icefield_maintenance import table_stats
from icefield_maintenance.partition_stats import computed_from, computed_in_full, nearest_known

T = TypeVar("T")

_VERSIONS: Final = 10
"""The number of versions that may expire, one after another, while statistics are computed."""


def compute_partition_stats(
    load: Callable[[], TableAccess], snapshot_id: int | None, file_format: str | None, *, incremental: bool
) -> PartitionStatisticsFile | None:
    """See ``MaintenanceTable.compute_partition_stats``. ``load`` gives the newest version."""
    return _of_what_stays(
        load, snapshot_id, lambda target: _of_partitions(target, snapshot_id, file_format, incremental)
    )


def compute_table_stats(
    load: Callable[[], TableAccess], columns: Sequence[str] | str | None, snapshot_id: int | None
) -> StatisticsFile | None:
    """See ``MaintenanceTable.compute_table_stats``. ``load`` gives the newest version."""
    return _of_what_stays(load, snapshot_id, lambda target: _of_columns(target, columns, snapshot_id))


def _of_what_stays(load: Callable[[], TableAccess], snapshot_id: int | None, compute: Callable[[TableAccess], T]) -> T:
    """Compute statistics. If the current snapshot expires meanwhile, use the next current snapshot."""
    for _ in range(_VERSIONS):
        try:
            return compute(load())
        except NoSuchSnapshot:
            if snapshot_id is not None:
                raise
    return compute(load())


def _of_partitions(
    target: TableAccess, snapshot_id: int | None, file_format: str | None, incremental: bool
) -> PartitionStatisticsFile | None:
    io, runner = target.io, target.runner

    def computed(
        metadata: TableMetadata,
    ) -> tuple[TableMetadata, Snapshot, UnitedPartition, pa.Table] | PartitionStatisticsFile | None:
        snapshot = _snapshot(metadata, snapshot_id)
        united = united_partition(metadata)
        if snapshot is None:
            return None
        known = nearest_known(metadata, snapshot) if incremental else None
        if known is not None and known.snapshot_id == snapshot.snapshot_id:
            return known
        found = None if known is None else computed_from(metadata, io, snapshot, united, known, runner)
        if found is None:
            found = computed_in_full(metadata, io, snapshot, united, runner)
        return metadata, snapshot, united, stats_file.stats_table(metadata, united, found)

    found = target.reading_version(computed)
    if not isinstance(found, tuple):
        return found
    metadata, snapshot, united, rows = found
    kind = (file_format or get_str(metadata.properties, WRITE_FORMAT_DEFAULT)).lower()
    location = stats_file.new_location(io, metadata, snapshot.snapshot_id, kind)

    def write(update: UpdateStatistics) -> PartitionStatisticsFile:
        size, key = stats_file.write_stats(io, metadata, location, kind, united, rows)
        made = PartitionStatisticsFile(snapshot.snapshot_id, location, size)
        update.set_partition_statistics(made, key)
        return made

    return _registered(target, snapshot, location, write)


def _of_columns(
    target: TableAccess, columns: Sequence[str] | str | None, snapshot_id: int | None
) -> StatisticsFile | None:
    def sketched(metadata: TableMetadata) -> tuple[TableMetadata, Snapshot | None, list[table_stats.CountedColumn]]:
        snapshot = _snapshot(metadata, snapshot_id)
        schema = metadata.schema() if snapshot is None else metadata.schema_of(snapshot)
        wanted = table_stats.sketched_columns(schema, columns)
        if snapshot is not None:
            table_stats.sketch(metadata, target.io, snapshot, wanted, target.runner)
        return metadata, snapshot, wanted

    metadata, snapshot, wanted = target.reading_version(sketched)
    if snapshot is None:
        return None
    location = table_stats.new_location(metadata, snapshot.snapshot_id)

    def write(update: UpdateStatistics) -> StatisticsFile:
        made, key = table_stats.write_sketches(target.io, location, metadata, snapshot, wanted)
        update.set_statistics(made, key)
        return made

    return _registered(target, snapshot, location, write)


def _registered(target: TableAccess, snapshot: Snapshot, location: str, write: Callable[[UpdateStatistics], T]) -> T:
    """Write a file, and register it. Raises ``NoSuchSnapshot`` if the snapshot has expired meanwhile."""
    try:
        with target.begin() as tx:
            tx.context.written.add(location)
            update = tx.update_statistics()
            made = write(update)
            update.commit()
    except InvalidArgument as error:
        if target.newest is None or target.newest()[0].snapshot_by_id(snapshot.snapshot_id) is not None:
            raise
        raise _gone(snapshot.snapshot_id) from error
    return made


def _snapshot(metadata: TableMetadata, snapshot_id: int | None) -> Snapshot | None:
    if snapshot_id is None:
        return metadata.current_snapshot()
    found = metadata.snapshot_by_id(snapshot_id)
    if found is None:
        raise _gone(snapshot_id)
    return found


def _gone(snapshot_id: int) -> NoSuchSnapshot:
    return NoSuchSnapshot(f"the table has no snapshot {snapshot_id}", snapshot_id=snapshot_id)
