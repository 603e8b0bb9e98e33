"""Rows of Arrow as Python objects that print: times in ISO form (also beyond Python's range), UUIDs as strings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any
from uuid import UUID

import pyarrow as pa
from icefield import Schema
from icefield import types as iceberg

Convert = Callable[[Any], Any]


def rows_of(batches: Iterable[pa.RecordBatch], schema: Schema | None = None) -> Iterator[dict[str, Any]]:
    """Yield every row as a dict. ``schema`` tells UUIDs from other bytes, which Arrow types do not."""
    kinds = {field.name: field.field_type for field in schema.fields} if schema is not None else {}
    for batch in batches:
        names = batch.schema.names
        columns = [_values(column, kinds.get(name)) for name, column in zip(names, batch.columns, strict=True)]
        if columns:
            yield from (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))
        else:
            yield from ({} for _ in range(batch.num_rows))


def _values(array: pa.Array, kind: iceberg.IcebergType | None) -> list[Any]:
    # Arrow writes times that Python's own types cannot hold.
    values: list[Any] = array.cast(_with_strings(array.type)).to_pylist()
    show = _converter(array.type, kind)
    return values if show is None else [show(value) for value in values]


def _with_strings(kind: pa.DataType) -> pa.DataType:
    """The type with strings for every time in it."""
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([_field_with_strings(kind.field(i)) for i in range(kind.num_fields)])
    if pa.types.is_list(kind):
        return pa.list_(_field_with_strings(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(_field_with_strings(kind.key_field), _field_with_strings(kind.item_field))
    return kind


def _field_with_strings(field: pa.Field) -> pa.Field:
    return field.with_type(_with_strings(field.type))


def _converter(kind: pa.DataType, iceberg_type: iceberg.IcebergType | None) -> Convert | None:
    """Return a function that makes a value of the type printable; None if values are printable already."""
    if pa.types.is_timestamp(kind):
        return _unless_null(lambda string: string.replace(" ", "T", 1).replace("Z", "+00:00"))
    if isinstance(iceberg_type, iceberg.UUIDType):
        return _unless_null(lambda data: str(UUID(bytes=data)))
    if pa.types.is_struct(kind):
        return _struct_converter(kind, iceberg_type)
    if pa.types.is_list(kind):
        inner = iceberg_type.element.field_type if isinstance(iceberg_type, iceberg.ListType) else None
        element = _converter(kind.value_type, inner)
        return None if element is None else _unless_null(lambda values: [element(value) for value in values])
    if pa.types.is_map(kind):
        return _map_converter(kind, iceberg_type)
    return None


def _struct_converter(kind: pa.StructType, iceberg_type: iceberg.IcebergType | None) -> Convert | None:
    types = {}
    if isinstance(iceberg_type, iceberg.StructType):
        types = {field.name: field.field_type for field in iceberg_type.fields}
    fields = [kind.field(i) for i in range(kind.num_fields)]
    shows = {
        field.name: show for field in fields if (show := _converter(field.type, types.get(field.name))) is not None
    }
    if not shows:
        return None
    return _unless_null(lambda row: {name: shows[name](v) if name in shows else v for name, v in row.items()})


def _map_converter(kind: pa.MapType, iceberg_type: iceberg.IcebergType | None) -> Convert | None:
    is_map = isinstance(iceberg_type, iceberg.MapType)
    key = _converter(kind.key_type, iceberg_type.key.field_type if is_map else None)  # type: ignore[union-attr]
    item = _converter(kind.item_type, iceberg_type.value.field_type if is_map else None)  # type: ignore[union-attr]
    if key is None and item is None:
        return None
    first, second = key or _same, item or _same
    return _unless_null(lambda pairs: [(first(k), second(v)) for k, v in pairs])


def _same(value: Any) -> Any:
    return value


def _unless_null(show: Convert) -> Convert:
    return lambda value: None if value is None else show(value)
