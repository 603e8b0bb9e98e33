"""Reading the tasks of a plan: one file after another, or several at once with their order kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from icefield.abc import FormatAbility, FormatReader, InputFile, ReadRequest, Split
from icefield.errors import InvalidFile, UnsupportedFeature
from icefield.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression, bind, evaluate, field_ids, relocate
from icefield.manifest import DataFile
from icefield.metadata.properties import NAME_MAPPING_DEFAULT
from icefield.partitioning.transforms import IdentityTransform
from icefield.scan.column_projection import ColumnProjection
from icefield.scan.parallel import in_order
from icefield.scan.tasks import FileScanTask, ScanContext
from icefield.schema import Schema, schema_to_arrow
from icefield.schema.fields import ids_in
from icefield.schema.name_mapping import carries_ids
from icefield.schema.row_lineage import RowLineage
from icefield.types import NestedField, StructType
from icefield.types.reserved import FILE, PARTITION, SPEC_ID, is_reserved_id

BATCH_ROWS = 131_072
"""The most rows in one batch."""

_REMEMBERED = 16
"""Schemas of files whose projection is kept."""


def read_task(task: FileScanTask, context: ScanContext) -> Iterator[pa.RecordBatch]:
    """The rows of one task under ``context.projection``, filtered exactly; batches may be few and are never empty.

    Raises ``InvalidFile`` for a damaged file, ``FileMissing``, and ``UnsupportedFeature`` for what this version
    cannot read.
    """
    return TaskReader(context).read(task)


def read_tasks(
    tasks: Iterable[FileScanTask], context: ScanContext, limit: int | None = None, *, workers: int | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of many tasks, in the order of the tasks, at most ``limit`` of them.

    Several tasks are read at once, as far ahead as a bound of bytes allows; ``tasks`` is drawn from as they are
    needed. ``workers`` is the number of threads. An error ends the reading where the task's rows would have begun.
    """
    reader = TaskReader(context)
    batches = in_order(tasks, reader.read, workers)
    return batches if limit is None else _limited(batches, limit)


def _limited(batches: Iterator[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    left = limit
    try:
        while left > 0 and (batch := next(batches, None)) is not None:
            yield batch if batch.num_rows <= left else batch.slice(0, left)
            left -= batch.num_rows
    finally:
        batches.close()  # type: ignore[attr-defined]


# What files begin with: those of the specification in plain, and encrypted by it or by Parquet.
_PLAIN: Final = {"parquet": b"PAR1", "avro": b"Obj\x01", "orc": b"ORC"}
_ENCRYPTED: Final = (b"AGS1", b"PARE")


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is read for one residual filter: the projection, and after it the columns that only the filter needs.

    ``asked`` is how many columns the projection has; None when the filter needs no more than those. ``widened`` are
    the columns of the projection that the filter needs more of, with what cuts them back.
    """

    row_filter: BooleanExpression
    schema: Schema
    asked: int | None = None
    widened: tuple[tuple[int, ColumnProjection], ...] = ()
    projections: list[tuple[pa.Schema, ColumnProjection]] = field(default_factory=list)


class TaskReader:
    """Reads the tasks of one scan. What is the same for all files is settled once; threads may share it."""

    def __init__(self, context: ScanContext) -> None:
        self._context = context
        self._wanted: dict[BooleanExpression, _Wanted] = {}
        self._last: tuple[BooleanExpression, _Wanted] | None = None
        self._sources: dict[int, list[tuple[int, int]]] = {}

    def read(self, task: FileScanTask) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        file = task.file
        _check_readable(task, file)
        wanted = self._wanted_for(task.residual)
        if isinstance(wanted.row_filter, AlwaysFalse):
            return
        file_format = self._context.io.file_format(file.file_format)
        if FormatAbility.SPLITS not in file_format.abilities and task.start > 0:
            return  # the task that has the first byte reads the whole file
        source = self._context.io.open_input(file.file_path)
        if file.key_metadata is not None:
            _refuse_encrypted(file, source)
        with file_format.open_reader(source, file.file_path, size=file.file_size_in_bytes) as reader:
            yield from self._rows(task, file, wanted, reader, file_format.abilities)

    def _rows(
        self,
        task: FileScanTask,
        file: DataFile,
        wanted: _Wanted,
        reader: FormatReader,
        abilities: frozenset[FormatAbility],
    ) -> Iterator[pa.RecordBatch]:
        projection = self._projection(task, file, wanted, reader.schema)
        columns = projection.file_columns
        filters = FormatAbility.FILTERS in abilities and not isinstance(wanted.row_filter, AlwaysTrue)
        splits = FormatAbility.SPLITS in abilities and not task.is_whole_file
        request = ReadRequest(
            columns,
            row_filter=relocate(wanted.row_filter, columns) if filters else None,
            split=Split(task.start, task.length) if splits else None,
            batch_rows=BATCH_ROWS,
            positions=projection.positions,
            dictionaries=projection.held_dictionaries if FormatAbility.DICTIONARIES in abilities else frozenset(),
        )
        for batch in _counted(file, reader, request):
            rows = self._finished(projection.apply(batch), wanted)
            if rows.num_rows:
                yield rows

    def _projection(
        self, task: FileScanTask, file: DataFile, wanted: _Wanted, file_schema: pa.Schema
    ) -> ColumnProjection:
        """How the file becomes what is wanted; settled once for files of one schema that need no constants."""
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

    def _finished(self, batch: pa.RecordBatch, wanted: _Wanted) -> pa.RecordBatch:
        """The rows that match, without the columns that only the filter needed."""
        mask = None if isinstance(wanted.row_filter, AlwaysTrue) else evaluate(wanted.row_filter, batch)
        if wanted.asked is not None:
            batch = batch.select(range(wanted.asked))
        for at, cut in wanted.widened:
            column = cut.apply(batch.select([at]))
            batch = batch.set_column(at, column.schema.field(0), column.column(0))
        if mask is None or mask.true_count == len(mask):
            return batch
        if mask.true_count == 0:
            return batch.slice(0, 0)
        return batch.filter(mask) if batch.num_columns else _bare_rows(mask.true_count)

    def _wanted_for(self, residual: BooleanExpression) -> _Wanted:
        # Tasks share residuals, and to hash one takes as long as it is.
        last = self._last
        if last is not None and last[0] is residual:
            return last[1]
        found = self._wanted.get(residual)
        if found is None:
            found = self._wanted[residual] = _wanted(self._context, residual)
        self._last = (residual, found)
        return found

    def _constants(self, file: DataFile, schema: Schema) -> dict[int, Any]:
        """What is known of each row without reading: identity partition values, and the metadata columns."""
        constants = {source: file.partition[place] for source, place in self._identities(file.spec_id)}
        constants[FILE.field_id] = file.file_path
        constants[SPEC_ID.field_id] = file.spec_id
        partition = schema.id_to_field.get(PARTITION.field_id)
        if partition is not None and isinstance(partition.field_type, StructType):
            constants[PARTITION.field_id] = self._partition(file, partition.field_type)
        return constants

    def _identities(self, spec_id: int) -> list[tuple[int, int]]:
        """The sources of a spec's identity fields, with their places in the partition tuple."""
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


def _check_readable(task: FileScanTask, file: DataFile) -> None:
    if task.delete_files:
        raise UnsupportedFeature(
            f"{file.file_path} has row-level deletes, which this version cannot apply", location=file.file_path
        )


def _refuse_encrypted(file: DataFile, source: InputFile) -> None:
    """Raise ``UnsupportedFeature`` for a file that does not begin as one in plain. Impala puts keys on plain files."""
    magic = source.read(4)
    source.seek(0)
    plain = _PLAIN.get(file.file_format.lower())
    if magic.startswith(_ENCRYPTED) or (plain is not None and not magic.startswith(plain)):
        source.close()
        raise UnsupportedFeature(
            f"{file.file_path} is encrypted, and cannot be decrypted here", location=file.file_path
        )


def _counted(file: DataFile, reader: FormatReader, request: ReadRequest) -> Iterator[pa.RecordBatch]:
    """What is read of a file that holds as many rows as its manifest says.

    The format may tell when the file is opened; else the rows are counted where all of them are read.
    """
    known = reader.record_count
    if known is not None:
        _check_count(file, known)
        yield from reader.read(request)
        return
    rows = 0
    for batch in reader.read(request):
        rows += batch.num_rows
        yield batch
    if request.split is None and request.row_filter is None:
        _check_count(file, rows)


def _check_count(file: DataFile, rows: int) -> None:
    # A negative count is not known.
    if 0 <= file.record_count != rows:
        raise InvalidFile(
            f"{file.file_path} holds {rows} rows, and its manifest says {file.record_count}: the file is another, or "
            "the manifest is wrong; nothing of it is read",
            location=file.file_path,
        )


def _check_ids(file: DataFile, held: pa.Schema, wanted: Schema, constants: dict[int, Any]) -> None:
    """Refuse a file of which nobody can say what its columns are: all would be null, as if the data were not there."""
    if not len(held) or carries_ids(held):
        return
    unknown = [f.name for f in wanted.fields if f.field_id not in constants and not is_reserved_id(f.field_id)]
    if unknown:
        raise InvalidFile(
            f"{file.file_path} has no field ids and the table has no name mapping, so nothing tells which of its "
            f"columns is '{unknown[0]}'; set the table property '{NAME_MAPPING_DEFAULT.name}'",
            location=file.file_path,
        )


def _wanted(context: ScanContext, residual: BooleanExpression) -> _Wanted:
    row_filter = bind(context.schema, residual, context.case_sensitive)
    projection = context.projection
    extra = field_ids(row_filter) - projection.field_ids
    if not extra:
        return _Wanted(row_filter, projection)
    schema = _with_fields(context.schema, projection, extra)
    pairs = enumerate(zip(projection.fields, schema.fields, strict=False))
    widened = tuple(
        (at, ColumnProjection.resolve(Schema(asked), schema_to_arrow(Schema(read))))
        for at, (asked, read) in pairs
        if asked != read
    )
    return _Wanted(row_filter, schema, len(projection), widened)


def _with_fields(table: Schema, projection: Schema, extra: frozenset[int]) -> Schema:
    """The projection with more of the table's fields: inside its own columns where they lie there, else after them."""
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
