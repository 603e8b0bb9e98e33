"""Conversion of the columns of data files to the table's types.

The table's type defines the meaning of a column. The file may have the type before a promotion (SCH-10 to 12), another
layout of the same values (a large string, a dictionary), another unit of time, or plain integers without the logical
type annotation. Any other type is an error, never a guess.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from icefield.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)
from icefield.types.arrow.nested import unwrap
from icefield.types.arrow.reshape import Convert, nulls_of
from icefield.types.arrow.types import to_arrow_type

_NARROW = (pa.int8(), pa.int16(), pa.uint8(), pa.uint16())
_STRING = (pa.string(), pa.large_string(), pa.string_view())
_BYTES = (pa.binary(), pa.large_binary(), pa.binary_view())
_TIMESTAMPS = (TimestampType, TimestamptzType, TimestampNanoType, TimestamptzNanoType)

_CASTS: dict[type[IcebergType], tuple[pa.DataType, ...]] = {
    IntegerType: (*_NARROW,),
    LongType: (*_NARROW, pa.int32(), pa.uint32()),
    FloatType: (pa.float16(),),
    DoubleType: (pa.float16(), pa.float32()),
    DateType: (pa.date64(),),
    TimeType: (pa.time32("s"), pa.time32("ms"), pa.time64("ns")),
    TimestampType: (pa.date32(),),
    TimestampNanoType: (pa.date32(),),
    StringType: (*_STRING, *_BYTES),
    BinaryType: (*_STRING, *_BYTES),
    GeometryType: _BYTES,
    GeographyType: _BYTES,
    UUIDType: _BYTES,
    FixedType: _BYTES,
}
"""The types that a checked cast converts to each type; a lossy cast raises an error."""

_BARE: dict[type[IcebergType], pa.DataType] = {
    DateType: pa.int32(),
    TimeType: pa.int64(),
    TimestampType: pa.int64(),
    TimestamptzType: pa.int64(),
    TimestampNanoType: pa.int64(),
    TimestamptzNanoType: pa.int64(),
}
"""The integer types of temporal types without their annotation."""


class IncompatibleType(Exception):
    """The file's type cannot be read as the table's."""


def conversion(kind: IcebergType, held: pa.DataType) -> Convert | None:
    """A function that converts arrays of the file's type to the table's primitive type; None if they agree.

    Raises ``IncompatibleType``. The returned function may raise Arrow's errors for values that do not fit.
    """
    target = to_arrow_type(kind)
    if held == target:
        return None
    if isinstance(kind, UnknownType) or pa.types.is_null(held):
        return nulls_of(kind)
    if isinstance(held, pa.BaseExtensionType):
        return _below(kind, held.storage_type)
    if pa.types.is_dictionary(held) or pa.types.is_run_end_encoded(held):
        return _below(kind, held.value_type)
    if held in _CASTS.get(type(kind), ()):
        return lambda array: array.cast(target)
    if held == _BARE.get(type(kind)):
        return lambda array: array.view(target)
    found = _special(kind, held, target)
    if found is None:
        raise IncompatibleType
    return found


def _below(kind: IcebergType, stored: pa.DataType) -> Convert:
    inner = conversion(kind, stored)
    return unwrap if inner is None else _chain(unwrap, inner)


def _chain(first: Convert, second: Convert) -> Convert:
    return lambda array: second(first(array))


def _special(kind: IcebergType, held: pa.DataType, target: pa.DataType) -> Convert | None:
    if isinstance(kind, DecimalType):
        return _decimal(kind, held, target)
    if isinstance(kind, _TIMESTAMPS) and pa.types.is_timestamp(held):
        # With or without a zone, the number counts from the epoch: only its unit can differ.
        local = pa.timestamp(held.unit, target.tz)
        return (lambda array: array.view(local)) if local == target else (lambda array: array.view(local).cast(target))
    if pa.types.is_fixed_size_binary(held) and isinstance(kind, BinaryType | GeometryType | GeographyType):
        return lambda array: array.cast(target)
    return None


def _decimal(kind: DecimalType, held: pa.DataType, target: pa.DataType) -> Callable[[pa.Array], pa.Array] | None:
    if not pa.types.is_decimal(held) or held.scale != kind.scale:
        return None
    if pa.types.is_decimal128(held) and held.precision < kind.precision:
        return lambda array: array.view(target)
    return lambda array: array.cast(target)
