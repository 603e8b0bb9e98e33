"""Projection of file columns to the columns of a scan, by field id, at every depth.

This module has the rules for missing columns, once for every format. Their order is (spec: Column Projection): the
value of an identity partition field, the name mapping (already applied to the file's schema), the field's
``initial-default``, null. A required field that none of them fills is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from icefield.base.concurrency import lazy
from icefield.errors import IcefieldError, InvalidFile, UnsupportedFeature
from icefield.scan.columns.conversions import IncompatibleType, conversion, is_shredded, put_together, variants_of
from icefield.schema import Schema
from icefield.schema.row_lineage import LINEAGE_IDS, RowLineage
from icefield.types import IcebergType, NestedField, StructType, UnknownType, VariantType
from icefield.types.arrow.nested import may_be_unsettled, settled
from icefield.types.arrow.reshape import Convert, Fill, Path, Rules, Shape, Slot, resolve_struct
from icefield.types.arrow.types import VARIANT_ARROW, field_id, to_arrow_field, with_dictionaries
from icefield.types.reserved import DELETED, POS, ROW_ID, is_reserved_id
from icefield.types.values import constant_array, initial_value


@dataclass(frozen=True)
class ColumnProjection:
    """Converts the batches of one file to batches of the read schema.

    ``schema`` is the Arrow schema of the result of ``apply``; ``file_columns`` is the part of the file's schema that
    must be read; ``positions`` says whether the file's batches must have the positions of the rows as an additional
    last column. ``reusable`` says that no constant is needed, so that it works for any file of the same schema. A file
    column that needs no conversion is returned without a copy.
    """

    schema: pa.Schema
    file_columns: pa.Schema
    positions: bool
    reusable: bool
    _slots: tuple[Slot, ...]
    _location: str
    _lineage: RowLineage | None
    _dictionaries: frozenset[int]

    @lazy
    def _unsettled(self) -> list[int]:
        return [at for at, column in enumerate(self.schema) if may_be_unsettled(column.type)]

    @property
    def held_dictionaries(self) -> frozenset[int]:
        """The file columns that may be read as dictionaries, because they need no conversion."""
        sources = {slot.source for slot in self._slots if slot.convert is None}
        held = {field_id(field) for source, field in enumerate(self.file_columns) if source in sources}
        return self._dictionaries.intersection(held)

    @classmethod
    def resolve(
        cls,
        read_schema: Schema,
        file_schema: pa.Schema,
        constants: Mapping[int, Any] | None = None,
        *,
        location: str = "the file",
        lineage: RowLineage | None = None,
        dictionaries: frozenset[int] = frozenset(),
    ) -> ColumnProjection:
        """Resolve the source of each column.

        ``constants`` are internal values by field id: of the identity partition fields of the file (used where the file
        lacks the column), and of metadata columns. ``location`` is for messages. Without ``lineage`` the columns of
        lineage are null. Raises ``InvalidFile`` for a missing required column, and for a type that cannot be read as
        the table's. ``dictionaries`` are ids of columns that ``apply`` returns dictionary-encoded.
        """
        known = dict(constants or {})
        wanted = LINEAGE_IDS.intersection(field.field_id for field in read_schema.fields)
        if lineage is None:
            known.update(dict.fromkeys(wanted))
        rules = _ById(known, location)
        shape = resolve_struct(read_schema.fields, list(file_schema), rules)
        schema = with_dictionaries(pa.schema([to_arrow_field(field) for field in read_schema.fields]), dictionaries)
        placed = {POS.field_id} if lineage is None else {POS.field_id, ROW_ID.field_id}
        return cls(
            schema,
            pa.schema(list(shape.held)),
            any(field.field_id in placed for field in read_schema.fields),
            rules.is_general and not wanted,
            shape.slots,
            location,
            lineage if wanted else None,
            dictionaries,
        )

    def at(self, location: str) -> ColumnProjection:
        """The same projection for another file of the same schema; only where it is ``reusable``."""
        return replace(self, _location=location)

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch under the read schema. Raises ``InvalidFile`` for values that do not fit their column."""
        columns = batch.columns
        made = [self._column(slot, columns, batch.num_rows) for slot in self._slots]
        if not made:
            return batch.select([])
        for at in self._unsettled:
            made[at] = settled(made[at])
        return pa.RecordBatch.from_arrays(made, schema=self.schema)

    def _column(self, slot: Slot, columns: Sequence[pa.Array], rows: int) -> pa.Array:
        if slot.field.field_id == POS.field_id:
            return columns[-1]
        try:
            array = slot.array(columns, rows)
            if self._lineage is not None and slot.field.field_id in LINEAGE_IDS:
                # ``_last_updated_sequence_number`` needs no positions, so there may be no file columns at all.
                array = self._lineage.inherited(slot.field.field_id, array, columns[-1] if columns else array)
            if slot.field.field_id in self._dictionaries:
                array = array.dictionary_encode()
            return array
        except pa.ArrowException as error:
            raise InvalidFile(
                f"{self._location}: column '{slot.field.name}' holds what is no {slot.field.field_type}: {error}",
                location=self._location,
                field_id=slot.field.field_id,
            ) from error


class _ById(Rules):
    """Rules that match columns of a file by field id."""

    def __init__(self, constants: Mapping[int, Any], location: str) -> None:
        self._constants = constants
        self._location = location
        self.is_general = True

    def match(self, fields: Sequence[NestedField], held: Sequence[pa.Field], path: Path) -> list[int | None]:
        positions: dict[int, int] = {}
        for position, field in enumerate(held):
            found = field_id(field)
            if found is not None:
                positions.setdefault(found, position)
        return [None if self._is_ignored(field) else positions.get(field.field_id) for field in fields]

    def _is_ignored(self, field: NestedField) -> bool:
        """Whether a file column with this id is ignored.

        Ignored are metadata columns about the file itself, and fields of unknown type, which are always null.
        """
        if is_reserved_id(field.field_id):
            return field.field_id in self._constants or field.field_id in (POS.field_id, DELETED.field_id)
        return isinstance(field.field_type, UnknownType)

    def fill(self, field: NestedField, path: Path) -> Fill:
        known, value = self._value(field, path)
        if not known and field.required:
            raise self._lacks(field, path)
        return constant(field.field_type, value)

    def _lacks(self, field: NestedField, path: Path) -> IcefieldError:
        reason = f"has no column '{'.'.join(path)}' (id {field.field_id}), which is required and has no default"
        return InvalidFile(f"{self._location} {reason}", location=self._location, field_id=field.field_id)

    def _value(self, field: NestedField, path: Path) -> tuple[bool, Any]:
        """Whether a missing field has a value, and the value."""
        if field.field_id in self._constants:
            self.is_general = False
            return True, self._constants[field.field_id]
        if field.field_id == POS.field_id:
            return True, None
        if field.field_id == DELETED.field_id:
            return True, False
        value = initial_value(field)
        if value is None and isinstance(field.field_type, StructType):
            value = self._partition_struct(field.field_type, path)
        return value is not None, value

    def _partition_struct(self, kind: StructType, path: Path) -> tuple[Any, ...] | None:
        """The value of a missing struct if partition values state fields inside it; else None."""
        if not any(map(self._says, kind.fields)):
            return None
        values = []
        for child in kind.fields:
            here = (*path, child.name)
            known, value = self._value(child, here)
            if not known and child.required:
                raise self._lacks(child, here)
            values.append(value)
        return tuple(values)

    def _says(self, field: NestedField) -> bool:
        if field.field_id in self._constants:
            self.is_general = False
            return self._constants[field.field_id] is not None
        return isinstance(field.field_type, StructType) and any(map(self._says, field.field_type.fields))

    def asked(self, kind: IcebergType, held: pa.DataType, path: Path) -> Shape:
        if isinstance(kind, VariantType) and is_shredded(held):
            return Shape(VARIANT_ARROW, lambda array: self._checked(put_together, array, path))
        return super().asked(kind, held, path)

    def primitive(self, kind: IcebergType, held: pa.DataType, path: Path) -> Convert | None:
        try:
            if not isinstance(kind, VariantType):
                return conversion(kind, held)
            convert = variants_of(held)
        except IncompatibleType:
            raise self.mismatch(kind, held, path) from None
        return None if convert is None else lambda array: self._checked(convert, array, path)

    def _checked(self, convert: Convert, array: pa.Array, path: Path) -> pa.Array:
        try:
            return convert(array)
        except IcefieldError as error:
            wrong = UnsupportedFeature if isinstance(error, UnsupportedFeature) else InvalidFile
            where = f"{self._location}: column '{'.'.join(path)}': {error.message}"
            raise wrong(where, location=self._location) from error

    def mismatch(self, kind: IcebergType, held: pa.DataType, path: Path) -> IcefieldError:
        shown = str(held)
        shown = shown if len(shown) <= 200 else f"{shown[:197]}..."
        reason = f"holds {shown} in column '{'.'.join(path)}', which cannot be read as {kind}"
        return InvalidFile(f"{self._location} {reason}", location=self._location)


def constant(kind: IcebergType, value: Any) -> Fill:
    """A function that returns arrays of one internal value, as slices of the longest array so far."""
    made = [constant_array(kind, value, 0)]

    def fill(rows: int) -> pa.Array:
        if len(made[0]) < rows:
            made[0] = constant_array(kind, value, rows)
        return made[0].slice(0, rows)

    return fill
