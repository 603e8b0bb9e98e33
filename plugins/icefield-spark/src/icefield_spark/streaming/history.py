"""Snapshots after an offset in a table's history, and the share of them for one batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from icefield.errors import InvalidArgument, NoSuchSnapshot, UnsupportedFeature
from icefield.metadata import Operation, Snapshot, TableMetadata
from icefield.scan import SnapshotRange

from icefield_spark.streaming.offsets import AFTER, BEFORE_ALL, STATE, WITH, Offset, Origin

Files = Callable[[Snapshot, bool], Sequence[int]]
"""The rows of each file that a snapshot added, or (the flag) that it has, in the order of their paths."""


@dataclass(frozen=True, slots=True)
class Follow:
    """Options of a stream: its branch, its treatment of snapshots other than appends, and its start."""

    branch: str | None = None
    changes: bool = False
    skip_overwrites: bool = False
    skip_deletes: bool = False
    begin: str = "start"
    from_snapshot: int | None = None
    from_timestamp: int | None = None

    def check(self, snapshot: Snapshot, table: str) -> bool:
        """Whether the stream reads rows of a snapshot.

        Raises ``UnsupportedFeature`` if it cannot follow the snapshot.
        """
        operation = snapshot.operation
        if self.changes:
            return operation is not Operation.REPLACE
        if operation in (Operation.APPEND, Operation.REPLACE):
            return operation is Operation.APPEND
        if operation is Operation.DELETE:
            skipped, name = self.skip_deletes, "streaming-skip-delete-snapshots"
        else:
            skipped, name = self.skip_overwrites, "streaming-skip-overwrite-snapshots"
        if skipped:
            return False
        done = "unknown" if operation is None else operation.value
        raise UnsupportedFeature(
            f"snapshot {snapshot.snapshot_id} of table '{table}' is no append (its operation is '{done}'), and a "
            f"stream of appended rows cannot show what it changed: pass over such snapshots with the option {name}, "
            "or get inserted and deleted rows with the option stream-changes",
            snapshot_id=snapshot.snapshot_id,
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one batch; None is no limit. A batch takes at least one file."""

    files: int | None = None
    rows: int | None = None

    @property
    def none(self) -> bool:
        """Whether there is no limit."""
        return self.files is None and self.rows is None


class Room:
    """The remaining room within a batch's limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._files = 0
        self._rows = 0

    @property
    def is_full(self) -> bool:
        """Whether a limit is reached."""
        limits = self._limits
        return bool(
            (limits.files is not None and self._files >= limits.files)
            or (limits.rows is not None and self._rows >= limits.rows)
        )

    def take(self, files: int, rows: int) -> bool:
        """Take files together if they fit, or if they are the batch's first files; return whether they were taken."""
        limits = self._limits
        fits = (limits.files is None or self._files + files <= limits.files) and (
            limits.rows is None or self._rows + rows <= limits.rows
        )
        if fits or (files == 1 and not self._files):
            self._files += files
            self._rows += rows
            return True
        return False


def origin_of(metadata: TableMetadata, follow: Follow, table: str) -> Origin | None:
    """The origin of a new stream; None while the table has no snapshot to begin with.

    Raises ``NoSuchSnapshot`` for a snapshot that does not exist or has expired.
    """
    line = SnapshotRange(ref=follow.branch).snapshots(metadata)
    if follow.from_snapshot is not None:
        if all(each.snapshot_id != follow.from_snapshot for each in line):
            raise NoSuchSnapshot(
                f"table '{table}' has no snapshot {follow.from_snapshot} in its history, with which the stream is to "
                "begin; it never had it, or it has expired",
                snapshot_id=follow.from_snapshot,
            )
        return Origin(follow.from_snapshot, WITH)
    if follow.from_timestamp is not None:
        return _from_timestamp(line, follow.from_timestamp, table)
    if follow.begin == "latest":
        return Origin(line[-1].snapshot_id if line else BEFORE_ALL, AFTER)
    if not line:
        return None
    if follow.begin == "state":
        return Origin(line[-1].snapshot_id, STATE)
    if line[0].parent_snapshot_id is None:
        return Origin(BEFORE_ALL, AFTER)
    if follow.changes:
        raise NoSuchSnapshot(
            f"the first snapshots of table '{table}' have expired, and with them what they changed: begin the stream "
            "with the option stream-from=latest or stream-from-snapshot-id",
            snapshot_id=line[0].parent_snapshot_id,
        )
    # The oldest kept snapshot holds the rows of all expired snapshots before it.
    return Origin(line[0].snapshot_id, STATE)


def _from_timestamp(line: Sequence[Snapshot], instant: int, table: str) -> Origin | None:
    later = next((each for each in line if each.timestamp_ms >= instant), None)
    if later is None:
        return None
    if later is line[0] and later.parent_snapshot_id is not None and later.timestamp_ms > instant:
        raise NoSuchSnapshot(
            f"the snapshots of table '{table}' before {later.snapshot_id} have expired, and so perhaps some after "
            f"{instant} ms: begin the stream with stream-from-timestamp={later.timestamp_ms} or later, or with the "
            "table's state by stream-from=state",
            snapshot_id=later.parent_snapshot_id,
        )
    return Origin(later.snapshot_id, WITH)


def following(metadata: TableMetadata, offset: Offset, follow: Follow, table: str, to: int | None) -> list[Snapshot]:
    """The snapshots after an offset, up to ``to`` or the head, with the offset's own snapshot if a part remains.

    Raises ``NoSuchSnapshot`` if they have expired.
    """
    snapshot = None if offset.snapshot == BEFORE_ALL else offset.snapshot
    try:
        if snapshot is None:
            found = SnapshotRange(to_inclusive=to, ref=follow.branch).snapshots(metadata)
            if found and found[0].parent_snapshot_id is not None:
                raise NoSuchSnapshot("its first snapshots have expired", snapshot_id=found[0].parent_snapshot_id)
            return found
        if offset.files is None:
            return SnapshotRange(from_exclusive=snapshot, to_inclusive=to, ref=follow.branch).snapshots(metadata)
        return SnapshotRange(from_inclusive=snapshot, to_inclusive=to, ref=follow.branch).snapshots(metadata)
    except (NoSuchSnapshot, InvalidArgument) as error:
        where = "before its first snapshot" if snapshot is None else f"at snapshot {snapshot}"
        raise NoSuchSnapshot(
            f"the stream of table '{table}' stands {where}, and what followed is no longer known: {error}. Snapshots "
            "expired before they were read, or the table was replaced or rolled back: begin anew with another "
            "checkpoint, and keep snapshots (history.expire.max-snapshot-age-ms) for longer than a query may stand",
            snapshot_id=snapshot,
        ) from error


def first_offset(origin: Origin) -> Offset:
    """The offset of a stream that has read nothing since its origin."""
    if origin.begin == AFTER:
        return Offset(origin.snapshot, None, origin=origin)
    return Offset(origin.snapshot, 0, origin.begin == STATE, origin)


def advance(
    start: Offset, snapshots: Sequence[Snapshot], follow: Follow, limits: Limits, files: Files, table: str
) -> Offset:
    """The end of the next batch, from ``start`` into the snapshots after it.

    Raises ``UnsupportedFeature`` for a snapshot that the stream cannot follow, once all before it was read.
    """
    room, reached = Room(limits), start
    for snapshot in snapshots:
        is_begun = snapshot.snapshot_id == start.snapshot
        state = is_begun and start.state
        try:
            is_read = state or follow.check(snapshot, table)
        except UnsupportedFeature:
            if reached == start:
                raise
            break
        if not is_read:
            reached = Offset(snapshot.snapshot_id)
            continue
        if room.is_full:
            break
        taken = _take(snapshot, room, limits, files, follow.changes, start.files or 0 if is_begun else 0, state)
        if taken is not None:
            if taken:
                reached = Offset(snapshot.snapshot_id, taken, state)
            break
        reached = Offset(snapshot.snapshot_id)
    return reached


def _take(
    snapshot: Snapshot, room: Room, limits: Limits, files: Files, changes: bool, done: int, state: bool
) -> int | None:
    """How many of a snapshot's files are read after this batch; None is all files, zero no file yet."""
    if limits.none:
        return None
    if changes:
        # All changes of a snapshot are read at once, since the rows of several files may belong together.
        count, rows = _changed(snapshot)
        return None if room.take(count, rows) or room.take(1, rows) else 0
    counts = _added(snapshot)
    if not done and not state and counts is not None and room.take(*counts):
        return None
    sizes = files(snapshot, state)
    reached = done
    for rows in sizes[done:]:
        if not room.take(1, rows):
            return reached
        reached += 1
    return None


def _added(snapshot: Snapshot) -> tuple[int, int] | None:
    counts = [snapshot.summary.get(name, "") for name in ("added-data-files", "added-records")]
    return (int(counts[0]), int(counts[1])) if all(each.isdecimal() for each in counts) else None


def _changed(snapshot: Snapshot) -> tuple[int, int]:
    def of(*names: str) -> int:
        return sum(int(found) for name in names if (found := snapshot.summary.get(name, "")).isdecimal())

    return max(1, of("added-data-files", "deleted-data-files")), of("added-records", "deleted-records")
