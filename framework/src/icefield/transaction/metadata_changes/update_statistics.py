"""Changes the statistics files of snapshots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from icefield.metadata import PartitionStatisticsFile, StatisticsFile, TableMetadata
from icefield.metadata.updates.base import TableUpdate
from icefield.metadata.updates.snapshots import (
    RemovePartitionStatistics,
    RemoveStatistics,
    SetPartitionStatistics,
    SetStatistics,
)
from icefield.transaction.action import Action, ActionContext, Changes


class UpdateStatistics(Action):
    """Set and remove the statistics files of snapshots: one of each kind a snapshot. No file is written or deleted.

    Spec: "Table Statistics" and "Partition Statistics". An entry stays until its snapshot expires or it is removed.
    Setting one for a snapshot that is not there raises ``InvalidArgument`` on commit.
    """

    shapes = False

    def __init__(self, stage: Callable[[Action], None]) -> None:
        super().__init__(stage)
        self._updates: list[TableUpdate] = []

    def set_statistics(self, statistics_file: StatisticsFile) -> Self:
        """Set the Puffin file with statistics of a snapshot, in place of another one."""
        self._updates.append(SetStatistics(statistics_file))
        return self

    def remove_statistics(self, snapshot_id: int) -> Self:
        """Remove the statistics of a snapshot, if there are any."""
        self._updates.append(RemoveStatistics(snapshot_id))
        return self

    def set_partition_statistics(self, partition_statistics_file: PartitionStatisticsFile) -> Self:
        """Set the file with statistics of each partition of a snapshot, in place of another one."""
        self._updates.append(SetPartitionStatistics(partition_statistics_file))
        return self

    def remove_partition_statistics(self, snapshot_id: int) -> Self:
        """Remove the partition statistics of a snapshot, if there are any."""
        self._updates.append(RemovePartitionStatistics(snapshot_id))
        return self

    def _is_filled(self) -> bool:
        return bool(self._updates)

    def apply(self, base: TableMetadata, context: ActionContext) -> Changes:
        """The updates in the order of the calls."""
        return Changes(tuple(self._updates))
