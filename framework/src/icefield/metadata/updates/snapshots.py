"""Updates of snapshots, their statistics files, and the branches and tags that name them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import ClassVar

from icefield.base.limits import NameText
from icefield.errors import InvalidArgument, ValidationFailed
from icefield.metadata.entries import Long, PartitionStatisticsFile, StatisticsFile
from icefield.metadata.integrity import CLOCK_SKEW_MS
from icefield.metadata.refs import MAIN_BRANCH, SnapshotRef
from icefield.metadata.snapshots import Snapshot
from icefield.metadata.table_metadata import TableMetadata
from icefield.metadata.updates.base import TableDrafts


@dataclass(frozen=True, slots=True)
class AddSnapshot:
    """Add a snapshot, which no branch or tag names yet.

    Its sequence number must be above the table's last one (v2 and later), and its first row id at or above the
    table's next one (v3). See "Snapshots" and "Row Lineage" of the table specification.
    """

    snapshot: Snapshot
    action: ClassVar[str] = "add-snapshot"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        snapshot = self.snapshot
        _check_snapshot(metadata, snapshot)
        _check_version(metadata, snapshot)
        if not change.adds_snapshot:
            change.timestamp_ms = change.base.last_updated_ms
            change.adds_snapshot = True
        change.timestamp_ms = max(change.timestamp_ms, snapshot.timestamp_ms)
        end = (snapshot.first_row_id or 0) + (snapshot.added_rows or 0)
        return replace(
            metadata,
            snapshots=change.extended(metadata.snapshots, snapshot),
            last_sequence_number=max(metadata.last_sequence_number, snapshot.sequence_number),
            next_row_id=metadata.next_row_id if metadata.format_version < 3 else end,
        )


@dataclass(frozen=True, slots=True)
class RemoveSnapshots:
    """Remove snapshots, their statistics, and the history before them. A branch or tag must not name any of them."""

    snapshot_ids: Collection[Long]
    action: ClassVar[str] = "remove-snapshots"

    def __post_init__(self) -> None:
        object.__setattr__(self, "snapshot_ids", frozenset(self.snapshot_ids))

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        gone = frozenset(filter(metadata.snapshots.has, self.snapshot_ids))
        if not gone:
            return metadata
        if not change.named_by(metadata.refs).isdisjoint(gone):
            name, ref = next(item for item in metadata.refs.items() if item[1].snapshot_id in gone)
            # The ref is most likely newer than this change, so the caller must decide again on the current metadata.
            raise ValidationFailed(f"snapshot {ref.snapshot_id} cannot be removed: '{name}' refers to it")
        return replace(
            metadata,
            snapshots=change.dropped(metadata.snapshots, gone),
            # Log entries before the entry of a removed snapshot would show a wrong history.
            snapshot_log=change.dropped_through(metadata.snapshot_log, gone),
            statistics=change.dropped(metadata.statistics, gone),
            partition_statistics=change.dropped(metadata.partition_statistics, gone),
        )


@dataclass(frozen=True, slots=True)
class SetSnapshotRef:
    """Create or move a branch or tag. Moving ``main`` makes its snapshot the current one."""

    name: NameText
    ref: SnapshotRef
    action: ClassVar[str] = "set-snapshot-ref"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        name, ref = self.name, self.ref
        if not isinstance(name, str) or not name.strip():
            raise InvalidArgument("a branch or tag must have a name")
        if not metadata.snapshots.has(ref.snapshot_id):
            raise InvalidArgument(f"'{name}' cannot refer to snapshot {ref.snapshot_id}, which does not exist")
        if name == MAIN_BRANCH and (ref.is_tag or ref.max_ref_age_ms is not None):
            raise InvalidArgument("'main' must be a branch, and never expires")
        if metadata.refs.get(name) == ref:
            return metadata
        changed = replace(metadata, refs=change.with_ref(metadata.refs, name, ref))
        return replace(changed, current_snapshot_id=ref.snapshot_id) if name == MAIN_BRANCH else changed


@dataclass(frozen=True, slots=True)
class RemoveSnapshotRef:
    """Remove a branch or tag; a missing ref is no error. Removing ``main`` leaves no current snapshot."""

    name: NameText
    action: ClassVar[str] = "remove-snapshot-ref"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        if self.name not in metadata.refs:
            return metadata
        changed = replace(metadata, refs=change.with_ref(metadata.refs, self.name, None))
        # A change that ends without a current snapshot empties the log: see ``MetadataBuilder``.
        return replace(changed, current_snapshot_id=None) if self.name == MAIN_BRANCH else changed


@dataclass(frozen=True, slots=True)
class SetStatistics:
    """Set the statistics file of a snapshot, in place of another one."""

    statistics: StatisticsFile
    action: ClassVar[str] = "set-statistics"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        _check_known(metadata, self.statistics.snapshot_id)
        others = change.dropped(metadata.statistics, [self.statistics.snapshot_id])
        return replace(metadata, statistics=change.extended(others, self.statistics))


@dataclass(frozen=True, slots=True)
class RemoveStatistics:
    """Remove the statistics file of a snapshot, if the snapshot has one."""

    snapshot_id: Long
    action: ClassVar[str] = "remove-statistics"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        left = change.dropped(metadata.statistics, [self.snapshot_id])
        return metadata if left is metadata.statistics else replace(metadata, statistics=left)


@dataclass(frozen=True, slots=True)
class SetPartitionStatistics:
    """Set the partition statistics file of a snapshot, in place of another one."""

    partition_statistics: PartitionStatisticsFile
    action: ClassVar[str] = "set-partition-statistics"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        _check_known(metadata, self.partition_statistics.snapshot_id)
        others = change.dropped(metadata.partition_statistics, [self.partition_statistics.snapshot_id])
        return replace(metadata, partition_statistics=change.extended(others, self.partition_statistics))


@dataclass(frozen=True, slots=True)
class RemovePartitionStatistics:
    """Remove the partition statistics file of a snapshot, if the snapshot has one."""

    snapshot_id: Long
    action: ClassVar[str] = "remove-partition-statistics"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        left = change.dropped(metadata.partition_statistics, [self.snapshot_id])
        return metadata if left is metadata.partition_statistics else replace(metadata, partition_statistics=left)


def _check_known(metadata: TableMetadata, snapshot_id: int) -> None:
    if not metadata.snapshots.has(snapshot_id):
        raise InvalidArgument(f"statistics cannot be set for snapshot {snapshot_id}, which does not exist")


def _check_snapshot(metadata: TableMetadata, snapshot: Snapshot) -> None:
    if not 0 < snapshot.snapshot_id < 2**63:
        raise InvalidArgument(f"snapshot id {snapshot.snapshot_id} is no positive long")
    if metadata.snapshots.has(snapshot.snapshot_id):
        raise InvalidArgument(f"table {metadata.location} has a snapshot {snapshot.snapshot_id} already")
    if snapshot.manifest_list is None:
        raise InvalidArgument(f"snapshot {snapshot.snapshot_id} names no manifest list")
    if snapshot.schema_id is not None and not metadata.schemas.has(snapshot.schema_id):
        raise InvalidArgument(
            f"snapshot {snapshot.snapshot_id} names schema {snapshot.schema_id}, which does not exist"
        )
    if "operation" not in snapshot.summary:
        raise InvalidArgument(f"the summary of snapshot {snapshot.snapshot_id} states no operation")
    for name, value in snapshot.summary.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidArgument(f"the summary of a snapshot holds strings; {name!r}: {value!r} is none")
    last = metadata.snapshot_log.last_record()
    if last is not None and snapshot.timestamp_ms < last.timestamp_ms - CLOCK_SKEW_MS:
        raise InvalidArgument(
            f"snapshot {snapshot.snapshot_id} is of {snapshot.timestamp_ms} ms, more than a minute before the last "
            f"one, of {last.timestamp_ms} ms; set this machine's clock"
        )


def _check_version(metadata: TableMetadata, snapshot: Snapshot) -> None:
    what, number = f"snapshot {snapshot.snapshot_id}", snapshot.sequence_number
    if metadata.format_version == 1 and number != 0:
        raise InvalidArgument(f"{what} has sequence number {number}; format version 1 has none")
    # A snapshot without a parent has no files of earlier snapshots, which a lower number could put out of order.
    last = metadata.last_sequence_number if snapshot.parent_snapshot_id is not None else 0
    if metadata.format_version > 1 and number <= last:
        raise InvalidArgument(f"{what} has sequence number {number}, not above the table's last, {last}")
    if metadata.format_version > 2:
        _check_row_ids(metadata, snapshot)
    elif snapshot.first_row_id is not None or snapshot.added_rows is not None or snapshot.key_id is not None:
        raise InvalidArgument(f"{what} has row ids or an encryption key, which exist from format version 3")


def _check_row_ids(metadata: TableMetadata, snapshot: Snapshot) -> None:
    what, first, added = f"snapshot {snapshot.snapshot_id}", snapshot.first_row_id, snapshot.added_rows
    if first is None or added is None:
        raise InvalidArgument(f"{what} lacks first-row-id or added-rows, which format version 3 requires")
    if first < (metadata.next_row_id or 0):
        raise InvalidArgument(f"{what} starts at row id {first}, below the table's next, {metadata.next_row_id}")
    if added < 0 or first + added >= 2**63:
        raise InvalidArgument(f"{what} adds {added} rows from row id {first}, which is out of range")
