"""Conversion of users' values to internal values."""

from __future__ import annotations

import math
import re
import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from operator import index
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icefield import types as iceberg
from icefield.errors import InvalidArgument
from icefield.types.nested import ListType, MapType, NestedField, StructType
from icefield.types.primitive import TIMESTAMP_TYPES, IcebergType, shown
from icefield.types.values import calendar
from icefield.types.values.arrow import from_arrow_scalar
from icefield.types.values.calendar import INT32, INT64, MICROS_PER_DAY
from icefield.types.values.internal import decimal_of_type, null_checked, out_of_range, within
from icefield.types.values.json import value_from_json

_EPOCH: Final = datetime(1970, 1, 1)
_EPOCH_UTC: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY: Final = date(1970, 1, 1)
_INTEGER_STRING: Final = re.compile(r"\s*[+-]?[0-9]{1,40}\s*")


def to_internal(iceberg_type: IcebergType, value: Any) -> Any:
    """The internal value of a user's value: a Python or numpy object, an Arrow scalar, or an ISO string.

    Numbers may be strings. As a timestamp, a date means its midnight (in UTC, if the type has a zone). A type with a
    zone refuses a time without an offset. None, NaT and a null scalar are null.

    Raises ``InvalidArgument`` for a value that is not of the type or that a conversion would change. The error's
    ``data`` has ``out_of_range`` (1 above the type's values, -1 below) or ``inexact`` if that is the reason.
    """
    if isinstance(value, pa.Scalar):
        return from_arrow_scalar(iceberg_type, value)
    if value is None or (isinstance(value, (datetime, np.datetime64)) and value != value):
        return None
    convert = _CONVERSIONS.get(type(iceberg_type))
    if convert is None:
        raise _unfit(iceberg_type, value)
    try:
        return convert(iceberg_type, value)
    except InvalidArgument:
        raise
    except (TypeError, ValueError, OverflowError, InvalidOperation, struct.error):
        raise _unfit(iceberg_type, value) from None


def _boolean(iceberg_type: IcebergType, value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise _unfit(iceberg_type, value)


def _integer(iceberg_type: IcebergType, value: Any) -> int:
    number = _whole_number(iceberg_type, value)
    return within(iceberg_type, value, number, INT64 if isinstance(iceberg_type, iceberg.LongType) else INT32)


def _whole_number(iceberg_type: IcebergType, value: Any) -> int:
    if isinstance(value, (bool, np.bool_)):
        raise _unfit(iceberg_type, value)
    if isinstance(value, str):
        if not _INTEGER_STRING.fullmatch(value):
            raise _unfit(iceberg_type, value)
        return int(value)
    if isinstance(value, (float, np.floating, Decimal)):
        if math.isinf(value):
            raise out_of_range(iceberg_type, value, bool(value > 0))
        if value != int(value):
            raise InvalidArgument(f"not a whole number, as {iceberg_type} demands: {value}", inexact=True)
        return int(value)
    return index(value)


def _double(iceberg_type: IcebergType, value: Any) -> float:
    if isinstance(value, (bool, np.bool_, bytes)):
        raise _unfit(iceberg_type, value)
    try:
        number = float(value)
    except OverflowError:
        raise out_of_range(iceberg_type, value, bool(value > 0)) from None
    if math.isinf(number) and isinstance(value, Decimal) and not value.is_infinite():
        raise out_of_range(iceberg_type, value, number > 0)
    return number


def _float(iceberg_type: IcebergType, value: Any) -> float:
    number = _double(iceberg_type, value)
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        raise out_of_range(iceberg_type, value, number > 0) from None


def _decimal(iceberg_type: IcebergType, value: Any) -> Decimal:
    assert isinstance(iceberg_type, iceberg.DecimalType)
    if isinstance(value, (bool, np.bool_)):
        raise _unfit(iceberg_type, value)
    if isinstance(value, (float, np.floating)):
        value = repr(float(value))
    number = value if isinstance(value, (Decimal, str)) else index(value)
    if isinstance(number, str) and len(number) > 100:
        raise _unfit(iceberg_type, value)
    return decimal_of_type(iceberg_type, value, Decimal(number))


def _date(iceberg_type: IcebergType, value: Any) -> int:
    if isinstance(value, np.datetime64):
        return _exact_unit(iceberg_type, value, "D")
    if isinstance(value, datetime):
        if value.tzinfo is not None or value.time() != time():
            raise InvalidArgument(f"not a date: {value} has a time of day or a zone", inexact=True)
        return (value.date() - _EPOCH_DAY).days
    if isinstance(value, date):
        return (value - _EPOCH_DAY).days
    return calendar.parse_date(value.strip()) if isinstance(value, str) else _count(iceberg_type, value, INT32)


def _time(iceberg_type: IcebergType, value: Any) -> int:
    if isinstance(value, time):
        if value.tzinfo is not None:
            raise InvalidArgument(f"a time has no zone: {value}")
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    if isinstance(value, str):
        return calendar.parse_time(value.strip())
    return _count(iceberg_type, value, (0, MICROS_PER_DAY - 1))


def _timestamp(iceberg_type: Any, value: Any) -> int:
    zone, digits = iceberg_type.has_zone, iceberg_type.digits
    if isinstance(value, str):
        return calendar.parse_timestamp(value.strip(), zone=zone, digits=digits, lenient=True)
    if isinstance(value, np.datetime64):
        return _exact_unit(iceberg_type, value, "ns" if digits == 9 else "us")
    if isinstance(value, datetime):
        return _from_datetime(iceberg_type, value, zone, digits)
    if isinstance(value, date):
        nanos = (value - _EPOCH_DAY).days * MICROS_PER_DAY * 1000
        return within(iceberg_type, value, nanos // 10 ** (9 - digits), INT64)
    return _count(iceberg_type, value, INT64)


def _from_datetime(iceberg_type: IcebergType, value: datetime, zone: bool, digits: int) -> int:
    if (value.tzinfo is not None) is not zone:
        hint = "give it a zone" if zone else "take its zone away"
        raise InvalidArgument(f"not a value of type {iceberg_type}: {value}; {hint}")
    elapsed = value - (_EPOCH_UTC if zone else _EPOCH)
    # A pandas timestamp is a datetime, but a difference of two timestamps has nanoseconds.
    nanos = getattr(elapsed, "nanoseconds", 0)
    micros = (elapsed.days * 86_400 + elapsed.seconds) * 1_000_000 + elapsed.microseconds
    if digits == 9:
        return within(iceberg_type, value, micros * 1000 + nanos, INT64)
    if nanos:
        raise InvalidArgument(f"{value} is finer than the microseconds of {iceberg_type}", inexact=True)
    return micros


def _exact_unit(iceberg_type: IcebergType, value: np.datetime64, unit: str) -> int:
    changed = value.astype(f"datetime64[{unit}]")
    if changed.astype(value.dtype) != value:
        raise InvalidArgument(f"{value} does not fit {iceberg_type} without loss", inexact=True)
    return int(changed.astype(np.int64))


def _count(iceberg_type: IcebergType, value: Any, bounds: tuple[int, int]) -> int:
    if isinstance(value, (bool, np.bool_)):
        raise _unfit(iceberg_type, value)
    return within(iceberg_type, value, index(value), bounds)


def _string(iceberg_type: IcebergType, value: Any) -> str:
    if not isinstance(value, str):
        raise _unfit(iceberg_type, value)
    value.encode("utf-8")
    return str(value)


def _uuid(iceberg_type: IcebergType, value: Any) -> bytes:
    if isinstance(value, str):
        value = uuid.UUID(value)
    return value.bytes if isinstance(value, uuid.UUID) else _bytes_of(iceberg_type, value, 16)


def _binary(iceberg_type: IcebergType, value: Any) -> bytes:
    return _bytes_of(iceberg_type, value, iceberg_type.length if isinstance(iceberg_type, iceberg.FixedType) else None)


def _geo(iceberg_type: IcebergType, value: Any) -> bytes:
    return value_from_json(iceberg_type, value) if isinstance(value, str) else _bytes_of(iceberg_type, value, None)


def _bytes_of(iceberg_type: IcebergType, value: Any, length: int | None) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise _unfit(iceberg_type, value)
    data = bytes(value)
    if length is not None and len(data) != length:
        raise InvalidArgument(f"type {iceberg_type} has {length} bytes, not {len(data)}")
    return data


def _struct(iceberg_type: IcebergType, value: Any) -> tuple[Any, ...]:
    fields = iceberg_type.children
    if isinstance(value, Mapping):
        unknown = set(value) - {child.name for child in fields}
        if unknown:
            raise InvalidArgument(f"{iceberg_type} has no field {', '.join(sorted(map(repr, unknown)))}")
        value = [value.get(child.name) for child in fields]
    values = _sequence(iceberg_type, value)
    if len(values) != len(fields):
        raise InvalidArgument(f"{iceberg_type} has {len(fields)} fields, not {len(values)}")
    return tuple(_child(child, item) for child, item in zip(fields, values, strict=True))


def _list(iceberg_type: IcebergType, value: Any) -> tuple[Any, ...]:
    return tuple(_child(iceberg_type.children[0], item) for item in _sequence(iceberg_type, value))


def _map(iceberg_type: IcebergType, value: Any) -> tuple[Any, ...]:
    key_field, value_field = iceberg_type.children
    pairs = list(value.items()) if isinstance(value, Mapping) else _sequence(iceberg_type, value)
    return tuple((_child(key_field, key), _child(value_field, item)) for key, item in pairs)


def _variant(iceberg_type: IcebergType, value: Any) -> tuple[bytes, bytes]:
    if isinstance(value, Mapping):
        value = (value.get("metadata"), value.get("value"))
    metadata, data = value
    return _bytes_of(iceberg_type, metadata, None), _bytes_of(iceberg_type, data, None)


def _child(field: NestedField, value: Any) -> Any:
    return null_checked(field, to_internal(field.field_type, value))


def _sequence(iceberg_type: IcebergType, value: Any) -> Sequence[Any]:
    if isinstance(value, np.ndarray):
        return list(value)
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes, bytearray)):
        raise _unfit(iceberg_type, value)
    return value


_CONVERSIONS: Final[dict[type[IcebergType], Callable[[IcebergType, Any], Any]]] = {
    iceberg.BooleanType: _boolean,
    iceberg.IntegerType: _integer,
    iceberg.LongType: _integer,
    iceberg.FloatType: _float,
    iceberg.DoubleType: _double,
    iceberg.DecimalType: _decimal,
    iceberg.DateType: _date,
    iceberg.TimeType: _time,
    **dict.fromkeys(TIMESTAMP_TYPES, _timestamp),
    iceberg.StringType: _string,
    iceberg.UUIDType: _uuid,
    iceberg.FixedType: _binary,
    iceberg.BinaryType: _binary,
    iceberg.GeometryType: _geo,
    iceberg.GeographyType: _geo,
    iceberg.VariantType: _variant,
    StructType: _struct,
    ListType: _list,
    MapType: _map,
}


def _unfit(iceberg_type: IcebergType, value: Any) -> InvalidArgument:
    return InvalidArgument(f"not a value of type {iceberg_type}: {shown(value)} ({type(value).__name__})")
