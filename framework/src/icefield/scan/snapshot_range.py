"""The snapshot range of an incremental scan: a part of one line of ancestors."""

from __future__ import annotations

from dataclasses import dataclass

from icefield.base.spelling import was_meant
from icefield.errors import InvalidArgument, NoSuchSnapshot
from icefield.metadata import MAIN_BRANCH, Snapshot, TableMetadata
from icefield.metadata.timestamps import Timestamp, as_milliseconds, in_utc


@dataclass(frozen=True, slots=True)
class SnapshotRange:
    """The snapshots from an ancestor to one of its descendants.

    ``from_exclusive``: the last snapshot before the range; it may have expired if its child has not.
    ``from_inclusive``: the first snapshot of the range. ``from_timestamp``: only snapshots after this time. Without a
    start, the range begins with the oldest ancestor that has not expired. ``to_inclusive``: the last snapshot of the
    range. ``to_timestamp``: only snapshots up to this time. Without an end, the range ends with the head of ``ref``, a
    branch or tag, ``main`` by default.
    """

    from_exclusive: int | None = None
    from_inclusive: int | None = None
    to_inclusive: int | None = None
    from_timestamp: Timestamp | None = None
    to_timestamp: Timestamp | None = None
    ref: str | None = None

    def __post_init__(self) -> None:
        for names in (("from_exclusive", "from_inclusive", "from_timestamp"), ("to_inclusive", "to_timestamp")):
            given = [name for name in names if getattr(self, name) is not None]
            if len(given) > 1:
                side = names[0].split("_")[0]
                raise InvalidArgument(f"the range of a scan is given {len(given)} times by its '{side}'; give one")
        for name in ("from_timestamp", "to_timestamp"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, as_milliseconds(getattr(self, name)))

    def snapshots(self, metadata: TableMetadata, called: str = "") -> list[Snapshot]:
        """The snapshots of the range, oldest first; empty if it ends with the snapshot before the range.

        Errors name the table as ``called``, by default by its location.

        Raises ``NoSuchSnapshot`` for an unknown snapshot or ref, or if the beginning of the range has expired. Raises
        ``InvalidArgument`` if the beginning is not an ancestor of the end.
        """
        called = called or metadata.location
        end = self._end(metadata, called)
        if end is None:
            begin = self.from_exclusive if self.from_exclusive is not None else self.from_inclusive
            if begin is not None and self.to_timestamp is None:
                raise NoSuchSnapshot(f"table {called} has no snapshot {begin}", snapshot_id=begin)
            return []
        found: list[Snapshot] = []
        after = None if self.from_timestamp is None else as_milliseconds(self.from_timestamp)
        for snapshot in metadata.ancestors(end.snapshot_id):
            is_before = after is not None and snapshot.timestamp_ms <= after
            if snapshot.snapshot_id == self.from_exclusive or is_before:
                return found[::-1]
            found.append(snapshot)
            if snapshot.snapshot_id == self.from_inclusive:
                return found[::-1]
        self._check_begin(metadata, end, found[-1], called)
        return found[::-1]

    def _end(self, metadata: TableMetadata, called: str) -> Snapshot | None:
        head = head_of_ref(metadata, self.ref, called)
        if self.to_timestamp is not None:
            last = as_milliseconds(self.to_timestamp)
            ancestors = metadata.ancestors(None if head is None else head.snapshot_id)
            return next((one for one in ancestors if one.timestamp_ms <= last), None)
        if self.to_inclusive is None:
            return head
        found = metadata.snapshot_by_id(self.to_inclusive)
        if found is None:
            raise NoSuchSnapshot(
                f"table {called} has no snapshot {self.to_inclusive}, with which the range ends; it never "
                "had it, or it has expired",
                snapshot_id=self.to_inclusive,
            )
        if self.ref is not None and (head is None or found.snapshot_id not in metadata.ancestor_ids(head.snapshot_id)):
            raise InvalidArgument(
                f"snapshot {self.to_inclusive}, with which the range ends, is not in the history of '{self.ref}'",
                snapshot_id=self.to_inclusive,
                ref=self.ref,
            )
        return found

    def _check_begin(self, metadata: TableMetadata, end: Snapshot, oldest: Snapshot, called: str) -> None:
        """Raise an error if the line of ancestors ended before it reached the beginning of the range."""
        parent = oldest.parent_snapshot_id
        if self.from_timestamp is not None and parent is not None:
            raise NoSuchSnapshot(
                f"snapshot {parent} of table {called} has expired, and with it the changes after "
                f"{in_utc(as_milliseconds(self.from_timestamp))}; the oldest snapshot that is kept is "
                f"{oldest.snapshot_id}, of {in_utc(oldest.timestamp_ms)}",
                snapshot_id=parent,
            )
        begin = self.from_inclusive if self.from_exclusive is None else self.from_exclusive
        if begin is None or begin == parent == self.from_exclusive:
            return
        if metadata.snapshot_by_id(begin) is None:
            raise NoSuchSnapshot(
                f"table {called} has no snapshot {begin}, with which the range begins; it never had it, or "
                f"it has expired. The oldest ancestor of {end.snapshot_id} that is kept is {oldest.snapshot_id}",
                snapshot_id=begin,
            )
        raise InvalidArgument(
            f"snapshot {begin}, with which the range begins, is no ancestor of {end.snapshot_id}, with which it ends; "
            "a range is a part of one history",
            snapshot_id=begin,
        )


def kept_parent(metadata: TableMetadata, snapshot: Snapshot) -> Snapshot | None:
    """The parent of a snapshot; None for the first of a table. Raises ``NoSuchSnapshot`` when it has expired."""
    if snapshot.parent_snapshot_id is None:
        return None
    parent = metadata.snapshot_by_id(snapshot.parent_snapshot_id)
    if parent is None:
        raise NoSuchSnapshot(
            f"snapshot {snapshot.parent_snapshot_id} of table {metadata.location}, on which {snapshot.snapshot_id} was "
            "built, has expired: what that deleted is not known; begin the range after it",
            snapshot_id=snapshot.parent_snapshot_id,
        )
    return parent


def head_of_ref(metadata: TableMetadata, ref: str | None, called: str = "") -> Snapshot | None:
    """The snapshot of a branch or tag, ``main`` by default; None for a table without one. Raises ``NoSuchSnapshot``."""
    if ref is None or (ref == MAIN_BRANCH and metadata.ref(ref) is None):
        return metadata.current_snapshot()
    found = metadata.snapshot_by_name(ref)
    if found is None:
        known = ", ".join(sorted(metadata.refs)) or "none"
        meant = was_meant(ref, [*metadata.refs])
        raise NoSuchSnapshot(
            f"table {called or metadata.location} has no branch or tag '{ref}'{meant or ';'} it has {known}", ref=ref
        )
    return found
