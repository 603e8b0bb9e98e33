"""The binary form of one value: bounds and partition summaries in manifests, delete keys.

The bytes include neither a length nor a type. Spec: Appendix D, binary single-value serialization.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any, Final, NamedTuple

from icefield.errors import InvalidArgument
from icefield.types.primitive import (
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
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
    shown,
)
from icefield.types.values.calendar import INT64, MICROS_PER_DAY, NANOS_PER_DAY

_EXACT: Final = Context(prec=100)
"""Python's default context rounds at 28 digits; decimals here have up to 38."""

_FORMATS: Final[dict[type[IcebergType], struct.Struct]] = {
    IntegerType: struct.Struct("<i"),
    DateType: struct.Struct("<i"),
    LongType: struct.Struct("<q"),
    TimeType: struct.Struct("<q"),
    TimestampType: struct.Struct("<q"),
    TimestamptzType: struct.Struct("<q"),
    TimestampNanoType: struct.Struct("<q"),
    TimestamptzNanoType: struct.Struct("<q"),
    FloatType: struct.Struct("<f"),
    DoubleType: struct.Struct("<d"),
}
_INT = struct.Struct("<i")
_FLOAT = struct.Struct("<f")

# The meaning of four bytes instead of eight: the value was written before the column was promoted.
_PROMOTED: Final[dict[type[IcebergType], Callable[[bytes], Any]]] = {
    LongType: lambda data: _INT.unpack(data)[0],
    DoubleType: lambda data: _FLOAT.unpack(data)[0],
    TimestampType: lambda data: _INT.unpack(data)[0] * MICROS_PER_DAY,
    TimestampNanoType: lambda data: _INT.unpack(data)[0] * NANOS_PER_DAY,
}


def unscaled(value: Decimal, scale: int) -> int:
    """The integer that a decimal is at ``scale``. Raises ``InvalidArgument`` if digits would be lost."""
    sign, digits, exponent = value.as_tuple()
    number: int
    if not isinstance(exponent, int):
        raise InvalidArgument(f"not a finite decimal: {shown(value)}")
    shift = exponent + scale
    number = int("".join(map(str, digits))) if digits else 0
    if number and not -60 <= shift <= 60:
        size = {"inexact": True} if shift < 0 else {"out_of_range": -1 if sign else 1}
        raise InvalidArgument(f"decimal {shown(value)} does not fit a scale of {scale}", **size)
    if shift >= 0:
        number *= int(10**shift)
    else:
        number, rest = divmod(number, int(10**-shift))
        if rest:
            raise InvalidArgument(f"decimal {shown(value)} has more than {scale} digits after the point", inexact=True)
    return -number if sign else number


def decimal_from_unscaled(number: int, scale: int) -> Decimal:
    """The decimal that is ``number`` times 10 to the minus ``scale``, with exactly that scale."""
    return Decimal(number).scaleb(-scale, _EXACT)


def to_bytes(iceberg_type: IcebergType, internal: Any) -> bytes:
    """The bytes of one internal value.

    Raises ``InvalidArgument`` for null, for a value that is not of the type, and for the types without a binary form:
    struct, list, map, unknown and variant.
    """
    try:
        return _to_bytes(iceberg_type, internal)
    except (struct.error, OverflowError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument(f"not a value of type {iceberg_type}: {shown(internal)}") from None


def _to_bytes(iceberg_type: IcebergType, internal: Any) -> bytes:
    if internal is None:
        raise InvalidArgument(f"null has no binary form (type {iceberg_type})")
    form = _FORMATS.get(type(iceberg_type))
    if form is not None:
        return form.pack(internal)
    match iceberg_type:
        case BooleanType():
            return b"\x01" if internal else b"\x00"
        case StringType():
            return internal.encode("utf-8")  # type: ignore[no-any-return]
        case DecimalType():
            number = unscaled(internal, iceberg_type.scale)
            return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)
        case UUIDType():
            return _exactly(16, bytes(internal), iceberg_type)
        case FixedType():
            return _exactly(iceberg_type.length, bytes(internal), iceberg_type)
        case BinaryType() | GeometryType() | GeographyType():
            return bytes(internal)
    raise InvalidArgument(f"type {iceberg_type} has no binary single-value form")


def from_bytes(iceberg_type: IcebergType, data: bytes) -> Any:
    """The internal value of bytes that were written for ``iceberg_type`` or for a type it was promoted from.

    If there are four bytes instead of eight, the value was written before a promotion: an int for a long, a float for a
    double, a date for a timestamp. Raises ``InvalidArgument`` for bytes of any other wrong length and for a string that
    is not UTF-8.
    """
    form = _FORMATS.get(type(iceberg_type))
    if form is not None:
        return _from_fixed_width(iceberg_type, form, data)
    match iceberg_type:
        case BooleanType():
            return _exactly(1, data, iceberg_type) != b"\x00"
        case StringType():
            try:
                return bytes(data).decode("utf-8")
            except UnicodeDecodeError:
                raise InvalidArgument("bytes of a string are not UTF-8") from None
        case DecimalType():
            return _decimal_from_bytes(iceberg_type, data)
        case UUIDType():
            return _exactly(16, data, iceberg_type)
        case FixedType():
            return _exactly(iceberg_type.length, data, iceberg_type)
        case BinaryType() | GeometryType() | GeographyType():
            return bytes(data)
    raise InvalidArgument(f"type {iceberg_type} has no binary single-value form")


def _from_fixed_width(iceberg_type: IcebergType, form: struct.Struct, data: bytes) -> Any:
    if len(data) == form.size:
        value = form.unpack(data)[0]
        if isinstance(iceberg_type, TimeType) and not 0 <= value < MICROS_PER_DAY:
            raise InvalidArgument(f"a time is beyond midnight: {value} microseconds")
        return value
    promoted = _PROMOTED.get(type(iceberg_type))
    if promoted is None or len(data) != 4:
        raise _wrong_length(iceberg_type, data)
    value = promoted(data)
    if isinstance(value, int) and not INT64[0] <= value <= INT64[1]:
        raise InvalidArgument(f"a date read as {iceberg_type} is out of range")
    return value


def _decimal_from_bytes(iceberg_type: DecimalType, data: bytes) -> Decimal:
    if not 1 <= len(data) <= 16:
        raise _wrong_length(iceberg_type, data)
    number = int.from_bytes(data, "big", signed=True)
    if abs(number) >= 10**iceberg_type.precision:
        raise InvalidArgument(f"bytes of a decimal have more than {iceberg_type.precision} digits")
    return decimal_from_unscaled(number, iceberg_type.scale)


def _exactly(length: int, data: bytes, iceberg_type: IcebergType) -> bytes:
    if len(data) != length:
        raise _wrong_length(iceberg_type, data)
    return bytes(data)


def _wrong_length(iceberg_type: IcebergType, data: bytes) -> InvalidArgument:
    return InvalidArgument(f"{len(data)} bytes cannot be a value of type {iceberg_type}")


class GeoPoint(NamedTuple):
    """A corner of the box around geometries: the bound of a geometry or geography column."""

    x: float
    y: float
    z: float | None = None
    m: float | None = None


def geo_point_to_bytes(point: GeoPoint) -> bytes:
    """The bound's bytes: x:y, x:y:z, x:y:NaN:m or x:y:z:m, each a little-endian double. Spec: Appendix D."""
    parts = [point.x, point.y]
    if point.z is not None or point.m is not None:
        parts.append(math.nan if point.z is None else point.z)
    if point.m is not None:
        parts.append(point.m)
    return struct.pack(f"<{len(parts)}d", *parts)


def geo_point_from_bytes(data: bytes) -> GeoPoint:
    """The point of a geometry's or geography's bound. Raises ``InvalidArgument`` for bytes that are no point."""
    if len(data) not in (16, 24, 32):
        raise InvalidArgument(f"{len(data)} bytes cannot be the bound of a geometry")
    parts = struct.unpack(f"<{len(data) // 8}d", data)
    given: list[float | None] = [None if math.isnan(part) else part for part in parts]
    if given[0] is None or given[1] is None:
        raise InvalidArgument("the bound of a geometry has no x or y")
    return GeoPoint(given[0], given[1], *given[2:])
