"""Reading of scan tasks: one file after another, or several in parallel with the order kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.abc import FormatAbility, FormatReader, ReadRequest, Split
from icefield.base.concurrency import map_ahead, read_ahead
from icefield.errors import InvalidFile
from icefield.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression, bind, evaluate, field_ids, relocate
from icefield.manifest import DataFile
from icefield.metadata.properties import NAME_MAPPING_DEFAULT
from icefield.partitioning.transforms import IdentityTransform
from icefield.scan.column_projection import ColumnProjection
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


def read_task(task: FileScanTask, context: ScanContext, deletes: DeleteStore | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of one task with the columns of ``context.projection``, filtered exactly, in non-empty batches.

    Deleted rows are left out, or, if ``_deleted`` is among the columns, returned and marked. ``deletes`` is a store of
    delete files to share with other tasks.

    Raises ``InvalidFile`` for a damaged file, ``FileMissing``, and ``UnsupportedFeature`` for a file that this version
    cannot read.
    """
    return TaskReader(context, deletes).read(task)


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
        if deletes.lookups:
            passes = tuple((one.ids, partial(iter, [one])) for one in deletes.lookups)
            deletes = TaskDeletes(deletes.positions, (), passes + deletes.passes)
        return self._swept(
            task, task.file, deletes, self._context.io.file_format(task.file.file_format).abilities
        ).positions

    def read(self, task: FileScanTask, only: Positions | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of one task; with ``only``, the rows at these positions, deleted or not."""
        file = task.file
        wanted = self._wanted_for(task.residual, _NO_IDS)
        if isinstance(wanted.row_filter, AlwaysFalse) or (only is not None and not len(only)):
            return
        abilities = self._context.io.file_format(file.file_format).abilities
        if FormatAbility.SPLITS not in abilities and task.start > 0:
            return  # the task with the first byte reads the whole file
        deletes = self._deletes.of(task, file) if only is None else OnlyRows(only, count=file.record_count)
        if deletes is not None and only is None:
            deletes = self._swept(task, file, deletes, abilities)
            if self._marks is None and _is_empty(file, deletes):
                return
            wanted = self._wanted_for(task.residual, deletes.ids)
        with open_file(self._context.io, file) as reader:
            yield from self._rows(task, file, wanted, reader, abilities, deletes)

    def _rows(
        self,
        task: FileScanTask,
        file: DataFile,
        wanted: _ResidualColumns,
        reader: FormatReader,
        abilities: frozenset[FormatAbility],
        deletes: TaskDeletes | None,
    ) -> Iterator[pa.RecordBatch]:
        projection = self._projection(task, file, wanted, reader.schema)
        columns = projection.file_columns
        filters = FormatAbility.FILTERS in abilities and not isinstance(wanted.row_filter, AlwaysTrue)
        splits = FormatAbility.SPLITS in abilities and not task.is_whole_file
        by_position = deletes is not None and len(deletes.positions) > 0
        skips = deletes is not None and by_position and self._marks is None and FormatAbility.SKIPS in abilities
        request = ReadRequest(
            columns,
            row_filter=relocate(wanted.row_filter, columns) if filters else None,
            split=Split(task.start, task.length) if splits else None,
            batch_rows=BATCH_ROWS,
            positions=projection.positions or by_position,
            dictionaries=projection.held_dictionaries if FormatAbility.DICTIONARIES in abilities else frozenset(),
            skipped_rows=deletes.skipped if deletes is not None and skips else None,
        )
        for batch in counted(file, reader, request):
            positions = batch.column(batch.num_columns - 1) if by_position else None
            rows = self._finished(projection.apply(batch), wanted, deletes, positions)
            if rows.num_rows:
                yield rows

    def _swept(
        self, task: FileScanTask, file: DataFile, deletes: TaskDeletes, abilities: frozenset[FormatAbility]
    ) -> TaskDeletes:
        """Replace equality keys that do not fit into memory by the positions of their rows.

        For each part of the keys, the equality columns of the file are read once.
        """
        found = [deletes.positions]
        for ids, passes in deletes.passes:
            schema = self._deletes.table_schema(ids).select_ids(ids)
            wanted = _ResidualColumns(AlwaysTrue(), schema)
            splits = FormatAbility.SPLITS in abilities and not task.is_whole_file
            for lookup in passes():
                with open_file(self._context.io, file) as reader:
                    projection = self._projection(task, file, wanted, reader.schema)
                    split = Split(task.start, task.length) if splits else None
                    request = ReadRequest(projection.file_columns, split=split, batch_rows=BATCH_ROWS, positions=True)
                    for batch in counted(file, reader, request):
                        rows = lookup.matches(schema, projection.apply(batch))
                        found.append(batch.column(batch.num_columns - 1).to_numpy()[np.sort(rows)])
        return TaskDeletes(distinct(*found), deletes.lookups) if deletes.passes else deletes

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
        return batch.filter(mask) if batch.num_columns else _bare_rows(mask.true_count)

    def _wanted_for(self, residual: BooleanExpression, keys: frozenset[int]) -> _ResidualColumns:
        # Tasks share residual objects, and hashing a long expression is slow.
        last = self._last
        if last is not None and last[0] is residual and last[1] == keys:
            return last[2]
        found = self._wanted.get((residual, keys))
        if found is None:
            found = _wanted(self._context, residual, keys, self._deletes.table_schema(keys))
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
            constants[PARTITION.field_id] = self._partition(file, partition.field_type)
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

    def _partition(self, file: DataFile, kind: StructType) -> tuple[Any, ...]:
        spec = self._context.specs.get(file.spec_id)
        fields = spec.fields if spec else ()
        values = {each.field_id: value for each, value in zip(fields, file.partition, strict=True)}
        return tuple(values.get(child.field_id) for child in kind.fields)


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


def _is_empty(file: DataFile, deletes: TaskDeletes) -> bool:
    """Whether positions delete all rows of a file."""
    count = file.record_count
    return count > 0 and int(np.searchsorted(deletes.positions, count)) == count


def _wanted(context: ScanContext, residual: BooleanExpression, keys: frozenset[int], table: Schema) -> _ResidualColumns:
    row_filter = bind(context.schema, residual, context.case_sensitive)
    projection = context.projection
    extra = (field_ids(row_filter) | keys) - projection.field_ids
    if not extra:
        return _ResidualColumns(row_filter, projection)
    schema = _with_fields(table, projection, extra)
    pairs = enumerate(zip(projection.fields, schema.fields, strict=False))
    widened = tuple(
        (at, ColumnProjection.resolve(Schema(asked), schema_to_arrow(Schema(read))))
        for at, (asked, read) in pairs
        if asked != read
    )
    return _ResidualColumns(row_filter, schema, len(projection), widened)


def _with_fields(table: Schema, projection: Schema, extra: frozenset[int]) -> Schema:
    """The projection with more fields of the table: nested fields inside its own columns, other columns after them."""
    leaves = {id_ for column in projection.fields for id_ in _leaf_ids(column)}
    widened = {column.field_id: column for column in table.select_ids(leaves | extra).fields}
    columns = [widened.pop(column.field_id, column) for column in projection.fields]
    return Schema(*columns, *widened.values())


def _leaf_ids(column: NestedField) -> list[int]:
    if isinstance(column.field_type, StructType) and column.field_type.fields:
        return [id_ for child in column.field_type.fields for id_ in _leaf_ids(child)]
    return list(ids_in(column))


def _bare_rows(rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None]))
