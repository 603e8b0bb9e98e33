"""Batches of a stream from a table: the end of the next batch, and the tasks of a batch."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import pyarrow as pa
from icefield import Schema, Table
from icefield.errors import InvalidArgument
from icefield.metadata import Snapshot
from icefield.scan import FileScanTask, IncrementalAppendScan, IncrementalChangelogScan, TableScan, read_changes
from icefield.toolkit import is_true, whole_number
from pyspark.sql.types import StructType

from icefield_spark.arrow import SparkBatches, in_pieces
from icefield_spark.chunks import ChunkContext, ReadsChunks, plan_chunks
from icefield_spark.executors import for_executors
from icefield_spark.failures import cause_alone
from icefield_spark.options import STREAM_FROM, STREAM_WRITE, WRITE_ONLY, refuse_options
from icefield_spark.projecting import check_columns, selected_fields
from icefield_spark.source import QuerySource
from icefield_spark.streaming.history import Follow, Limits, advance, first_offset, following, origin_of
from icefield_spark.streaming.offsets import BEFORE_ALL, Offset

S = TypeVar("S", bound=Any)
_VERSIONS: Final = ("snapshot-id", "ref", "tag", "as-of-timestamp")
_BEGINNINGS: Final = ("start", "state", "latest")


@dataclass(frozen=True, slots=True, repr=False)
class ChangesContext:
    """The context for reading the tasks of a changelog, and the columns as Spark wants them."""

    changelog: Any
    schema: Schema
    columns: StructType

    def read(self, chunk: bytes) -> Iterator[pa.RecordBatch]:
        """The rows of one chunk, in the types that Spark has."""
        batches = SparkBatches(self.schema, self.columns)
        with cause_alone():
            for batch in read_changes(pickle.loads(chunk), self.changelog, workers=1):
                yield from in_pieces(batches.convert(batch))

    def __repr__(self) -> str:  # the scan's context leads to the catalog's properties
        return "icefield"


@dataclass(frozen=True, slots=True)
class Batch:
    """The chunks of a batch, and the context that reads them; a batch without chunks has no context."""

    chunks: Sequence[bytes] = ()
    context: ReadsChunks | None = None


def follow_of(source: QuerySource) -> tuple[Follow, Limits]:
    """The behaviour and limits of a stream that its options ask for. Raises ``InvalidArgument``."""
    options = source.options
    refuse_options(options, _VERSIONS, "names a state of the table, and a stream follows it (see stream-from)")
    refuse_options(options, (*WRITE_ONLY, *STREAM_WRITE), "is for writing")
    begins = [name for name in STREAM_FROM if options.get(name)]
    if len(begins) > 1:
        raise InvalidArgument(f"a stream begins once; give one of {' and '.join(begins)}")
    begin = options.get("stream-from", "start").lower()
    if begin not in _BEGINNINGS:
        raise InvalidArgument(f"the option 'stream-from' is {', '.join(_BEGINNINGS)}, not '{begin}'")
    changes = is_true(options, "stream-changes")
    skips = [is_true(options, f"streaming-skip-{kind}-snapshots") for kind in ("overwrite", "delete")]
    if changes and (any(skips) or begin == "state"):
        raise InvalidArgument("stream-changes shows every change; leave out what skips some, and stream-from=state")
    follow = Follow(
        branch=options.get("branch"),
        changes=changes,
        skip_overwrites=skips[0],
        skip_deletes=skips[1],
        begin=begin,
        from_snapshot=source.number("stream-from-snapshot-id"),
        from_timestamp=source.instant("stream-from-timestamp"),
    )
    bounds = [whole_number(options, name, 0, 1) if name in options else None for name in ("max-files", "max-rows")]
    return follow, Limits(*bounds)


class Following:
    """A table that a stream follows. ``table`` gives it at its current version."""

    def __init__(self, source: QuerySource, table: Callable[[], Table], columns: StructType) -> None:
        self._source = source
        self._table = table
        self._columns = columns
        self._follow, self.limits = follow_of(source)
        self._pinned: Table | None = None
        current = table()
        scan = self._changelog(current) if self._follow.changes else self._appends(current)
        check_columns(scan.projection, columns)

    @property
    def is_from_start(self) -> bool:
        """Whether the stream begins with the first snapshot."""
        return self._follow.begin == "start"

    def pin(self) -> None:
        """Pin the table's current state: the stream ends there."""
        self._pinned = self._table()

    # -- offsets ------------------------------------------------------------------------------------------------------

    def reach(self, given: Offset, limits: Limits) -> Offset:
        """The end of a batch that begins at an offset; the offset itself if there is nothing new."""
        table = self._now()
        begun = self._begun(table, given)
        if begun is None:
            return given
        name = ".".join(table.name())
        snapshots = following(table.metadata, begun, self._follow, name, None)

        def files(snapshot: Snapshot, state: bool) -> list[int]:
            return [task.file.record_count for task in self._files(table, snapshot.snapshot_id, state)]

        reached = advance(begun, snapshots, self._follow, limits, files, name)
        return reached if given.snapshot is not None else replace(reached, origin=begun.origin)

    def _begun(self, table: Table, given: Offset) -> Offset | None:
        if given.snapshot is not None:
            return given
        origin = origin_of(table.metadata, self._follow, ".".join(table.name()))
        return None if origin is None else first_offset(origin)

    def head(self) -> Offset:
        """The offset of all that the table has."""
        table = self._now()
        begun = self._begun(table, Offset())
        if begun is None:
            return Offset()
        snapshots = following(table.metadata, begun, self._follow, ".".join(table.name()), None)
        return Offset(snapshots[-1].snapshot_id, origin=begun.origin) if snapshots else begun

    def _now(self) -> Table:
        return self._table() if self._pinned is None else self._pinned

    # -- batches ------------------------------------------------------------------------------------------------------

    def batch(self, start: Offset, end: Offset) -> Batch:
        """The tasks that read from one offset to another.

        Raises ``NoSuchSnapshot`` if snapshots between them have expired, ``UnsupportedFeature`` for a snapshot that
        cannot be followed.
        """
        first, last = start, end
        if first == last or last.snapshot in (None, BEFORE_ALL):
            return Batch()
        if first.snapshot is None:
            if last.origin is None:
                raise InvalidArgument("the checkpoint does not hold where the stream began; begin with another one")
            first = first_offset(last.origin)
        table = self._table()
        name = ".".join(table.name())
        snapshots = following(table.metadata, first, self._follow, name, last.snapshot)
        for snapshot in snapshots:
            if not (first.state and snapshot.snapshot_id == first.snapshot):
                self._follow.check(snapshot, name)
        if self._follow.changes:
            return self._changes(table, first, last) if snapshots else Batch()
        context = ChunkContext.of(self._appends(table), self._columns)
        return Batch(list(self._chunks(table, snapshots, first, last)), context)

    def _chunks(self, table: Table, snapshots: Sequence[Snapshot], first: Offset, last: Offset) -> Iterator[bytes]:
        ids = [snapshot.snapshot_id for snapshot in snapshots]
        if first.files is not None:
            to = last.files if last.snapshot == first.snapshot else None
            yield from self._part(table, ids.pop(0), first.files, to, first.state)
        rest = last.files if ids and last.files is not None else None
        whole = ids if rest is None else ids[:-1]
        if whole:
            scan = self._appends(table).to_snapshot_id_inclusive(whole[-1]).from_snapshot_id_inclusive(whole[0])
            yield from plan_chunks(scan)
        if rest is not None:
            yield from self._part(table, ids[-1], 0, rest, False)

    def _part(self, table: Table, snapshot_id: int, first: int, to: int | None, state: bool) -> list[bytes]:
        """Chunks of some files of a snapshot: the matching files among ``first`` to ``to`` in the order of paths."""
        scan: TableScan | IncrementalAppendScan
        if state:
            scan = self._filtered(table.scan(snapshot_id=snapshot_id, options=self._splits))
        else:
            scan = self._appends(table).to_snapshot_id_inclusive(snapshot_id).from_snapshot_id_inclusive(snapshot_id)
        if not first and to is None:
            return plan_chunks(scan)
        chosen = {task.file.file_path for task in self._files(table, snapshot_id, state)[first:to]}
        return plan_chunks(scan, lambda task: task.file.file_path in chosen)

    def _changes(self, table: Table, first: Offset, last: Offset) -> Batch:
        begin = None if first.snapshot == BEFORE_ALL else first.snapshot
        after = first.files is None
        scan = self._changelog(
            table,
            from_snapshot_id_exclusive=begin if after else None,
            from_snapshot_id_inclusive=None if after else begin,
            to_snapshot_id_inclusive=last.snapshot,
        )
        made = scan.changelog_context
        context = ChangesContext(replace(made, scan=for_executors(made.scan)), scan.projection, self._columns)
        return Batch([pickle.dumps([task]) for task in scan.plan_files()], context)

    # -- scans --------------------------------------------------------------------------------------------------------

    @property
    def _splits(self) -> Mapping[str, str]:
        return self._source.splits

    def _appends(self, table: Table) -> IncrementalAppendScan:
        return self._filtered(table.incremental_append_scan(ref=self._follow.branch, options=self._splits))

    def _changelog(self, table: Table, **bounds: Any) -> IncrementalChangelogScan:
        return self._filtered(table.incremental_changelog_scan(ref=self._follow.branch, **bounds))

    def _filtered(self, scan: S) -> S:
        found: S = self._source.filtered(scan).select(*selected_fields(scan.schema, self._columns))
        return found

    def _files(self, table: Table, snapshot_id: int, state: bool) -> list[FileScanTask]:
        """All files of a snapshot, or the files that it added, in the order in which offsets count them."""
        if state:
            found = table.scan(snapshot_id=snapshot_id).plan_files()
        else:
            found = table.incremental_append_scan(
                from_snapshot_id_inclusive=snapshot_id, to_snapshot_id_inclusive=snapshot_id, ref=self._follow.branch
            ).plan_files()
        return sorted(found, key=lambda task: task.file.file_path)
