"""Equality of rows, for columns of every type and whole columns at a time: equal rows get the same number.

Null equals null. Floats are equal when their bits are, with one NaN, so that 0.0 and -0.0 differ. Maps are equal when
their pairs are, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.base import compute as pc
from icefield.types.arrow.nested import map_entries, unwrap

Ints = npt.NDArray[np.int64]

_LARGE: Final = 1 << 62
_CLOSE: Final = 4
"""The maximum range of row numbers, as a multiple of the number of rows."""


def row_numbers(columns: Sequence[pa.Array], rows: int) -> Ints:
    """Numbers from 0 for the rows of some columns, the same for equal rows. Without columns all rows are equal."""
    keys, size = joined_numbers(map(value_numbers, columns), rows)
    return dense_numbers(pa.array(keys))[0] if size > _CLOSE * max(rows, 1) else keys


def value_numbers(column: pa.Array) -> tuple[Ints, int]:
    """Numbers from 0 for the values of a column, and an upper bound of the numbers."""
    column = plain(column)
    kind = column.type
    if pa.types.is_null(kind) or not len(column):
        return np.zeros(len(column), np.int64), 1
    if pa.types.is_struct(kind):
        parts = [value_numbers(child) for child in column.flatten()]
        if column.null_count:
            parts.append((np.asarray(column.is_null()).astype(np.int64), 2))
        return dense_numbers(pa.array(joined_numbers(parts, len(column))[0]))
    if pa.types.is_map(kind):
        return _of_lists(map_entries(column))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _of_lists(column)
    if pa.types.is_floating(kind):
        column = float_bits(column)
    return dense_numbers(column)


def dense_numbers(column: pa.Array) -> tuple[Ints, int]:
    """Numbers from 0 for the values of a column that is not nested, and an upper bound of about as many as its rows."""
    if pa.types.is_signed_integer(column.type) and len(column) and not column.null_count:
        # Numbers that lie close together need no hash table.
        values = column.to_numpy()
        least, greatest = int(values.min()), int(values.max())
        if greatest - least < _CLOSE * len(values):
            return values.astype(np.int64) - least, greatest - least + 1
    encoded = column.dictionary_encode()
    distinct = len(encoded.dictionary)
    if encoded.null_count == 0:
        return encoded.indices.to_numpy().astype(np.int64), max(1, distinct)
    return pc.fill_null(encoded.indices, distinct).to_numpy().astype(np.int64), distinct + 1


def joined_numbers(parts: Iterable[tuple[Ints, int]], rows: int) -> tuple[Ints, int]:
    """Numbers for rows from the numbers of their columns, each with an upper bound."""
    keys, size = np.zeros(rows, np.int64), 1
    for codes, distinct in parts:
        if distinct <= 1:
            continue
        if size * distinct >= _LARGE:
            keys, size = dense_numbers(pa.array(keys))
        keys, size = keys * distinct + codes, size * distinct
    return keys, size


def _of_lists(column: pa.Array) -> tuple[Ints, int]:
    """Number lists by the bytes of their elements' numbers, because Arrow can encode binary values but not lists."""
    codes, _ = value_numbers(column.flatten())
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64)
    offsets = np.concatenate(([0], np.cumsum(lengths))) * 8
    values = pa.Array.from_buffers(
        pa.large_binary(), len(column), [None, pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(codes)]
    )
    if not column.null_count:
        return dense_numbers(values)
    codes, distinct = dense_numbers(values)
    nulls = np.asarray(column.is_null())
    return np.where(nulls, distinct, codes), distinct + 1


def float_bits(column: pa.Array) -> pa.Array:
    """Floats as integers with the same bits, with one bit pattern for NaN."""
    nan = pa.scalar(float("nan"), column.type)
    settled = pc.if_else(pc.fill_null(pc.is_nan(column), False), nan, column)
    return settled.view(pa.int32() if pa.types.is_float32(column.type) else pa.int64())


def plain(array: pa.Array) -> pa.Array:
    """A column of a key without dictionaries and extensions."""
    while isinstance(array, pa.ExtensionArray | pa.DictionaryArray):
        array = unwrap(array)
    return array
