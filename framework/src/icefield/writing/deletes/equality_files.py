"""Equality delete files: they delete the rows that equal a row of the file in some columns.

Spec: "Equality Delete Files". They are written without reading the table, and apply to rows of earlier commits in
their own partition. Equality deletes of an unpartitioned spec apply to all partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import Final

import pyarrow as pa

from icefield.abc import Note, WrittenFile
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.manifest import DataFile, DataFileContent
from icefield.partitioning import PartitionSpec
from icefield.partitioning.transforms import VoidTransform
from icefield.schema import Schema
from icefield.types import DoubleType, FloatType, NestedField, StructType, VariantType
from icefield.writing.conforming import Conforming
from icefield.writing.data_writer import conformed, write_conformed
from icefield.writing.deletes.context import DeleteContext
from icefield.writing.files import FileSet, OpenFile

SUFFIX: Final = "-equality-deletes"


def write_equality_deletes(
    context: DeleteContext,
    equality_ids: Collection[int],
    rows: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch],
    *,
    task_id: int = 0,
    attempt: int = 0,
    note: Note | None = None,
) -> list[DataFile]:
    """Write rows into new equality delete files and describe these; nothing is committed.

    A row of the table is deleted if it equals one of these rows in the columns ``equality_ids``; null equals null. The
    columns are found by name, and columns that the files do not need are ignored. In a partitioned table the rows must
    have the source columns of the current spec, and only rows of their partitions are deleted. ``task_id`` and
    ``attempt`` go into the files' names, ``note`` is called with the location of each file before it is begun, by any
    thread.

    On an error every file of this call is aborted or deleted, and the error raised: ``InvalidArgument`` for columns
    that cannot identify a row (see ``EqualityColumns``) and rows that lack one, ``UnsupportedFeature`` for a table of
    version 1, ``StorageError`` and its subclasses for files that cannot be written.
    """
    columns = EqualityColumns(context.schema, context.specs[context.spec_id], equality_ids)
    files = EqualityFiles(context, columns, task_id, attempt, note)
    return write_conformed(conformed(rows, columns.conforming), files)


class EqualityColumns:
    """The columns by which rows are deleted, with the partitioning's source columns that delete files also need.

    Raises ``InvalidArgument`` for a column that cannot identify a row: an unknown or nested column, a column of type
    float, double or variant, or a column in a list or map.
    """

    def __init__(self, schema: Schema, spec: PartitionSpec, ids: Collection[int]) -> None:
        self.ids = tuple(sorted(set(ids)))
        if not self.ids:
            raise InvalidArgument("name the columns by which rows are deleted")
        for id_ in self.ids:
            field = schema.id_to_field.get(id_)
            if field is None:
                raise InvalidArgument(f"the table has no column with the id {id_}", field_id=id_)
            refused, kind = f"rows are not deleted by column '{schema.find_column_name(id_)}'", field.field_type
            if kind.is_nested or isinstance(kind, FloatType | DoubleType | VariantType):
                raise InvalidArgument(f"{refused}, which is of type {kind}", field_id=id_)
            if schema.is_repeated(id_):
                raise InvalidArgument(f"{refused}, which is in a list or map", field_id=id_)
        self.sources = partition_sources(spec)
        self.schema = schema.select_ids({*self.ids, *self.sources})

    def conforming(self, incoming: pa.Schema) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
        """A function that conforms rows to these columns. Raises ``InvalidArgument`` if ``incoming`` lacks one."""
        rows = pa.RecordBatch.from_pylist([], schema=incoming)
        conforming = Conforming(self.schema, self._picked(rows).schema)
        return lambda batch: conforming.apply(self._picked(batch))

    def _picked(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        names, columns = rows.schema.names, rows.columns
        places = dict(zip(names, count(), strict=False))
        if len(places) < len(names):
            twice = next(name for at, name in enumerate(names) if places[name] != at)
            raise InvalidArgument(f"column '{twice}' comes twice", column=twice)
        arrays = [
            self._part(field, columns[places[field.name]], (field.name,))
            if field.name in places
            else self._missing(field, (field.name,))
            for field in self.schema.fields
        ]
        return pa.RecordBatch.from_arrays(arrays, [field.name for field in self.schema.fields])

    def _part(self, field: NestedField, column: pa.Array, path: tuple[str, ...]) -> pa.Array:
        """A column without the fields that the files do not need."""
        if not isinstance(field.field_type, StructType) or not pa.types.is_struct(column.type):
            return column
        children, fields = [], []
        for child in field.field_type.fields:
            at = column.type.get_field_index(child.name)
            below = (*path, child.name)
            children.append(self._missing(child, below) if at < 0 else self._part(child, column.field(at), below))
            fields.append(pa.field(child.name, children[-1].type))
        mask = column.is_null() if column.null_count else None
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)

    def _missing(self, field: NestedField, path: Sequence[str]) -> pa.Array:
        name = ".".join(path)
        if field.field_id in self.sources - set(self.ids):
            raise InvalidArgument(
                f"the rows lack column '{name}', by which the table is partitioned: an equality delete applies to one "
                "partition. Give the column with the rows, or delete by a filter instead",
                column=name,
            )
        raise InvalidArgument(f"the rows lack column '{name}', by which rows are deleted", column=name)


def partition_sources(spec: PartitionSpec) -> frozenset[int]:
    """The ids of the columns that determine a row's partition."""
    fields = [field for field in spec.fields if not isinstance(field.transform, VoidTransform)]
    return frozenset(source for field in fields for source in field.source_ids)


class EqualityFiles(FileSet):
    """The equality delete files of one call. Raises ``UnsupportedFeature`` for a table of version 1."""

    def __init__(
        self, context: DeleteContext, columns: EqualityColumns, task_id: int, attempt: int, note: Note | None
    ) -> None:
        if context.format_version < 2:
            raise UnsupportedFeature("a table of format version 1 has no row-level deletes; upgrade it to 2 or 3")
        target = context.writing(columns.schema, spec=context.specs[context.spec_id])
        super().__init__(target, task_id, attempt, note, suffix=SUFFIX)
        self._ids = columns.ids

    def _describe(self, opened: OpenFile, written: WrittenFile) -> DataFile:
        described = super()._describe(opened, written)
        return replace(described, content=DataFileContent.EQUALITY_DELETES, equality_ids=self._ids)
