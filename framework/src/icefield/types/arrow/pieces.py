"""Columns in pieces: conversion to single arrays, concatenation, and replacement in batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

_FEW_ROWS: Final = 64
"""The mean number of rows of slices below which a copy costs less than a comparison of buffers."""


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column as one array: a single chunk is shared, several are copied, and no chunk is an empty array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def numbers_of(array: pa.Array) -> np.ndarray[Any, Any]:
    """Numbers or booleans as numpy. Other conversions of pyarrow import pandas if it is installed."""
    if array.null_count:
        return np.asarray(array)
    if pa.types.is_boolean(array.type):
        return np.from_dlpack(array.cast(pa.uint8())).view(bool)
    return np.from_dlpack(array)


def array_of(numbers: np.ndarray[Any, Any]) -> pa.Array:
    """The reverse of ``numbers_of``, for a mask too."""
    data = np.packbits(numbers, bitorder="little") if numbers.dtype == bool else np.ascontiguousarray(numbers)
    return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), [None, pa.py_buffer(data)])


def with_columns(rows: pa.RecordBatch, changed: Mapping[int, tuple[pa.Field, pa.Array]]) -> pa.RecordBatch:
    """Replace columns of a batch by position, with one copy of the list of columns for all changes."""
    if not changed:
        return rows
    fields, columns = list(rows.schema), rows.columns
    for at, (field, column) in changed.items():
        fields[at], columns[at] = field, column
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, rows.schema.metadata))


def joined(arrays: Sequence[pa.Array]) -> pa.Array:
    """Concatenate arrays of one type, without a copy if they are neighbouring slices of one array.

    Manifests that are decoded together are slices of the same columns, and are mostly read together again.
    """
    first, rows = arrays[0], sum(map(len, arrays))
    if len(arrays) == 1:
        return first
    if rows < _FEW_ROWS * len(arrays) or not all(are_neighbours(one, other) for one, other in pairwise(arrays)):
        return pa.concat_arrays(arrays)
    kind = first.type
    if not pa.types.is_map(kind):
        return pa.Array.from_buffers(kind, rows, first.buffers(), offset=first.offset)
    entries = pa.StructArray.from_arrays([first.keys, first.items], fields=[kind.key_field, kind.item_field])
    return pa.Array.from_buffers(kind, rows, first.buffers()[:2], offset=first.offset, children=[entries])


def are_neighbours(one: pa.Array, other: pa.Array) -> bool:
    """Whether both arrays, of one type, are slices of one array and the second begins where the first ends."""
    return one.offset + len(one) == other.offset and _is_plain(one.type) and _whole(one) == _whole(other)


def _is_plain(kind: pa.DataType) -> bool:
    """Whether slicing an array of this type leaves its children, if it has any, unchanged."""
    parts = (kind.key_type, kind.item_type) if pa.types.is_map(kind) else (kind,)
    return all(pa.types.is_primitive(part) or pa.types.is_binary(part) or pa.types.is_string(part) for part in parts)


def _whole(array: pa.Array) -> Any:
    """The identity of the array that a slice was cut from, by its buffers: equal for slices of one array."""
    places = [None if buffer is None else (buffer.address, buffer.size) for buffer in array.buffers()]
    if not pa.types.is_map(array.type):
        return places
    return places, [(part.offset, len(part)) for part in (array.keys, array.items)]
