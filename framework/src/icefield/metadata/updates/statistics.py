"""Updates of the statistics files of snapshots."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from icefield.errors import InvalidArgument
from icefield.metadata.entries import PartitionStatisticsFile, StatisticsFile
from icefield.metadata.table_metadata import TableMetadata
from icefield.metadata.updates.base import TableDrafts


@dataclass(frozen=True, slots=True)
class SetStatistics:
    """Set the statistics file of a snapshot, in place of another one."""

    statistics: StatisticsFile
    action: ClassVar[str] = "set-statistics"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        _check_snapshot(metadata, self.statistics.snapshot_id)
        others = change.dropped(metadata.statistics, [self.statistics.snapshot_id])
        return replace(metadata, statistics=change.extended(others, self.statistics))


@dataclass(frozen=True, slots=True)
class RemoveStatistics:
    """Remove the statistics file of a snapshot, if the snapshot has one."""

    snapshot_id: int
    action: ClassVar[str] = "remove-statistics"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        if not metadata.statistics.has(self.snapshot_id):
            return metadata
        return replace(metadata, statistics=change.dropped(metadata.statistics, [self.snapshot_id]))


@dataclass(frozen=True, slots=True)
class SetPartitionStatistics:
    """Set the partition statistics file of a snapshot, in place of another one."""

    partition_statistics: PartitionStatisticsFile
    action: ClassVar[str] = "set-partition-statistics"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        _check_snapshot(metadata, self.partition_statistics.snapshot_id)
        others = change.dropped(metadata.partition_statistics, [self.partition_statistics.snapshot_id])
        return replace(metadata, partition_statistics=change.extended(others, self.partition_statistics))


@dataclass(frozen=True, slots=True)
class RemovePartitionStatistics:
    """Remove the partition statistics file of a snapshot, if the snapshot has one."""

    snapshot_id: int
    action: ClassVar[str] = "remove-partition-statistics"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        if not metadata.partition_statistics.has(self.snapshot_id):
            return metadata
        left = change.dropped(metadata.partition_statistics, [self.snapshot_id])
        return replace(metadata, partition_statistics=left)


def _check_snapshot(metadata: TableMetadata, snapshot_id: int) -> None:
    if not metadata.snapshots.has(snapshot_id):
        raise InvalidArgument(f"statistics cannot be set for snapshot {snapshot_id}, which does not exist")
