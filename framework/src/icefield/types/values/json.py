"""The JSON form of one value: default values in schemas.

Spec: Appendix D, JSON single-value serialization.
"""

from __future__ import annotations

import math
import re
import struct
import uuid
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from icefield.errors import InvalidArgument
from icefield.types.nested import ListType, MapType, NestedField, StructType
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
from icefield.types.values.binary import decimal_from_unscaled, unscaled
from icefield.types.values.calendar import (
    INT32,
    INT64,
    format_date,
    format_time,
    format_timestamp,
    parse_date,
    parse_time,
    parse_timestamp,
)
from icefield.types.values.wkb import wkb_to_wkt, wkt_to_wkb

_HEX: Final = re.compile(r"(?:[0-9a-fA-F]{2})*")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_DECIMAL: Final = re.compile(r"[+-]?[0-9]{1,76}(?:\.[0-9]{0,76})?(?:[eE][+-]?[0-9]{1,3})?")


def to_json(iceberg_type: IcebergType, internal: Any) -> Any:
    """The JSON object (as ``json`` takes it) of an internal value; null is None.

    Raises ``InvalidArgument`` for a value that has no JSON form, such as NaN.
    """
    if internal is None:
        return None
    try:
        return _WRITERS[type(iceberg_type)](iceberg_type, internal)
    except InvalidArgument:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise InvalidArgument(f"a value of type {iceberg_type} has no JSON form: {shown(internal)}") from None


def from_json(iceberg_type: IcebergType, value: Any) -> Any:
    """The internal value of a JSON object (as ``json`` gives it); null is None.

    Raises ``InvalidArgument``, naming the type, for JSON of a kind or form that is not the type's.
    """
    if value is None:
        return None
    read = _READERS.get(type(iceberg_type))
    if read is None:
        raise InvalidArgument(f"type {iceberg_type} has no JSON single-value form")
    return read(iceberg_type, value)


def _kind(iceberg_type: IcebergType, value: Any, *kinds: type) -> None:
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise _wrong(iceberg_type, value)


def _wrong(iceberg_type: IcebergType, value: Any) -> InvalidArgument:
    shown = repr(value)
    return InvalidArgument(
        f"not the JSON form of type {iceberg_type}: {shown if len(shown) <= 80 else shown[:77] + '...'}"
    )


def _out_of_range(iceberg_type: IcebergType, value: Any, above: bool) -> InvalidArgument:
    return InvalidArgument(f"out of range for type {iceberg_type}: {shown(value)}", out_of_range=1 if above else -1)


def _read_boolean(iceberg_type: IcebergType, value: Any) -> bool:
    _kind(iceberg_type, value, bool)
    return bool(value)


def _read_integer(iceberg_type: IcebergType, value: Any) -> int:
    _kind(iceberg_type, value, int)
    low, high = INT64 if isinstance(iceberg_type, LongType) else INT32
    if not low <= value <= high:
        raise InvalidArgument(
            f"out of range for type {iceberg_type}: {shown(value)}", out_of_range=1 if value > high else -1
        )
    return int(value)


def _read_float(iceberg_type: IcebergType, value: Any) -> float:
    _kind(iceberg_type, value, int, float)
    try:
        number = float(value)
        if isinstance(iceberg_type, FloatType):
            number = float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        raise _wrong(iceberg_type, value) from None
    if not math.isfinite(number):
        raise _wrong(iceberg_type, value)
    return number


def _read_decimal(iceberg_type: IcebergType, value: Any) -> Decimal:
    assert isinstance(iceberg_type, DecimalType)
    _kind(iceberg_type, value, str)
    if not _DECIMAL.fullmatch(value):
        raise _wrong(iceberg_type, value)
    try:
        number = Decimal(value)
    except InvalidOperation:
        raise _wrong(iceberg_type, value) from None
    if number.as_tuple().exponent != -iceberg_type.scale:
        raise InvalidArgument(
            f"a value of type {iceberg_type} has {iceberg_type.scale} digits after the point: '{value}'"
        )
    exact = unscaled(number, iceberg_type.scale)
    if abs(exact) >= 10**iceberg_type.precision:
        raise _out_of_range(iceberg_type, value, exact > 0)
    return decimal_from_unscaled(exact, iceberg_type.scale)


def _read_temporal(iceberg_type: IcebergType, value: Any) -> int:
    _kind(iceberg_type, value, str)
    match iceberg_type:
        case DateType():
            return parse_date(value)
        case TimeType():
            return parse_time(value)
    return parse_timestamp(value, zone=_has_zone(iceberg_type), digits=_digits(iceberg_type))


def _read_string(iceberg_type: IcebergType, value: Any) -> str:
    _kind(iceberg_type, value, str)
    return str(value)


def _read_uuid(iceberg_type: IcebergType, value: Any) -> bytes:
    _kind(iceberg_type, value, str)
    if not _UUID.fullmatch(value):
        raise _wrong(iceberg_type, value)
    return uuid.UUID(value).bytes


def _read_bytes(iceberg_type: IcebergType, value: Any) -> bytes:
    _kind(iceberg_type, value, str)
    if not _HEX.fullmatch(value):
        raise _wrong(iceberg_type, value)
    data = bytes.fromhex(value)
    if isinstance(iceberg_type, FixedType) and len(data) != iceberg_type.length:
        raise InvalidArgument(f"type {iceberg_type} has {iceberg_type.length} bytes, not {len(data)}")
    return data


def _read_geo(iceberg_type: IcebergType, value: Any) -> bytes:
    _kind(iceberg_type, value, str)
    return wkt_to_wkb(value)


def _read_struct(iceberg_type: IcebergType, value: Any) -> tuple[Any, ...]:
    assert isinstance(iceberg_type, StructType)
    _kind(iceberg_type, value, dict)
    for key in value:
        if not key.isascii() or not key.isdigit():
            raise InvalidArgument(f"the JSON form of a struct has field ids for keys, not {shown(key)}")
    return tuple(_read_child(child, value.get(str(child.field_id))) for child in iceberg_type.fields)


def _read_list(iceberg_type: IcebergType, value: Any) -> tuple[Any, ...]:
    assert isinstance(iceberg_type, ListType)
    _kind(iceberg_type, value, list)
    return tuple(_read_child(iceberg_type.element, item) for item in value)


def _read_map(iceberg_type: IcebergType, value: Any) -> tuple[Any, ...]:
    assert isinstance(iceberg_type, MapType)
    _kind(iceberg_type, value, dict)
    keys, items = value.get("keys"), value.get("values")
    if set(value) != {"keys", "values"} or not isinstance(keys, list) or not isinstance(items, list):
        raise _wrong(iceberg_type, value)
    if len(keys) != len(items):
        raise InvalidArgument(f"the JSON form of a map has {len(keys)} keys and {len(items)} values")
    pairs = zip(keys, items, strict=True)
    return tuple((_read_child(iceberg_type.key, k), _read_child(iceberg_type.value, v)) for k, v in pairs)


def _read_child(field: NestedField, value: Any) -> Any:
    internal = from_json(field.field_type, value)
    if internal is None and field.required:
        raise InvalidArgument(f"null where field '{field.name}' is required", field_id=field.field_id)
    return internal


def _write_integer(iceberg_type: IcebergType, internal: Any) -> int:
    return _read_integer(iceberg_type, internal)


def _write_float(iceberg_type: IcebergType, internal: Any) -> float:
    if not math.isfinite(internal):
        raise InvalidArgument(f"{internal} has no JSON form")
    return float(internal)


def _write_decimal(iceberg_type: IcebergType, internal: Any) -> str:
    assert isinstance(iceberg_type, DecimalType)
    exact = decimal_from_unscaled(unscaled(internal, iceberg_type.scale), iceberg_type.scale)
    # Only a negative scale needs an exponent; Python would also write one for small fractions.
    return format(exact, "f") if iceberg_type.scale >= 0 else str(exact)


def _write_temporal(iceberg_type: IcebergType, internal: Any) -> str:
    match iceberg_type:
        case DateType():
            return format_date(internal)
        case TimeType():
            return format_time(internal)
    return format_timestamp(internal, zone=_has_zone(iceberg_type), digits=_digits(iceberg_type))


def _write_struct(iceberg_type: IcebergType, internal: Any) -> dict[str, Any]:
    assert isinstance(iceberg_type, StructType)
    pairs = zip(iceberg_type.fields, internal, strict=True)
    return {str(child.field_id): to_json(child.field_type, item) for child, item in pairs if item is not None}


def _write_map(iceberg_type: IcebergType, internal: Any) -> dict[str, Any]:
    assert isinstance(iceberg_type, MapType)
    return {
        "keys": [to_json(iceberg_type.key_type, key) for key, _ in internal],
        "values": [to_json(iceberg_type.value_type, item) for _, item in internal],
    }


def _write_list(iceberg_type: IcebergType, internal: Any) -> list[Any]:
    assert isinstance(iceberg_type, ListType)
    return [to_json(iceberg_type.element_type, item) for item in internal]


def _has_zone(iceberg_type: IcebergType) -> bool:
    return isinstance(iceberg_type, (TimestamptzType, TimestamptzNanoType))


def _digits(iceberg_type: IcebergType) -> int:
    return 9 if isinstance(iceberg_type, (TimestampNanoType, TimestamptzNanoType)) else 6


_Converter = Callable[[IcebergType, Any], Any]

_READERS: Final[dict[type[IcebergType], _Converter]] = {
    BooleanType: _read_boolean,
    IntegerType: _read_integer,
    LongType: _read_integer,
    FloatType: _read_float,
    DoubleType: _read_float,
    DecimalType: _read_decimal,
    DateType: _read_temporal,
    TimeType: _read_temporal,
    TimestampType: _read_temporal,
    TimestamptzType: _read_temporal,
    TimestampNanoType: _read_temporal,
    TimestamptzNanoType: _read_temporal,
    StringType: _read_string,
    UUIDType: _read_uuid,
    FixedType: _read_bytes,
    BinaryType: _read_bytes,
    GeometryType: _read_geo,
    GeographyType: _read_geo,
    StructType: _read_struct,
    ListType: _read_list,
    MapType: _read_map,
}

_WRITERS: Final[dict[type[IcebergType], _Converter]] = {
    BooleanType: _read_boolean,
    IntegerType: _write_integer,
    LongType: _write_integer,
    FloatType: _write_float,
    DoubleType: _write_float,
    DecimalType: _write_decimal,
    DateType: _write_temporal,
    TimeType: _write_temporal,
    TimestampType: _write_temporal,
    TimestamptzType: _write_temporal,
    TimestampNanoType: _write_temporal,
    TimestamptzNanoType: _write_temporal,
    StringType: _read_string,
    UUIDType: lambda _, internal: str(uuid.UUID(bytes=internal)),
    FixedType: lambda _, internal: internal.hex(),
    BinaryType: lambda _, internal: internal.hex(),
    GeometryType: lambda _, internal: wkb_to_wkt(internal),
    GeographyType: lambda _, internal: wkb_to_wkt(internal),
    StructType: _write_struct,
    ListType: _write_list,
    MapType: _write_map,
}
