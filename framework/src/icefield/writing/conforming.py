"""Conforms incoming rows to the table's schema: columns are matched by name, and cast only where nothing is lost.

Columns that are not supplied get their ``write-default`` or null. Columns that the table does not have are refused, and
so are nulls in required columns and keys that come twice in a map. Values that the type does not hold are refused as
well: a string that is not UTF-8, digits beyond a decimal's precision, times beyond a day. The conversion is resolved
once for a schema and then applied to each batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from icefield import types as iceberg
from icefield.base import compute as pc
from icefield.errors import IcefieldError, InvalidArgument
from icefield.schema import Schema, schema_to_arrow
from icefield.types.arrow.maps import has_repeated_keys
from icefield.types.arrow.nested import (
    map_entries,
    may_be_unsettled,
    parts_below,
    retype,
    settled,
    validate_full,
)
from icefield.types.arrow.reshape import (
    Convert,
    Fill,
    Path,
    Rules,
    Slot,
    StructShape,
    after_unwrap,
    nulls_of,
    resolve_struct,
)
from icefield.types.arrow.types import to_arrow_type
from icefield.types.values import constant_array, write_value

_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
_STRING = (pa.string(), pa.large_string(), pa.string_view())
_BYTES = (pa.binary(), pa.large_binary(), pa.binary_view())
_CASTS: dict[type[iceberg.IcebergType], tuple[pa.DataType, ...]] = {
    iceberg.IntegerType: _INTEGERS,
    iceberg.LongType: _INTEGERS,
    iceberg.FloatType: (pa.float16(),),
    iceberg.DoubleType: (pa.float16(), pa.float32()),
    iceberg.DateType: (pa.date64(),),
    iceberg.TimeType: (pa.time32("s"), pa.time32("ms"), pa.time64("ns")),
    iceberg.StringType: _STRING,
    iceberg.BinaryType: _BYTES,
    iceberg.GeometryType: _BYTES,
    iceberg.GeographyType: _BYTES,
    iceberg.UUIDType: _BYTES,
    iceberg.FixedType: _BYTES,
}
"""The Arrow types that are cast to each type, value by value; a cast that would change a value raises."""

_CHECKED = (iceberg.StringType, iceberg.DecimalType, iceberg.TimeType)
"""Types with Arrow arrays that can hold invalid values."""


class Conforming:
    """Conforms batches of one incoming schema to the table's schema."""

    def __init__(self, schema: Schema, incoming: pa.Schema) -> None:
        """Resolve the conversion for ``incoming``. Raises ``InvalidArgument`` that names the column."""
        self.schema = schema_to_arrow(schema)
        self._fields = schema.fields
        self._shape: StructShape = resolve_struct(schema.fields, incoming, _ByName())
        self._checked = [_holds(field.field_type, _CHECKED) for field in schema.fields]
        self._mapped = [_holds(field.field_type, (iceberg.MapType,)) for field in schema.fields]
        self._unsettled = [may_be_unsettled(column.type) for column in self.schema]
        self._required = [field.required or has_required(field.field_type) for field in schema.fields]

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Conform a batch to the table's schema. Raises ``InvalidArgument`` that names the column."""
        # The shape holds every incoming column, in the order they came.
        # Each access to ``columns`` would make all arrays of the batch anew.
        arrays = batch.columns
        columns = [self._column(slot, arrays, batch.num_rows) for slot in self._shape.slots]
        tests = zip(self._fields, columns, self._checked, self._mapped, self._required, strict=True)
        for field, column, checked, mapped, required in tests:
            if checked:
                _check_values(field, column)
            if mapped and has_repeated_keys(column):
                raise _refused((field.name,), "a key comes twice in a map", field_id=field.field_id)
            if required:
                check_nulls(field, column)
        if not columns:
            return batch.select([])
        settling = zip(columns, self._unsettled, strict=True)
        columns = [settled(column) if unsettled else column for column, unsettled in settling]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _column(self, slot: Slot, columns: Sequence[pa.Array], rows: int) -> pa.Array:
        try:
            return slot.array(columns, rows)
        except pa.ArrowException as error:
            why = f"a value does not fit {slot.field.field_type}: {error}"
            if "[ns" in str(error) and "lose data" in str(error):
                why += (
                    "; round the values to microseconds, such as by .dt.floor('us') of pandas, or use a column of type "
                    "timestamp_ns, which needs format version 3"
                )
            raise _refused((slot.field.name,), why) from error


class _ByName(Rules):
    """Matches each incoming column to the table's column of the same name."""

    def match(self, fields: Sequence[iceberg.NestedField], held: Sequence[pa.Field], path: Path) -> list[int | None]:
        positions: dict[str, int] = {}
        for position, field in enumerate(held):
            if field.name in positions:
                raise _refused((*path, field.name), "it comes twice")
            positions[field.name] = position
        names = {field.name for field in fields}
        unknown = [name for name in positions if name not in names]
        if unknown:
            owner = f"'{'.'.join(path)}'" if path else "the table"
            same = sorted(name for name in names if name.lower() == unknown[0].lower())
            alike = f"there are {', '.join(sorted(names)[:20])}"
            remedy = "; the option merge_schema=True of append and overwrite adds new columns"
            if same:
                alike, remedy = f"names are compared exactly, and there is a '{same[0]}'", ""
            raise _refused((*path, unknown[0]), f"{owner} has no such column; {alike}{remedy}")
        return [positions.get(field.name) for field in fields]

    def fill(self, field: iceberg.NestedField, path: Path) -> Fill:
        value = write_value(field)
        if value is None and field.required:
            raise _refused(path, "it is required, has no write-default and is not supplied")
        return lambda rows: constant_array(field.field_type, value, rows)

    def primitive(self, kind: iceberg.IcebergType, held: pa.DataType, path: Path) -> Convert | None:
        target = to_arrow_type(kind)
        if held.equals(target, check_metadata=True):
            return None
        if isinstance(held, pa.BaseExtensionType):
            return after_unwrap(self.primitive(kind, held.storage_type, path))
        if pa.types.is_dictionary(held) or pa.types.is_run_end_encoded(held):
            return after_unwrap(self.primitive(kind, held.value_type, path))
        if pa.types.is_null(held):
            return nulls_of(kind)
        if isinstance(kind, iceberg.VariantType) and held == target:
            return lambda array: retype(array, target)
        is_cast = (
            (isinstance(kind, iceberg.DecimalType) and pa.types.is_decimal(held))
            or (pa.types.is_timestamp(held) and pa.types.is_timestamp(target) and bool(held.tz) is bool(target.tz))
            or held in _CASTS.get(type(kind), ())
            or (pa.types.is_fixed_size_binary(held) and isinstance(kind, iceberg.BinaryType))
        )
        if not is_cast:
            raise self.mismatch(kind, held, path)
        return lambda array: array.cast(target)

    def mismatch(self, kind: iceberg.IcebergType, held: pa.DataType, path: Path) -> IcefieldError:
        shown = str(held)
        shown = shown if len(shown) <= 200 else f"{shown[:197]}..."
        if isinstance(kind, iceberg.UnknownType):
            return _refused(path, f"its type is unknown, so it holds nulls only, not {shown}")
        return _refused(path, f"Arrow's {shown} is not written as {kind}; cast it to {to_arrow_type(kind)}")


def _refused(path: Path, why: str, **data: Any) -> InvalidArgument:
    name = ".".join(path)
    return InvalidArgument(f"column '{name}' cannot be written: {why}", column=name, **data)


def _holds(kind: iceberg.IcebergType, wanted: tuple[type[iceberg.IcebergType], ...]) -> bool:
    below = _children(kind) if kind.is_nested else ()
    return isinstance(kind, wanted) or any(_holds(child.field_type, wanted) for child in below)


def has_required(kind: iceberg.IcebergType) -> bool:
    """Whether a type has a required field, at any depth."""
    return kind.is_nested and any(child.required or has_required(child.field_type) for child in _children(kind))


def _children(kind: iceberg.IcebergType) -> tuple[iceberg.NestedField, ...]:
    return kind.children if isinstance(kind, iceberg.StructType | iceberg.ListType | iceberg.MapType) else ()


def _check_values(field: iceberg.NestedField, column: pa.Array) -> None:
    try:
        validate_full(column)
    except pa.ArrowInvalid as error:
        # Arrow also checks the data below nulls, where readers leave arbitrary bytes.
        if not _is_sound(column):
            raise _refused((field.name,), f"a value is none of {field.field_type}: {error}") from error


def _is_sound(array: pa.Array) -> bool:
    """Whether all values are valid, except data below nulls."""
    try:
        array.validate()
        for part in parts_below(array):
            validate_full(part)
    except pa.ArrowInvalid:
        return False
    return True


def check_nulls(field: iceberg.NestedField, array: pa.Array, path: Path = (), there: pa.Array | None = None) -> None:
    """Raise ``InvalidArgument`` for a null in a required field of a column, unless a struct around it is null.

    ``path`` names the structs around the field; ``there`` states where none of them is null.
    """
    path = (*path, field.name)
    if field.required and array.null_count and (there is None or pc.any(pc.and_(array.is_null(), there)).as_py()):
        raise _refused(path, "it is required and holds a null", field_id=field.field_id)
    kind = field.field_type
    if not has_required(kind):
        return
    if isinstance(kind, iceberg.StructType):
        inside = array.is_valid() if array.null_count else None
        if there is not None:
            inside = there if inside is None else pc.and_(there, inside)
        for position, child in enumerate(kind.fields):
            check_nulls(child, array.field(position), path, inside)
    else:
        lists = array if there is None else pc.if_else(there, array, pa.scalar(None, array.type))
        # Unlike `values`, this leaves out the elements below null lists.
        elements = lists.flatten() if isinstance(kind, iceberg.ListType) else map_entries(lists).flatten()
        for position, child in enumerate(_children(kind)):
            check_nulls(child, elements if isinstance(kind, iceberg.ListType) else elements.field(position), path)
