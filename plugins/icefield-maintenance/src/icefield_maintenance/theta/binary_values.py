"""The binary form of whole columns of values, without a Python object per value: sketches count values by it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from icefield.engine import FIXED_WIDTHS, cast_to_type
from icefield.errors import InvalidArgument
from icefield.toolkit import validity_buffer
from icefield.types import BooleanType, DecimalType, IcebergType, UnknownType


def to_bytes_array(iceberg_type: IcebergType, values: pa.Array) -> pa.BinaryArray:
    """Encode a column of values of ``iceberg_type`` (in its Arrow type, or a castable one); null stays null.

    Raises ``InvalidArgument`` for a type without a binary form, and for values that are not of the type.
    """
    if not iceberg_type.is_primitive or isinstance(iceberg_type, UnknownType):
        raise InvalidArgument(f"type {iceberg_type} has no binary single-value form")
    values = cast_to_type(iceberg_type, values)
    if isinstance(iceberg_type, BooleanType):
        return _binary(values, values.cast(pa.uint8()).fill_null(0).to_numpy(zero_copy_only=False), 1)
    if isinstance(iceberg_type, DecimalType):
        return _encode_decimals(values)
    if type(iceberg_type) in FIXED_WIDTHS:
        dtype = np.dtype(FIXED_WIDTHS[type(iceberg_type)].format)
        numbers = np.frombuffer(values.buffers()[1] or b"", dtype.newbyteorder("="))
        numbers = numbers[values.offset : values.offset + len(values)].astype(dtype, copy=False)
        return _binary(values, numbers, dtype.itemsize)
    return values.cast(pa.binary())


def _encode_decimals(values: pa.Array) -> pa.BinaryArray:
    """The fewest big-endian bytes of each: leading bytes that only repeat the sign are left out."""
    wide: npt.NDArray[np.uint8] = np.frombuffer(values.buffers()[1] or b"", np.uint8).reshape(-1, 16)
    wide = wide[values.offset : values.offset + len(values), ::-1]
    sign = np.where(wide[:, :1] >= 0x80, np.uint8(0xFF), np.uint8(0))
    repeats_sign = (wide[:, :-1] == sign) & ((wide[:, 1:] >= 0x80) == (sign != 0))
    skipped = np.argmin(np.column_stack([repeats_sign, np.zeros(len(wide), np.bool_)]), axis=1)
    lengths = np.where(values.is_valid().to_numpy(zero_copy_only=False), 16 - skipped, 0)
    kept = np.arange(16) >= 16 - lengths[:, None]
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return _binary_from(values, offsets, wide[kept])


def _binary(values: pa.Array, numbers: npt.NDArray[Any], width: int) -> pa.BinaryArray:
    if len(values) * width > 2**31 - 1:
        raise InvalidArgument("too many values for one binary array; encode them in parts")
    offsets = np.arange(len(values) + 1, dtype=np.int32) * np.int32(width)
    return _binary_from(values, offsets, np.ascontiguousarray(numbers))


def _binary_from(values: pa.Array, offsets: npt.NDArray[np.int32], data: npt.NDArray[Any]) -> pa.BinaryArray:
    buffers = [validity_buffer(values), pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)
