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

from icefield import types as iceberg
from icefield.errors import InvalidArgument
from icefield.types.nested import ListType, MapType, StructType
from icefield.types.primitive import TIMESTAMP_TYPES, IcebergType, shown
from icefield.types.values import calendar
from icefield.types.values.calendar import INT32, INT64
from icefield.types.values.internal import decimal_from_unscaled, decimal_of_type, null_checked, unscaled, within
from icefield.types.values.wkb import wkb_to_wkt, wkt_to_wkb

_HEX: Final = re.compile(r"(?:[0-9a-fA-F]{2})*")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_DECIMAL: Final = re.compile(r"[+-]?[0-9]{1,76}(?:\.[0-9]{0,76})?(?:[eE][+-]?[0-9]{1,3})?")


def value_to_json(iceberg_type: IcebergType, internal: Any) -> Any:
    """The JSON object (as ``json`` takes it) of an internal value; null is None.

    Raises ``InvalidArgument`` for a value that has no JSON form, such as NaN.
    """
    if internal is None:
        return None
    try:
        _, write = _CONVERTERS[type(iceberg_type)]
        return write(iceberg_type, internal)
    except InvalidArgument:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise InvalidArgument(f"a value of type {iceberg_type} has no JSON form: {shown(internal)}") from None


def value_from_json(iceberg_type: IcebergType, value: Any) -> Any:
    """The internal value of a JSON object (as ``json`` gives it); null is None.

    Raises ``InvalidArgument``, naming the type, for JSON of a kind or form that is not the type's.
    """
    if value is None:
        return None
    if type(iceberg_type) not in _CONVERTERS:
        raise InvalidArgument(f"type {iceberg_type} has no JSON single-value form")
    read, _ = _CONVERTERS[type(iceberg_type)]
    return read(iceberg_type, value)


def _of_kind(iceberg_type: IcebergType, value: Any, *kinds: type) -> Any:
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise _wrong(iceberg_type, value)
    return value


def _wrong(iceberg_type: IcebergType, value: Any) -> InvalidArgument:
    return InvalidArgument(f"not the JSON form of type {iceberg_type}: {shown(value)}")


def _boolean(iceberg_type: IcebergType, value: Any) -> Any:
    return _of_kind(iceberg_type, value, bool)


def _string(iceberg_type: IcebergType, value: Any) -> Any:
    return _of_kind(iceberg_type, value, str)


def _integer(iceberg_type: IcebergType, value: Any) -> int:
    number = int(_of_kind(iceberg_type, value, int))
    return within(iceberg_type, value, number, INT64 if isinstance(iceberg_type, iceberg.LongType) else INT32)


def _read_float(iceberg_type: IcebergType, value: Any) -> float:
    _of_kind(iceberg_type, value, int, float)
    try:
        number = float(value)
        if isinstance(iceberg_type, iceberg.FloatType):
            number = float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        raise _wrong(iceberg_type, value) from None
    if not math.isfinite(number):
        raise _wrong(iceberg_type, value)
    return number


def _read_decimal(iceberg_type: IcebergType, value: Any) -> Decimal:
    assert isinstance(iceberg_type, iceberg.DecimalType)
    if not _DECIMAL.fullmatch(_string(iceberg_type, value)):
        raise _wrong(iceberg_type, value)
    try:
        number = Decimal(value)
    except InvalidOperation:
        raise _wrong(iceberg_type, value) from None
    if number.as_tuple().exponent != -iceberg_type.scale:
        raise InvalidArgument(
            f"a value of type {iceberg_type} has {iceberg_type.scale} digits after the point: '{value}'"
        )
    return decimal_of_type(iceberg_type, value, number)


def _read_date(iceberg_type: IcebergType, value: Any) -> int:
    return calendar.parse_date(_string(iceberg_type, value))


def _read_time(iceberg_type: IcebergType, value: Any) -> int:
    return calendar.parse_time(_string(iceberg_type, value))


def _read_timestamp(iceberg_type: Any, value: Any) -> int:
    string = _string(iceberg_type, value)
    return calendar.parse_timestamp(string, zone=iceberg_type.has_zone, digits=iceberg_type.digits)


def _read_uuid(iceberg_type: IcebergType, value: Any) -> bytes:
    if not _UUID.fullmatch(_string(iceberg_type, value)):
        raise _wrong(iceberg_type, value)
    return uuid.UUID(value).bytes


def _read_bytes(iceberg_type: IcebergType, value: Any) -> bytes:
    if not _HEX.fullmatch(_string(iceberg_type, value)):
        raise _wrong(iceberg_type, value)
    data = bytes.fromhex(value)
    if isinstance(iceberg_type, iceberg.FixedType) and len(data) != iceberg_type.length:
        raise InvalidArgument(f"type {iceberg_type} has {iceberg_type.length} bytes, not {len(data)}")
    return data


def _read_geo(iceberg_type: IcebergType, value: Any) -> bytes:
    return wkt_to_wkb(_string(iceberg_type, value))


def _read_struct(iceberg_type: IcebergType, value: Any) -> tuple[Any, ...]:
    for key in _of_kind(iceberg_type, value, dict):
        if not key.isascii() or not key.isdigit():
            raise InvalidArgument(f"the JSON form of a struct has field ids for keys, not {shown(key)}")
    fields = iceberg_type.children
    return tuple(
        null_checked(child, value_from_json(child.field_type, value.get(str(child.field_id)))) for child in fields
    )


def _read_list(iceberg_type: IcebergType, value: Any) -> tuple[Any, ...]:
    (element,) = iceberg_type.children
    items = _of_kind(iceberg_type, value, list)
    return tuple(null_checked(element, value_from_json(element.field_type, item)) for item in items)


def _read_map(iceberg_type: IcebergType, value: Any) -> tuple[Any, ...]:
    assert isinstance(iceberg_type, MapType)
    _of_kind(iceberg_type, value, dict)
    keys, items = value.get("keys"), value.get("values")
    if set(value) != {"keys", "values"} or not isinstance(keys, list) or not isinstance(items, list):
        raise _wrong(iceberg_type, value)
    if len(keys) != len(items):
        raise InvalidArgument(f"the JSON form of a map has {len(keys)} keys and {len(items)} values")
    return tuple(
        (
            null_checked(iceberg_type.key, value_from_json(iceberg_type.key_type, key)),
            null_checked(iceberg_type.value, value_from_json(iceberg_type.value_type, item)),
        )
        for key, item in zip(keys, items, strict=True)
    )


def _write_float(iceberg_type: IcebergType, internal: Any) -> float:
    if not math.isfinite(internal):
        raise InvalidArgument(f"{internal} has no JSON form")
    return float(internal)


def _write_decimal(iceberg_type: IcebergType, internal: Any) -> str:
    assert isinstance(iceberg_type, iceberg.DecimalType)
    exact = decimal_from_unscaled(unscaled(internal, iceberg_type.scale), iceberg_type.scale)
    # Only a negative scale needs an exponent; Python would also write one for small fractions.
    return format(exact, "f") if iceberg_type.scale >= 0 else str(exact)


def _write_timestamp(iceberg_type: Any, internal: Any) -> str:
    return calendar.format_timestamp(internal, zone=iceberg_type.has_zone, digits=iceberg_type.digits)


def _write_struct(iceberg_type: IcebergType, internal: Any) -> dict[str, Any]:
    pairs = zip(iceberg_type.children, internal, strict=True)
    return {str(child.field_id): value_to_json(child.field_type, item) for child, item in pairs if item is not None}


def _write_list(iceberg_type: IcebergType, internal: Any) -> list[Any]:
    return [value_to_json(iceberg_type.children[0].field_type, item) for item in internal]


def _write_map(iceberg_type: IcebergType, internal: Any) -> dict[str, Any]:
    assert isinstance(iceberg_type, MapType)
    return {
        "keys": [value_to_json(iceberg_type.key_type, key) for key, _ in internal],
        "values": [value_to_json(iceberg_type.value_type, item) for _, item in internal],
    }


_Converter = Callable[[IcebergType, Any], Any]

_CONVERTERS: Final[dict[type[IcebergType], tuple[_Converter, _Converter]]] = {
    iceberg.BooleanType: (_boolean, _boolean),
    iceberg.IntegerType: (_integer, _integer),
    iceberg.LongType: (_integer, _integer),
    iceberg.FloatType: (_read_float, _write_float),
    iceberg.DoubleType: (_read_float, _write_float),
    iceberg.DecimalType: (_read_decimal, _write_decimal),
    iceberg.DateType: (_read_date, lambda _, internal: calendar.format_date(internal)),
    iceberg.TimeType: (_read_time, lambda _, internal: calendar.format_time(internal)),
    **dict.fromkeys(TIMESTAMP_TYPES, (_read_timestamp, _write_timestamp)),
    iceberg.StringType: (_string, _string),
    iceberg.UUIDType: (_read_uuid, lambda _, internal: str(uuid.UUID(bytes=internal))),
    iceberg.FixedType: (_read_bytes, lambda _, internal: internal.hex()),
    iceberg.BinaryType: (_read_bytes, lambda _, internal: internal.hex()),
    iceberg.GeometryType: (_read_geo, lambda _, internal: wkb_to_wkt(internal)),
    iceberg.GeographyType: (_read_geo, lambda _, internal: wkb_to_wkt(internal)),
    StructType: (_read_struct, _write_struct),
    ListType: (_read_list, _write_list),
    MapType: (_read_map, _write_map),
}
"""The reader and the writer of each type's JSON form."""
