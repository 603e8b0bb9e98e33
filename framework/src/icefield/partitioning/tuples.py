"""Equality of partition tuples, defined in this module only and computed for whole columns at a time.

Null equals null. Floats are equal when their bits are, with one NaN, so that 0.0 and -0.0 are different partitions.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.base import compute as pc

_SMALL: Final = 1 << 16
"""NumPy sorts keys of 16 bits by counting, which is several times as fast as comparing."""

_LARGE: Final = 1 << 31

Ints = npt.NDArray[np.int64]


def tuple_keys(tuples: pa.StructArray) -> tuple[npt.NDArray[Any], int]:
    """A number for each tuple, the same for equal tuples, and an upper bound of the numbers.

    The bound is exclusive, and some numbers below it may be unused.
    """
    keys: npt.NDArray[Any] = np.zeros(len(tuples), np.int64)
    size = 1
    for position in range(tuples.type.num_fields):
        codes, distinct = _codes(tuples.field(position))
        if distinct == 1:
            continue
        if size * distinct >= _LARGE:
            keys, size = _codes(pa.array(keys))
        keys = keys * distinct + codes
        size *= distinct
    if size > max(_SMALL, 2 * len(tuples)):
        keys, size = _codes(pa.array(keys))
    return keys.astype(np.uint16 if size <= _SMALL else np.int64, copy=False), size


def tuple_groups(tuples: pa.StructArray) -> tuple[Ints, Ints]:
    """A number from 0 for each tuple, the same for equal tuples, and the first row with each number."""
    keys, _ = tuple_keys(tuples)
    _, rows, numbers = np.unique(keys, return_index=True, return_inverse=True)
    return numbers.astype(np.int64, copy=False), rows.astype(np.int64, copy=False)


def _codes(column: pa.Array) -> tuple[Ints, int]:
    """The distinct values of a column by number; null has a number of its own."""
    if pa.types.is_null(column.type):
        return np.zeros(len(column), np.int64), 1
    if pa.types.is_floating(column.type):
        column = float_bits(column)
    try:
        encoded = column.dictionary_encode()
    except pa.ArrowNotImplementedError:  # of a transform that is not known, which may store anything
        encoded = pa.array([None if one is None else repr(one) for one in column.to_pylist()]).dictionary_encode()
    distinct = len(encoded.dictionary)
    if encoded.null_count == 0:
        return encoded.indices.to_numpy().astype(np.int64), max(1, distinct)
    return pc.fill_null(encoded.indices, distinct).to_numpy().astype(np.int64), distinct + 1


def float_bits(column: pa.Array) -> pa.Array:
    """Floats as integers with the same bits, with one bit pattern for NaN."""
    nan = pa.scalar(float("nan"), column.type)
    settled = pc.if_else(pc.fill_null(pc.is_nan(column), False), nan, column)
    return settled.view(pa.int32() if pa.types.is_float32(column.type) else pa.int64())
