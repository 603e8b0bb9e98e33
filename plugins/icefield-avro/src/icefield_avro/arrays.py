"""Arrow arrays as numpy vectors and back, without a copy where possible."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

Vector = np.ndarray[Any, Any]

FIRST_BYTES: Final = np.array([int.from_bytes(b"\1" * count, "little") for count in range(9)], "<u8")
"""At index n, a word with its first n bytes set to 1: viewed as booleans, a mask of the first n of eight bytes."""


def valid_rows(array: pa.Array) -> Vector | None:
    """A vector of booleans, true for rows with a value; None if all rows have one."""
    if array.null_count == 0:
        return None
    bitmap = array.buffers()[0]
    if bitmap is None:  # an array of the type null
        return np.zeros(len(array), bool)
    return _bits(bitmap, array.offset, len(array))


def _bits(bitmap: pa.Buffer, offset: int, length: int) -> Vector:
    first = offset >> 3
    data = np.frombuffer(bitmap, np.uint8)[first : (offset + length + 7) >> 3]
    bits = np.unpackbits(data, bitorder="little")
    return bits[offset & 7 : (offset & 7) + length].view(bool)


def booleans(array: pa.Array) -> Vector:
    """The values of a boolean array; any value where it is null."""
    data = array.buffers()[1]
    return np.zeros(0, bool) if data is None else _bits(data, array.offset, len(array))


def values(array: pa.Array, dtype: Any) -> Vector:
    """The values of an array of fixed width, seen as ``dtype``; any value where it is null."""
    data = array.buffers()[1]
    if data is None or len(array) == 0:
        return np.zeros(0, dtype)
    # The count is needed: arrays of Arrow with only nulls share a buffer of any size.
    return np.frombuffer(data, dtype, count=len(array), offset=array.offset * np.dtype(dtype).itemsize)


def offsets(array: pa.Array) -> Vector:
    """The offsets of an array of strings, lists or maps: one more than it has rows."""
    data = array.buffers()[1]
    if data is None or data.size == 0:
        return np.zeros(len(array) + 1, np.int32)
    return np.frombuffer(data, np.int32)[array.offset : array.offset + len(array) + 1]


def bitmap(valid: Vector | None) -> pa.Buffer | None:
    """The validity buffer for a vector of booleans."""
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))


def both(first: Vector | None, second: Vector | None) -> Vector | None:
    """The conjunction of two masks; None stands for a mask that is true everywhere."""
    if first is None:
        return second
    return first if second is None else first & second
