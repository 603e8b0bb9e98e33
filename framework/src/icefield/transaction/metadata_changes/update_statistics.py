"""Changes the statistics files of snapshots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Self

from icefield.abc import FileKey
from icefield.metadata import AddEncryptionKey, PartitionStatisticsFile, StatisticsFile, TableMetadata
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
    Setting one for a snapshot that is not there raises ``InvalidArgument`` on commit. ``key`` is the key of an
    encrypted file; the table keeps it wrapped, with the location of the file as its id.
    """

    shapes = False

    def __init__(self, stage: Callable[[Action], None]) -> None:
        super().__init__(stage)
        self._updates: list[TableUpdate] = []
        self._keys: dict[str, FileKey] = {}

    def set_statistics(self, statistics_file: StatisticsFile, key: FileKey | None = None) -> Self:
        """Set the Puffin file with statistics of a snapshot, in place of another one."""
        self._note_key(statistics_file, key)
        self._updates.append(SetStatistics(statistics_file))
        return self

    def remove_statistics(self, snapshot_id: int) -> Self:
        """Remove the statistics of a snapshot, if there are any."""
        self._updates.append(RemoveStatistics(snapshot_id))
        return self

    def set_partition_statistics(
        self, partition_statistics_file: PartitionStatisticsFile, key: FileKey | None = None
    ) -> Self:
        """Set the file with statistics of each partition of a snapshot, in place of another one."""
        self._note_key(partition_statistics_file, key)
        self._updates.append(SetPartitionStatistics(partition_statistics_file))
        return self

    def remove_partition_statistics(self, snapshot_id: int) -> Self:
        """Remove the partition statistics of a snapshot, if there are any."""
        self._updates.append(RemovePartitionStatistics(snapshot_id))
        return self

    def _is_filled(self) -> bool:
        return bool(self._updates)

    def apply(self, base: TableMetadata, context: ActionContext) -> Changes:
        """The updates in the order of the calls, after the keys of encrypted files."""
        keys = [
            AddEncryptionKey(each)
            for location, key in self._keys.items()
            if not base.encryption_keys.has(location)
            for each in context.io.encryption.store_key(base, key, location)
        ]
        return Changes((*keys, *self._updates))

    def _note_key(self, file: StatisticsFile | PartitionStatisticsFile, key: FileKey | None) -> None:
        if key is not None:
            self._keys[file.statistics_path] = replace(key, length=file.file_size_in_bytes)
