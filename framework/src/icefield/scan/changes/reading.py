"""Reading the tasks of a plan of changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from icefield.base.concurrency import read_ahead
from icefield.manifest import DataFile
from icefield.scan.changes.matching import CHANGE_TYPES, DELETE, INSERT, differing, settle
from icefield.scan.changes.row_buffer import RowBuffer
from icefield.scan.changes.tasks import ChangedFile, ChangelogContext, ChangelogScanTask
from icefield.scan.columns.projection import ColumnProjection
from icefield.scan.deletes.key_columns import columns_of
from icefield.scan.deletes.keys import Words, hash_keys
from icefield.scan.deletes.positions import NONE
from icefield.scan.deletes.store import shared_store
from icefield.scan.reading import BATCH_ROWS, TaskReader
from icefield.scan.tasks import FileScanTask
from icefield.schema import Schema, schema_to_arrow
from icefield.types import VariantType
from icefield.types.arrow.equality import plain
from icefield.types.arrow.pieces import one_array
from icefield.types.reserved import CHANGE_ORDINAL, CHANGE_TYPE

_WORKERS: Final = 2
"""The number of threads that read the files of one task for comparison; a single thread compares the rows."""

_CHANGE: Final = pa.field("change", pa.int64(), nullable=False)


def read_changes(
    tasks: Iterable[ChangelogScanTask], context: ChangelogContext, *, workers: int | None = None
) -> Iterator[pa.RecordBatch]:
    """The changes of many tasks, in the order of the tasks, several of them read at once by ``workers`` threads."""
    workers = context.scan.io.workers(workers)
    return read_ahead(tasks, ChangelogReader(context).read, workers)


class ChangelogReader:
    """Reads the tasks of one scan of changes. Threads may share it."""

    def __init__(self, context: ChangelogContext) -> None:
        self._context = context
        deletes = shared_store(context.scan)
        self._given = TaskReader(context.scan, deletes)
        self._matched = TaskReader(replace(context.scan, projection=context.matched), deletes)
        fields = context.scan.projection.fields
        count = sum(field.field_id in context.scan.schema.field_ids for field in fields)
        self._narrow = ColumnProjection.resolve(Schema(*fields[:count]), schema_to_arrow(context.matched))
        places = {field.field_id: place for place, field in enumerate(context.matched.fields)}
        self._others = [places[field.field_id] for field in fields[count:]]
        self._schema = schema_to_arrow(Schema(*fields, *context.changes.fields))
        self._hashed = [
            (place, field.field_type)
            for place, field in ((place, context.matched.fields[place]) for place in context.compared)
            if not field.field_type.is_nested and not isinstance(field.field_type, VariantType)
        ]

    def read(self, task: ChangelogScanTask) -> Iterator[pa.RecordBatch]:
        """The changes of one task: rows, and the columns that state the change. Batches are never empty."""
        if task.is_matched:
            yield from self._compared(task)
            return
        for changed in task.files:
            for inserted, rows in _changed_rows(self._given, changed):
                count = rows.num_rows
                types = np.full(count, INSERT if inserted else DELETE, np.int8)
                ordinals = np.full(count, changed.ordinal, np.int64)
                yield self._stated(rows.columns, types, ordinals, {changed.ordinal: changed.snapshot_id})

    def _compared(self, task: ChangelogScanTask) -> Iterator[pa.RecordBatch]:
        context = self._context
        snapshots = {changed.ordinal: changed.snapshot_id for changed in task.files}
        schema = schema_to_arrow(context.matched).append(_CHANGE)
        expected = sum(max(0, changed.task.file.record_count) for changed in task.files)

        def read(changed: ChangedFile) -> Iterator[pa.RecordBatch]:
            for inserted, rows in _changed_rows(self._matched, changed):
                change = pa.array(np.full(rows.num_rows, 2 * changed.ordinal + inserted, np.int64))
                yield pa.RecordBatch.from_arrays([*rows.columns, change], schema=schema)

        with RowBuffer(schema, self._compacted, self._hashes, context.held_bytes, expected) as buffer:
            for batch in read_ahead(_interleaved(task.files), read, _WORKERS):
                buffer.add(batch)
            for part in buffer.parts():
                yield from self._settled(part, snapshots)

    def _compacted(self, part: pa.Table) -> pa.RecordBatch:
        """The rows without the carried-over rows of each snapshot."""
        columns = [one_array(column) for column in part.columns]
        changes = columns[-1].to_numpy()
        compared = [columns[place] for place in self._context.compared]
        if self._context.net:
            compared.insert(0, pa.array(changes >> 1))
        return pa.RecordBatch.from_arrays(columns, schema=part.schema).take(
            pa.array(differing(compared, changes & 1 == 1))
        )

    def _settled(self, part: pa.Table, snapshots: dict[int, int]) -> Iterator[pa.RecordBatch]:
        context = self._context
        if not part.num_rows:
            return
        columns = [one_array(column) for column in part.columns]
        changes = columns.pop().to_numpy()
        if context.net and np.any(changes[1:] < changes[:-1]):
            order = pa.array(np.argsort(changes, kind="stable"))
            columns, changes = [column.take(order) for column in columns], changes[order.to_numpy()]
        rows = pa.RecordBatch.from_arrays(columns, schema=schema_to_arrow(context.matched))
        names = ", ".join(context.matched.find_column_name(id_) or str(id_) for id_ in context.keys)
        settled = settle(
            [rows.column(place) for place in context.compared],
            columns_of(context.matched, rows, context.keys),
            changes,
            net=context.net,
            names=names,
        )
        for start in range(0, len(settled.places), BATCH_ROWS):
            places = settled.places[start : start + BATCH_ROWS]
            chosen = rows.take(pa.array(places))
            given = [*self._narrow.apply(chosen).columns, *(chosen.column(place) for place in self._others)]
            yield self._stated(given, settled.types[start : start + BATCH_ROWS], changes[places] >> 1, snapshots)

    def _stated(
        self,
        columns: list[pa.Array],
        types: np.ndarray[tuple[int], np.dtype[np.int8]],
        ordinals: np.ndarray[tuple[int], np.dtype[np.int64]],
        snapshots: dict[int, int],
    ) -> pa.RecordBatch:
        """Rows with the columns that state the change."""
        made = []
        for field in self._context.changes.fields:
            if field.field_id == CHANGE_TYPE.field_id:
                made.append(pa.array(CHANGE_TYPES).take(pa.array(types)))
            elif field.field_id == CHANGE_ORDINAL.field_id:
                made.append(pa.array(ordinals.astype(np.int32)))
            else:
                known = np.array([*snapshots], np.int64)
                numbers = np.array([*snapshots.values()], np.int64)
                made.append(pa.array(numbers[np.searchsorted(known, ordinals)]))
        return pa.RecordBatch.from_arrays([*columns, *made], schema=self._schema)

    def _hashes(self, rows: pa.RecordBatch) -> Words | None:
        """Hashes that agree for equal rows, or for rows of one key; None if no column can be hashed."""
        context = self._context
        if context.keys:
            types = [context.matched.find_type(id_) for id_ in context.keys]
            return hash_keys([plain(column) for column in columns_of(context.matched, rows, context.keys)], types)
        if not self._hashed:
            return None
        return hash_keys([plain(rows.column(place)) for place, _ in self._hashed], [kind for _, kind in self._hashed])


def _interleaved(files: Sequence[ChangedFile]) -> list[ChangedFile]:
    """Order files so that removed files are next to their replacements, by the positions of their rows.

    A rewrite mostly keeps the order of rows: a carried-over row is inserted soon after its deletion is read.
    """
    seen: dict[tuple[int, bool], int] = {}
    places = []
    for at, changed in enumerate(files):
        side = changed.ordinal, changed.before is None
        places.append((changed.ordinal, seen.get(side, 0), at))
        seen[side] = seen.get(side, 0) + max(1, changed.task.file.record_count)
    return [files[at] for _, _, at in sorted(places)]


def _changed_rows(reader: TaskReader, changed: ChangedFile) -> Iterator[tuple[bool, pa.RecordBatch]]:
    """The rows of a file that a snapshot changed, with whether they were inserted."""
    before, after = changed.before, changed.after
    if before is None or after is None:
        task = changed.task
        for rows in reader.read(task):
            yield after is not None, rows
        return
    # One Puffin file may contain several deletion vectors.
    old, new = ({(one.file_path, one.content_offset): one for one in task.delete_files} for task in (before, after))
    come = reader.deleted(_with_deletes(after, [new[key] for key in new.keys() - old.keys()]))
    gone = reader.deleted(_with_deletes(before, [old[key] for key in old.keys() - new.keys()]))
    for inserted, candidates, others in ((False, come, before), (True, gone, after)):
        rows_of = np.setdiff1d(candidates, reader.deleted(others), assume_unique=True) if len(candidates) else NONE
        if len(rows_of):
            for rows in reader.read(others, rows_of):
                yield inserted, rows


def _with_deletes(task: FileScanTask, deletes: list[DataFile]) -> FileScanTask:
    return FileScanTask(
        task.file,
        task.residual,
        delete_files=tuple(deletes),
        data_sequence_number=task.data_sequence_number,
        file_sequence_number=task.file_sequence_number,
    )
