"""Between Arrow arrays and numpy: the values under an array's buffers, and back with the same nulls."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import InvalidArgument
from icefield.types import IcebergType
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


def validity_of(array: pa.Array) -> pa.Buffer | None:
    """A validity bitmap that starts at bit 0, None when nothing is null."""
    if array.null_count == 0:
        return None
    if array.offset == 0:
        return array.buffers()[0]
    return pc.is_valid(array).buffers()[1]


def with_nulls_of(values: npt.NDArray[Any], arrow_type: pa.DataType, source: pa.Array) -> pa.Array:
    """An array of ``arrow_type`` over ``values`` that is null where ``source`` is null."""
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(arrow_type, len(source), [validity_of(source), data], null_count=source.null_count)
