"""The binary form of one value: bounds and partition summaries in manifests, delete keys.

The bytes include neither a length nor a type. Spec: Appendix D, binary single-value serialization.
"""

from __future__ import annotations

import math
import struct
from typing import Any, Final, NamedTuple

from icefield import types as iceberg
from icefield.errors import InvalidArgument
from icefield.types.primitive import TIMESTAMP_TYPES, IcebergType, shown
from icefield.types.values.calendar import INT64, MICROS_PER_DAY, NANOS_PER_DAY
from icefield.types.values.internal import decimal_from_unscaled, unscaled

FIXED_WIDTHS: Final[dict[type[IcebergType], struct.Struct]] = {
    iceberg.IntegerType: struct.Struct("<i"),
    iceberg.DateType: struct.Struct("<i"),
    iceberg.LongType: struct.Struct("<q"),
    iceberg.TimeType: struct.Struct("<q"),
    **dict.fromkeys(TIMESTAMP_TYPES, struct.Struct("<q")),
    iceberg.FloatType: struct.Struct("<f"),
    iceberg.DoubleType: struct.Struct("<d"),
}

WRITTEN_BEFORE_PROMOTION: Final[dict[type[IcebergType], tuple[str, int]]] = {
    iceberg.LongType: ("<i", 1),
    iceberg.DoubleType: ("<f", 1),
    iceberg.TimestampType: ("<i", MICROS_PER_DAY),
    iceberg.TimestampNanoType: ("<i", NANOS_PER_DAY),
}
"""The form of four bytes instead of eight, and the factor to the promoted type's unit."""


def value_to_bytes(iceberg_type: IcebergType, internal: Any) -> bytes:
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
    form = FIXED_WIDTHS.get(type(iceberg_type))
    if form is not None:
        return form.pack(internal)
    match iceberg_type:
        case iceberg.BooleanType():
            return b"\x01" if internal else b"\x00"
        case iceberg.StringType():
            return internal.encode("utf-8")  # type: ignore[no-any-return]
        case iceberg.DecimalType():
            number = unscaled(internal, iceberg_type.scale)
            return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)
        case iceberg.UUIDType():
            return _exactly(16, bytes(internal), iceberg_type)
        case iceberg.FixedType():
            return _exactly(iceberg_type.length, bytes(internal), iceberg_type)
        case iceberg.BinaryType() | iceberg.GeometryType() | iceberg.GeographyType():
            return bytes(internal)
    raise InvalidArgument(f"type {iceberg_type} has no binary single-value form")


def value_from_bytes(iceberg_type: IcebergType, data: bytes) -> Any:
    """The internal value of bytes that were written for ``iceberg_type`` or for a type it was promoted from.

    If there are four bytes instead of eight, the value was written before a promotion: an int for a long, a float for a
    double, a date for a timestamp. Raises ``InvalidArgument`` for bytes of any other wrong length and for a string that
    is not UTF-8.
    """
    form = FIXED_WIDTHS.get(type(iceberg_type))
    if form is not None and len(data) == form.size:
        value = form.unpack(data)[0]
        if isinstance(iceberg_type, iceberg.TimeType) and not 0 <= value < MICROS_PER_DAY:
            raise InvalidArgument(f"a time is beyond midnight: {value} microseconds")
        return value
    if type(iceberg_type) in WRITTEN_BEFORE_PROMOTION and len(data) == 4:
        narrow, factor = WRITTEN_BEFORE_PROMOTION[type(iceberg_type)]
        value = struct.unpack(narrow, data)[0] * factor
        if isinstance(value, int) and not INT64[0] <= value <= INT64[1]:
            raise InvalidArgument(f"a date read as {iceberg_type} is out of range")
        return value
    if form is not None:
        raise _wrong_length(iceberg_type, data)
    match iceberg_type:
        case iceberg.BooleanType():
            return _exactly(1, data, iceberg_type) != b"\x00"
        case iceberg.StringType():
            try:
                return bytes(data).decode("utf-8")
            except UnicodeDecodeError:
                raise InvalidArgument("bytes of a string are not UTF-8") from None
        case iceberg.DecimalType():
            if not 1 <= len(data) <= 16:
                raise _wrong_length(iceberg_type, data)
            number = int.from_bytes(data, "big", signed=True)
            if abs(number) >= 10**iceberg_type.precision:
                raise InvalidArgument(f"bytes of a decimal have more than {iceberg_type.precision} digits")
            return decimal_from_unscaled(number, iceberg_type.scale)
        case iceberg.UUIDType():
            return _exactly(16, data, iceberg_type)
        case iceberg.FixedType():
            return _exactly(iceberg_type.length, data, iceberg_type)
        case iceberg.BinaryType() | iceberg.GeometryType() | iceberg.GeographyType():
            return bytes(data)
    raise InvalidArgument(f"type {iceberg_type} has no binary single-value form")


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
