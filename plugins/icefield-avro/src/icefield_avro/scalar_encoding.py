"""Encoding a few rows value by value: for a manifest with one file, the set-up of ``encoding`` costs too much."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
from icefield.errors import InvalidArgument

from icefield_avro.arrays import offsets
from icefield_avro.nodes import Array, Field, Map, Node, Optional, Primitive, Record
from icefield_avro.row_bytes import EncodedRows
from icefield_avro.varints import encode_bytes, encode_long

_WHOLE_NUMBERS: Final = {32: pa.int32(), 64: pa.int64()}


def encode_few(record: Record, columns: list[pa.Array], rows: int) -> EncodedRows:
    """As ``encoding.encode``, with a Python object for each value."""
    fields = [_values(field, field.node, column) for field, column in zip(record.fields, columns, strict=True)]
    encoded = [b"".join(parts) for parts in zip(*fields, strict=True)] if fields else [b""] * rows
    starts = np.zeros(rows + 1, np.int32)
    np.cumsum([len(row) for row in encoded], out=starts[1:])
    return EncodedRows(starts, pa.py_buffer(b"".join(encoded)))


def _values(field: Field, node: Node, array: pa.Array) -> list[bytes]:
    """The bytes of each row of a column."""
    if isinstance(node, Optional):
        null, value = encode_long(1 - node.value_branch), encode_long(node.value_branch)
        bare = _bare(field, node.inner, array)
        if not array.null_count:
            return [value + part for part in bare]
        return [value + part if valid else null for part, valid in zip(bare, _valid(array), strict=True)]
    if array.null_count and not (isinstance(node, Primitive) and node.wire == "null"):
        raise InvalidArgument(f"column '{field.name}' is required and has a null", field_id=field.field_id)
    return _bare(field, node, array)


def _valid(array: pa.Array) -> list[bool]:
    valid: list[bool] = array.is_valid().to_pylist()
    return valid


def _bare(field: Field, node: Node, array: pa.Array) -> list[bytes]:
    """The bytes of each row of a column without a branch; null rows have arbitrary bytes."""
    match node:
        case Primitive():
            return _primitives(node, array)
        case Record():
            return _records(node, array)
        case Array():
            array = _compact(array)
            return _lists(array, _values(node.item, node.item.node, _used(array, array.values)))
        case Map() if pa.types.is_binary(array.type):
            return _each(bytes, array, b"")
        case Map():
            array = _compact(array)
            keys = _values(node.key, node.key.node, _used(array, array.keys))
            items = _values(node.value, node.value.node, _used(array, array.items))
            return _lists(array, [key + item for key, item in zip(keys, items, strict=True)])
    raise InvalidArgument(f"column '{field.name}' is a union inside a union")


def _records(node: Record, array: pa.Array) -> list[bytes]:
    if array.null_count:  # values below a null may be invalid
        present = array.filter(array.is_valid())
        made = iter(_records(node, present))
        return [next(made) if valid else b"" for valid in _valid(array)]
    fields = [_values(field, field.node, array.field(place)) for place, field in enumerate(node.fields)]
    return [b"".join(parts) for parts in zip(*fields, strict=True)] if fields else [b""] * len(array)


def _compact(array: pa.Array) -> pa.Array:
    """Drop the items of null lists."""
    return array.take(pa.array(range(len(array)))) if array.null_count else array


def _used(array: pa.Array, children: pa.Array) -> pa.Array:
    ends = offsets(array)
    return children.slice(int(ends[0]), int(ends[-1] - ends[0]))


def _lists(array: pa.Array, items: list[bytes]) -> list[bytes]:
    ends = (offsets(array) - offsets(array)[0]).tolist()
    out = []
    for start, end in pairwise(ends):
        out.append(b"".join([encode_long(end - start), *items[start:end], b"\0"]) if end > start else b"\0")
    return out


def _primitives(node: Primitive, array: pa.Array) -> list[bytes]:
    if pa.types.is_decimal(node.arrow):
        return _decimals(node, array)
    match node.wire:
        case "null":
            return [b""] * len(array)
        case "int" | "long":
            width = array.type.bit_width
            return _each(encode_long, array.view(_WHOLE_NUMBERS[width]), b"\0")
        case "boolean":
            return [b"\1" if value else b"\0" for value in array.to_pylist()]
        case "float" | "double":
            return _each(bytes, array.view(pa.binary(array.type.bit_width // 8)), b"")
        case "string":
            return _each(encode_bytes, array.view(pa.binary()), b"\0")
        case "bytes":
            return _each(encode_bytes, array, b"\0")
    return _each(bytes, array, b"")


def _each(encode: Callable[[Any], bytes], array: pa.Array, null: bytes) -> list[bytes]:
    values = array.to_pylist()
    if array.null_count:
        return [null if value is None else encode(value) for value in values]
    return [encode(value) for value in values]


def _decimals(node: Primitive, array: pa.Array) -> list[bytes]:
    little = array.view(pa.binary(16)).to_pylist()
    return [b"" if value is None else value[node.size - 1 :: -1] for value in little]
