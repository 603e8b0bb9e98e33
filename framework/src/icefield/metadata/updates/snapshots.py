"""Updates that add and remove snapshots."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from icefield.errors import InvalidArgument, ValidationFailed
from icefield.metadata.integrity import CLOCK_SKEW_MS
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
        _check_time(metadata, snapshot)
        _check_version(metadata, snapshot)
        if not change.adds_snapshot:
            change.timestamp_ms = change.base.last_updated_ms
            change.adds_snapshot = True
        change.timestamp_ms = max(change.timestamp_ms, snapshot.timestamp_ms)
        return replace(
            metadata,
            snapshots=change.extended(metadata.snapshots, snapshot),
            last_sequence_number=max(metadata.last_sequence_number, snapshot.sequence_number),
            next_row_id=metadata.next_row_id if metadata.format_version < 3 else _row_ids_end(snapshot),
        )


@dataclass(frozen=True, slots=True)
class RemoveSnapshots:
    """Remove snapshots, their statistics, and the history before them. A branch or tag must not name any of them."""

    snapshot_ids: Iterable[int]
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


def _check_time(metadata: TableMetadata, snapshot: Snapshot) -> None:
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
    # A snapshot without a parent starts over, and has no files that a lower number could put out of order.
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


def _row_ids_end(snapshot: Snapshot) -> int:
    return (snapshot.first_row_id or 0) + (snapshot.added_rows or 0)
