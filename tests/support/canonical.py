"""Rows as strings that do not depend on their reader, and the digest of all rows of a table.

A row is a JSON object with all columns in the order of the schema; the digest is the SHA-256 of the sorted rows joined
by line feeds. Floats are Python's ``repr`` (NaN and the infinities as strings), decimals strings with their full scale,
dates and times ISO strings (microseconds, or nanoseconds for the ``_ns`` types, UTC as ``+00:00``), UUIDs their 36
characters, bytes ``0x`` with lower hex, maps arrays of pairs sorted by the string of the key, variants their decoded
values.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield.schema import Schema
from icefield.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
)
from icefield.types.arrow.nested import map_entries
from icefield_parquet.variants import variant_to_python

NULL = "null"
Encode = Callable[[Any], str]


def rows_digest(table: pa.Table, schema: Schema) -> str:
    """The digest of all rows."""
    return digest_of(canonical_rows(table, schema))


def digest_of(rows: Iterable[str]) -> str:
    """The digest of rows given as strings."""
    return hashlib.sha256("\n".join(sorted(rows, key=str.encode)).encode()).hexdigest()


def canonical_rows(table: pa.Table, schema: Schema) -> list[str]:
    """Each row as a string."""
    columns = []
    for field in schema.fields:
        column = table.column(field.name).combine_chunks()
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        name = json.dumps(field.name, ensure_ascii=False)
        columns.append([f"{name}:{text}" for chunk in chunks for text in _texts(chunk, field.field_type)])
    return ["{" + ",".join(pieces) + "}" for pieces in zip(*columns, strict=True)]


def _texts(array: pa.Array, kind: IcebergType) -> list[str]:
    match kind:
        case UnknownType():
            return [NULL] * len(array)
        case VariantType():
            return [NULL if value is None else _variant(value) for value in array.to_pylist()]
        case StructType():
            return _struct_texts(array, kind)
        case ListType():
            return _list_texts(array, _texts(array.flatten(), kind.element_type), _array)
        case MapType():
            entries = map_entries(array)
            keys, items = (
                _texts(part, child.field_type)
                for part, child in zip(entries.flatten().flatten(), kind.children, strict=True)
            )
            return _list_texts(
                entries, [f"[{key},{item}]" for key, item in zip(keys, items, strict=True)], _sorted_array
            )
    encode, number = _ENCODE[type(kind)], _NUMBERS.get(type(kind))
    values = array if number is None else array.cast(number)
    return [NULL if value is None else encode(value) for value in values.to_pylist()]


def _struct_texts(array: pa.StructArray, kind: StructType) -> list[str]:
    children = []
    # Unlike `field`, `flatten` has nulls below null structs, where an array may hold arbitrary bytes.
    for child, field in zip(array.flatten(), kind.fields, strict=True):
        name = json.dumps(field.name, ensure_ascii=False)
        children.append([f"{name}:{text}" for text in _texts(child, field.field_type)])
    rows = zip(*children, strict=True) if children else iter([()] * len(array))
    valid = array.is_valid().to_pylist()
    return ["{" + ",".join(row) + "}" if there else NULL for row, there in zip(rows, valid, strict=True)]


def _list_texts(lists: Any, items: list[str], join: Callable[[list[str]], str]) -> list[str]:
    """Lists as strings; ``items`` are the elements of all non-null lists: a null list may have arbitrary elements."""
    lengths = pc.list_value_length(lists).to_pylist()
    left = iter(items)
    return [NULL if length is None else join(list(islice(left, length))) for length in lengths]


def _array(items: list[str]) -> str:
    return "[" + ",".join(items) + "]"


def _sorted_array(pairs: list[str]) -> str:
    return _array(sorted(pairs, key=str.encode))


def _real(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return '"NaN"' if value != value else '"Infinity"' if value > 0 else '"-Infinity"'


def _bytes(value: bytes) -> str:
    return f'"0x{value.hex()}"'


def _uuid(value: bytes) -> str:
    text = value.hex()
    return f'"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"'


def _date(days: int) -> str:
    return f'"{np.datetime64(days, "D")}"'


def _time(micros: int) -> str:
    return f'"{_clock(micros, 6)}"'


def _clock(units: int, digits: int) -> str:
    seconds, rest = divmod(units, 10**digits)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:0{digits}}"


def _instant(digits: int, zone: str) -> Encode:
    def encode(units: int) -> str:
        days, rest = divmod(units, 86_400 * 10**digits)
        return f'"{np.datetime64(days, "D")}T{_clock(rest, digits)}{zone}"'

    return encode


def _string(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _variant(value: dict[str, bytes]) -> str:
    return _plain(variant_to_python(value["metadata"], value["value"]))


def _plain(value: Any) -> str:
    match value:
        case dict():
            pairs = sorted(value.items())
            return "{" + ",".join(f"{_string(name)}:{_plain(item)}" for name, item in pairs) + "}"
        case list():
            return _array([_plain(item) for item in value])
        case float():
            return _real(value)
        case bytes():
            return _bytes(value)
        case Decimal():
            return f'"{value:f}"'
        case datetime.datetime():
            return f'"{value.isoformat(timespec="microseconds")}"'
        case datetime.time():
            return f'"{value.isoformat(timespec="microseconds")}"'
        case np.datetime64():
            return f'"{np.datetime_as_string(value, unit="ns")}"'
        case None | bool() | int() | str():
            return json.dumps(value, ensure_ascii=False)
    return f'"{value}"'


_ENCODE: dict[type[IcebergType], Encode] = {
    BooleanType: lambda value: "true" if value else "false",
    IntegerType: str,
    LongType: str,
    FloatType: _real,
    DoubleType: _real,
    DecimalType: lambda value: f'"{value:f}"',
    DateType: _date,
    TimeType: _time,
    TimestampType: _instant(6, ""),
    TimestamptzType: _instant(6, "+00:00"),
    TimestampNanoType: _instant(9, ""),
    TimestamptzNanoType: _instant(9, "+00:00"),
    StringType: _string,
    UUIDType: _uuid,
    FixedType: _bytes,
    BinaryType: _bytes,
    GeometryType: _bytes,
    GeographyType: _bytes,
}
_NUMBERS: dict[type[IcebergType], pa.DataType] = {
    DateType: pa.int32(),
    TimeType: pa.int64(),
    TimestampType: pa.int64(),
    TimestamptzType: pa.int64(),
    TimestampNanoType: pa.int64(),
    TimestamptzNanoType: pa.int64(),
    FloatType: pa.float64(),
}
"""The types with values that are first cast to numbers."""
