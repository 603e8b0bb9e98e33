"""Reading of scan tasks: one file after another, or several in parallel with the order kept."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icefield.abc import FormatAbility, ReadRequest, Split
from icefield.base import compute as pc
from icefield.base.concurrency import map_ahead, read_ahead
from icefield.errors import InvalidFile
from icefield.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression, bind, evaluate, field_ids, relocate
from icefield.expressions.bound import is_bound
from icefield.manifest import DataFile
from icefield.metadata.properties import NAME_MAPPING_DEFAULT
from icefield.partitioning.transforms import IdentityTransform
from icefield.scan.columns.projection import ColumnProjection
from icefield.scan.deletes.keys import Mask
from icefield.scan.deletes.positions import NONE, Positions
from icefield.scan.deletes.store import DeleteStore, OnlyRows, TaskDeletes, shared_store
from icefield.scan.opening import counted, open_file
from icefield.scan.tasks import FileScanTask, ScanContext
from icefield.schema import Schema, schema_to_arrow
from icefield.schema.fields import ids_in
from icefield.schema.name_mapping import carries_ids
from icefield.schema.row_lineage import RowLineage
from icefield.types import NestedField, StructType
from icefield.types.arrow.pieces import with_columns
from icefield.types.reserved import DELETED, FILE, PARTITION, SPEC_ID, is_reserved_id
from icefield.types.values import distinct

BATCH_ROWS = 131_072
"""The maximum number of rows in a batch."""

_REMEMBERED = 16
"""The maximum number of cached projections, by file schema."""

_NO_IDS: Final[frozenset[int]] = frozenset()


def read_task(task: FileScanTask, context: ScanContext) -> Iterator[pa.RecordBatch]:
    """The rows of one task with the columns of ``context.projection``, filtered exactly, in non-empty batches.

    Deleted rows are left out, or, if ``_deleted`` is among the columns, returned and marked.

    Raises ``InvalidFile`` for a damaged file, ``FileMissing``, and ``UnsupportedFeature`` for a file that this version
    cannot read.
    """
    return TaskReader(context).read(task)


def read_tasks(
    tasks: Iterable[FileScanTask], context: ScanContext, limit: int | None = None, *, workers: int | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of many tasks, in the order of the tasks, at most ``limit`` of them.

    Several tasks are read in parallel, ahead of the consumer up to a number of bytes; ``tasks`` is iterated on demand.
    ``workers`` is the number of threads. An error is raised in place of the remaining rows of its task.
    """
    reader = TaskReader(context)
    batches = read_ahead(tasks, reader.read, context.io.workers(workers))
    return batches if limit is None else limited(batches, limit)


def read_positions(task: FileScanTask, context: ScanContext, positions: Positions) -> Iterator[pa.RecordBatch]:
    """The rows of one task at some positions of its file, deleted or not; other parts of the file are skipped.

    ``positions`` are int64 in ascending order. The task's filter applies. Raises as ``read_task`` does.
    """
    return TaskReader(context).read(task, positions)


def read_deletes(tasks: Sequence[FileScanTask], context: ScanContext) -> list[Positions]:
    """The positions of the deleted rows of each task's file, ascending; each delete file is read once.

    For equality deletes the equality columns of the file are read. Raises as ``read_task`` does.
    """
    reader = TaskReader(context)
    return list(map_ahead(tasks, reader.deleted, context.io.workers()))


def limited(batches: Iterator[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    """The first rows of a stream of batches; the stream is closed after them."""
    left = limit
    try:
        while left > 0 and (batch := next(batches, None)) is not None:
            yield batch if batch.num_rows <= left else batch.slice(0, left)
            left -= batch.num_rows
    finally:
        batches.close()  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class _ResidualColumns:
    """The columns to read for one residual filter.

    ``schema`` has the columns of the projection, then columns that only the filter or equality deletes need. ``asked``
    is the number of projected columns; None if no others are needed. ``widened`` are the projected columns that are
    read with more nested fields, each with the projection that removes these fields.
    """

    row_filter: BooleanExpression
    schema: Schema
    asked: int | None = None
    widened: tuple[tuple[int, ColumnProjection], ...] = ()
    projections: list[tuple[pa.Schema, ColumnProjection]] = field(default_factory=list)


class TaskReader:
    """Reads the tasks of one scan. Setup that all files share is done once; threads may share the reader."""

    def __init__(self, context: ScanContext, deletes: DeleteStore | None = None) -> None:
        self._context = context
        self._deletes = shared_store(context) if deletes is None else deletes
        self._wanted: dict[tuple[BooleanExpression, frozenset[int]], _ResidualColumns] = {}
        self._last: tuple[BooleanExpression, frozenset[int], _ResidualColumns] | None = None
        self._sources: dict[int, list[tuple[int, int]]] = {}
        places = (place for place, each in enumerate(context.projection.fields) if each.field_id == DELETED.field_id)
        self._marks = next(places, None)

    def deleted(self, task: FileScanTask) -> Positions:
        """The positions of all deleted rows of a task's file, including equality deletes."""
        deletes = self._deletes.of(task, task.file)
        if deletes is None:
            return NONE
        passes = tuple((one.ids, partial(iter, [one])) for one in deletes.lookups)
        return self._swept(task, TaskDeletes(deletes.positions, (), passes + deletes.passes)).positions

    def read(self, task: FileScanTask, only: Positions | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of one task; with ``only``, the rows at these positions, deleted or not."""
        file = task.file
        wanted = self._wanted_for(task.residual, _NO_IDS)
        if isinstance(wanted.row_filter, AlwaysFalse) or (only is not None and not len(only)):
            return
        if task.start > 0 and FormatAbility.SPLITS not in self._abilities(file):
            return  # the task with the first byte reads the whole file
        deletes = self._deletes.of(task, file) if only is None else OnlyRows(only, count=file.record_count)
        if deletes is not None and only is None:
            deletes = self._swept(task, deletes)
            count = file.record_count
            if self._marks is None and 0 < count == np.searchsorted(deletes.positions, count):
                return  # all rows are deleted
            wanted = self._wanted_for(task.residual, deletes.ids)
        by_position = deletes is not None and len(deletes.positions) > 0
        skipped = deletes if by_position else None
        with closing(self._batches(task, wanted, skipped, positions=by_position)) as batches:
            for batch, positions in batches:
                rows = self._finished(batch, wanted, deletes, positions)
                if rows.num_rows:
                    yield rows

    def _abilities(self, file: DataFile) -> frozenset[FormatAbility]:
        return self._context.io.file_format(file.file_format).abilities

    def _batches(
        self, task: FileScanTask, wanted: _ResidualColumns, skipped: TaskDeletes | None, *, positions: bool
    ) -> Generator[tuple[pa.RecordBatch, pa.Array | None], None, None]:
        """The wanted columns of a file, with the positions of the rows. The format may leave out ``skipped`` rows."""
        file, abilities = task.file, self._abilities(task.file)
        filters = FormatAbility.FILTERS in abilities and not isinstance(wanted.row_filter, AlwaysTrue)
        splits = FormatAbility.SPLITS in abilities and not task.is_whole_file
        skips = FormatAbility.SKIPS in abilities and self._marks is None
        with open_file(self._context.io, file) as reader:
            projection = self._projection(task, file, wanted, reader.schema)
            columns = projection.file_columns
            request = ReadRequest(
                columns,
                row_filter=relocate(wanted.row_filter, columns) if filters else None,
                split=Split(task.start, task.length) if splits else None,
                batch_rows=BATCH_ROWS,
                positions=projection.positions or positions,
                dictionaries=projection.held_dictionaries if FormatAbility.DICTIONARIES in abilities else frozenset(),
                skipped_rows=skipped.skipped if skipped is not None and skips else None,
            )
            for batch in counted(file, reader, request):
                yield projection.apply(batch), batch.column(batch.num_columns - 1) if positions else None

    def _swept(self, task: FileScanTask, deletes: TaskDeletes) -> TaskDeletes:
        """Replace equality keys that do not fit into memory by the positions of their rows.

        For each part of the keys, the equality columns of the file are read once.
        """
        if not deletes.passes:
            return deletes
        found = [deletes.positions]
        for ids, passes in deletes.passes:
            wanted = _ResidualColumns(AlwaysTrue(), self._deletes.table_schema(ids).select_ids(ids))
            for lookup in passes():
                for batch, positions in self._batches(task, wanted, None, positions=True):
                    found.append(np.asarray(positions)[np.sort(lookup.matches(wanted.schema, batch))])
        return TaskDeletes(distinct(*found), deletes.lookups)

    def _projection(
        self, task: FileScanTask, file: DataFile, wanted: _ResidualColumns, file_schema: pa.Schema
    ) -> ColumnProjection:
        """The projection from the file to the wanted columns; cached by file schema if it needs no constants."""
        for known, projection in wanted.projections:
            if known.equals(file_schema, check_metadata=True):
                return projection.at(file.file_path)
        mapping, constants = self._context.name_mapping, self._constants(file, wanted.schema)
        if mapping is None:
            _check_ids(file, file_schema, wanted.schema, constants)
        mapped = file_schema if mapping is None else mapping.apply(file_schema)
        lineage = None if file.first_row_id is None else RowLineage(file.first_row_id, task.data_sequence_number)
        projection = ColumnProjection.resolve(
            wanted.schema,
            mapped,
            constants,
            location=file.file_path,
            lineage=lineage,
            dictionaries=self._context.dictionaries,
        )
        if projection.reusable and len(wanted.projections) < _REMEMBERED:
            wanted.projections.append((file_schema, projection))
        return projection

    def _finished(
        self, batch: pa.RecordBatch, wanted: _ResidualColumns, deletes: TaskDeletes | None, positions: pa.Array | None
    ) -> pa.RecordBatch:
        """The matching rows that are not deleted, without the columns that were only needed to find them."""
        mask = None if isinstance(wanted.row_filter, AlwaysTrue) else evaluate(wanted.row_filter, batch)
        gone: Mask | None = None
        if deletes is not None and (mask is None or mask.true_count):
            gone = deletes.rows(wanted.schema, batch, positions)
        if wanted.asked is not None:
            batch = batch.select(range(wanted.asked))
        cuts = ((at, cut.apply(batch.select([at]))) for at, cut in wanted.widened)
        batch = with_columns(batch, {at: (column.schema.field(0), column.column(0)) for at, column in cuts})
        if gone is not None:
            if self._marks is not None:
                batch = batch.set_column(self._marks, batch.schema.field(self._marks), pa.array(gone))
            else:
                kept = pa.array(~gone)
                mask = kept if mask is None else pc.and_(mask, kept)
        if mask is None or mask.true_count == len(mask):
            return batch
        if mask.true_count == 0:
            return batch.slice(0, 0)
        if batch.num_columns:
            return batch.filter(mask)
        return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), mask.true_count, [None]))

    def _wanted_for(self, residual: BooleanExpression, keys: frozenset[int]) -> _ResidualColumns:
        # Tasks share residual objects, and hashing a long expression is slow.
        last = self._last
        if last is not None and last[0] is residual and last[1] == keys:
            return last[2]
        found = self._wanted.get((residual, keys))
        if found is None:
            # A plan binds its residuals; only a task that was built by hand may have an unbound residual.
            context, bound = self._context, residual
            if not is_bound(residual):
                bound = bind(context.schema, residual, context.case_sensitive)
            found = _wanted(context.projection, bound, keys, self._deletes.table_schema(keys))
            self._wanted[residual, keys] = found
        self._last = (residual, keys, found)
        return found

    def _constants(self, file: DataFile, schema: Schema) -> dict[int, Any]:
        """The constant columns of a file: identity partition values, and metadata columns."""
        constants = {source: file.partition[place] for source, place in self._identities(file.spec_id)}
        constants[FILE.field_id] = file.file_path
        constants[SPEC_ID.field_id] = file.spec_id
        partition = schema.id_to_field.get(PARTITION.field_id)
        if partition is not None and isinstance(partition.field_type, StructType):
            spec = self._context.specs.get(file.spec_id)
            values = {
                each.field_id: value for each, value in zip(spec.fields if spec else (), file.partition, strict=True)
            }
            constants[PARTITION.field_id] = tuple(values.get(child.field_id) for child in partition.field_type.fields)
        return constants

    def _identities(self, spec_id: int) -> list[tuple[int, int]]:
        """The source ids of a spec's identity fields, with their indexes in the partition tuple."""
        if spec_id not in self._sources:
            spec = self._context.specs.get(spec_id)
            self._sources[spec_id] = [
                (each.source_id, place)
                for place, each in enumerate(spec.fields if spec else ())
                if isinstance(each.transform, IdentityTransform)
            ]
        return self._sources[spec_id]


def _check_ids(file: DataFile, held: pa.Schema, wanted: Schema, constants: dict[int, Any]) -> None:
    """Refuse a file without field ids if there is no name mapping: its columns would all be null, as if empty."""
    if not len(held) or carries_ids(held):
        return
    unknown = [f.name for f in wanted.fields if f.field_id not in constants and not is_reserved_id(f.field_id)]
    if unknown:
        raise InvalidFile(
            f"{file.file_path} has no field ids and the table has no name mapping, so nothing states which of its "
            f"columns is '{unknown[0]}'; set the table property '{NAME_MAPPING_DEFAULT.name}'",
            location=file.file_path,
        )


def _wanted(projection: Schema, row_filter: BooleanExpression, keys: frozenset[int], table: Schema) -> _ResidualColumns:
    extra = (field_ids(row_filter) | keys) - projection.field_ids
    if not extra:
        return _ResidualColumns(row_filter, projection)
    # Added nested fields go into their columns in the projection; other added columns follow the projection.
    leaves = {id_ for column in projection.fields for id_ in _leaf_ids(column)}
    added = {column.field_id: column for column in table.select_ids(leaves | extra).fields}
    columns = [added.pop(column.field_id, column) for column in projection.fields]
    widened = tuple(
        (at, ColumnProjection.resolve(Schema(asked), schema_to_arrow(Schema(read))))
        for at, (asked, read) in enumerate(zip(projection.fields, columns, strict=True))
        if asked != read
    )
    return _ResidualColumns(row_filter, Schema(*columns, *added.values()), len(projection), widened)


def _leaf_ids(column: NestedField) -> list[int]:
    if isinstance(column.field_type, StructType) and column.field_type.fields:
        return [id_ for child in column.field_type.fields for id_ in _leaf_ids(child)]
    return list(ids_in(column))
