"""Rows as plain JSON values, for peers that are spoken to in JSON.

Numbers for values that are stored as numbers (days, microseconds, nanoseconds), text for decimals and for floats that
JSON lacks, hex for bytes, objects for structs, pairs for maps, an object of both parts for a variant.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from icefield.schema import Schema
from icefield.types import DecimalType, IcebergType, ListType, MapType, StructType, VariantType

Rows = list[dict[str, Any]]


def plain_rows(table: pa.Table, schema: Schema) -> Rows:
    """The rows of a table under a schema."""
    columns = []
    for field in schema.fields:
        column = table.column(field.name)
        columns.append([value for chunk in column.chunks for value in _values(chunk, field.field_type)])
    names = [field.name for field in schema.fields]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def comparable(rows: Sequence[dict[str, Any]], schema: Schema) -> list[str]:
    """Rows as sorted text; the order of a map's entries does not count."""
    kind = schema.as_struct()
    return sorted(json.dumps(_ordered(row, kind), sort_keys=True) for row in rows)


def _ordered(value: Any, kind: IcebergType) -> Any:
    if value is None:
        return None
    match kind:
        case StructType():
            return {field.name: _ordered(value[field.name], field.field_type) for field in kind.fields}
        case ListType():
            return [_ordered(item, kind.element_type) for item in value]
        case MapType():
            pairs = [[_ordered(key, kind.key_type), _ordered(held, kind.value_type)] for key, held in value]
            return sorted(pairs, key=lambda pair: json.dumps(pair[0], sort_keys=True))
    return value


def _values(array: pa.Array, kind: IcebergType) -> list[Any]:
    match kind:
        case StructType():
            children = [_values(array.field(at), field.field_type) for at, field in enumerate(kind.fields)]
            names = [field.name for field in kind.fields]
            made = [dict(zip(names, row, strict=True)) for row in zip(*children, strict=True)]
            return [row if there else None for row, there in zip(made, array.is_valid().to_pylist(), strict=True)]
        case ListType():
            return _pieces(array, _values(array.values, kind.element_type))
        case MapType():
            keys, items = _values(array.keys, kind.key_type), _values(array.items, kind.value_type)
            return _pieces(array, [list(pair) for pair in zip(keys, items, strict=True)])
        case VariantType():
            return [value and {name: part.hex() for name, part in value.items()} for value in array.to_pylist()]
        case DecimalType():
            return [None if value is None else f"{value:f}" for value in array.to_pylist()]
    arrow = array.type
    if pa.types.is_temporal(arrow):
        return list(array.cast(pa.int32() if pa.types.is_date(arrow) else pa.int64()).to_pylist())
    if pa.types.is_floating(arrow):
        return [_real(value) for value in array.cast(pa.float64()).to_pylist()]
    if pa.types.is_binary(arrow) or pa.types.is_fixed_size_binary(arrow):
        return [None if value is None else value.hex() for value in array.to_pylist()]
    return list(array.to_pylist())


def _pieces(array: Any, items: list[Any]) -> list[Any]:
    offsets, valid = array.offsets.to_pylist(), array.is_valid().to_pylist()
    return [items[offsets[at] : offsets[at + 1]] if there else None for at, there in enumerate(valid)]


def _real(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
