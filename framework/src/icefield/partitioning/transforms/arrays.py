"""Between Arrow arrays and numpy: the values under an array's buffers, and back with the same nulls."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.errors import InvalidArgument
from icefield.types import IcebergType
from icefield.types.arrow.nested import validity_buffer
from icefield.types.arrow.types import to_arrow_type


def conformed(array: pa.Array, source_type: IcebergType) -> pa.Array:
    """The array with the buffers of a primitive type's Arrow form: no dictionary, no extension, no view.

    Large strings, other zones and other decimal precisions stay, since their buffers hold the same values.
    Raises ``InvalidArgument`` for an array that holds values of another type.
    """
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    expected = to_arrow_type(source_type)
    if array.type == expected or _same_layout(array.type, expected):
        return array
    try:
        return array.cast(expected)
    except pa.ArrowException as error:
        raise InvalidArgument(f"an array of {array.type} does not hold values of type {source_type}: {error}") from None


def _same_layout(given: pa.DataType, expected: pa.DataType) -> bool:
    if expected in (pa.string(), pa.binary()):
        return given in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())
    if pa.types.is_timestamp(expected):
        return bool(pa.types.is_timestamp(given) and given.unit == expected.unit)
    both_decimal = pa.types.is_decimal128(expected) and pa.types.is_decimal128(given)
    return bool(both_decimal and given.scale == expected.scale)


def fixed_values(array: pa.Array, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The values of a fixed-width array without a copy; values in null slots are arbitrary."""
    kind = np.dtype(dtype)
    data = array.buffers()[1]
    if data is None or len(array) == 0:
        return np.zeros(len(array), kind)
    return np.frombuffer(data, kind, count=len(array), offset=array.offset * kind.itemsize)


def with_nulls_of(values: npt.NDArray[Any], arrow_type: pa.DataType, source: pa.Array) -> pa.Array:
    """An array of ``arrow_type`` over ``values`` that is null where ``source`` is null."""
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(arrow_type, len(source), [validity_buffer(source), data], null_count=source.null_count)


def halves_of(array: pa.Array) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """The low and the high 64 bits of each unscaled value of decimals, as views; null slots are arbitrary."""
    data = array.buffers()[1]
    if data is None or len(array) == 0:
        return np.zeros(len(array), np.uint64), np.zeros(len(array), np.int64)
    pairs = np.frombuffer(data, np.uint64, count=2 * len(array), offset=16 * array.offset).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1].view(np.int64)


def interleave(low: npt.NDArray[Any], high: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """The opposite of ``halves_of``: the buffer of a decimal128 array."""
    pairs = np.empty((len(low), 2), np.uint64)
    pairs[:, 0] = low.view(np.uint64)
    pairs[:, 1] = high.view(np.uint64)
    return pairs
