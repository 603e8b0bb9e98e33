"""Casts a literal to a column's type, exactly: a literal that is no value of the type is between or beyond its values.

So a comparison keeps its mathematical meaning: for an int column ``x < 2.5`` is ``x <= 2``, and ``x < 3000000000``
matches every value. For float and double the nearest value is used, since few decimal literals have an exact one.
"""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, Final

import numpy as np

from icefield.errors import InvalidArgument, InvalidExpression
from icefield.expressions.literals import Literal, literal_string, quoted, shown
from icefield.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
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
)
from icefield.types.values import decimal_from_unscaled
from icefield.types.values.calendar import (
    INT32,
    INT64,
    MICROS_PER_DAY,
    format_date,
    format_time,
    format_timestamp,
    parse_date,
    parse_time,
    parse_timestamp,
)


class Beyond(Enum):
    """A literal that is outside the range of the type."""

    BELOW = "below"
    ABOVE = "above"


@dataclass(frozen=True, slots=True)
class Cast:
    """An internal value. If it is not ``exact``, the literal is between this value and the next one of the type."""

    value: Any
    exact: bool = True


_NUMBER_STRING: Final = re.compile(
    r"\s*[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,3})?\s*"
)
_FINER_THAN_MICROS: Final = re.compile(r"(\.[0-9]{6})[0-9]+")
_MAX_FLOAT32: Final = float(np.finfo(np.float32).max)
_MAX_FLOAT64: Final = float(np.finfo(np.float64).max)


def cast(iceberg_type: IcebergType, literal: Literal) -> Cast | Beyond:
    """Cast a literal to the values of a type. Raises ``InvalidExpression`` if the type has no comparison with it."""
    convert = _CASTS.get(type(iceberg_type))
    if convert is None:
        raise InvalidExpression(f"a column of type {iceberg_type} can only be tested for null")
    try:
        return convert(iceberg_type, literal)
    except InvalidArgument as error:
        beyond = error.data.get("out_of_range")
        if beyond is not None:
            return Beyond.ABOVE if beyond > 0 else Beyond.BELOW
        if isinstance(error, InvalidExpression):
            raise
        raise InvalidExpression(error.message) from None


def _unfit(iceberg_type: IcebergType, literal: Literal) -> InvalidExpression:
    return InvalidExpression(f"type {iceberg_type} cannot be compared with {shown(literal)}")


def _number(iceberg_type: IcebergType, literal: Literal) -> int | Decimal | float:
    """A literal as an exact number; a float only if it is infinite."""
    if isinstance(literal, bool | bytes):
        raise _unfit(iceberg_type, literal)
    if isinstance(literal, str):
        if not _NUMBER_STRING.fullmatch(literal):
            raise _unfit(iceberg_type, literal)
        return Decimal(literal.strip())
    if isinstance(literal, float) and math.isfinite(literal):
        return Decimal(repr(literal))
    return literal


def _within(value: int, exact: bool, low: int, high: int) -> Cast | Beyond:
    if value < low:
        return Beyond.BELOW
    return Beyond.ABOVE if value > high else Cast(value, exact)


def _integer(iceberg_type: IcebergType, literal: Literal) -> Cast | Beyond:
    number = _number(iceberg_type, literal)
    if isinstance(number, float):
        return Beyond.ABOVE if number > 0 else Beyond.BELOW
    floor = math.floor(number)
    return _within(floor, floor == number, *(INT64 if isinstance(iceberg_type, LongType) else INT32))


def _decimal(iceberg_type: IcebergType, literal: Literal) -> Cast | Beyond:
    assert isinstance(iceberg_type, DecimalType)
    number = _number(iceberg_type, literal)
    if isinstance(number, float):
        return Beyond.ABOVE if number > 0 else Beyond.BELOW
    numerator, denominator = number.as_integer_ratio()
    scale = iceberg_type.scale
    unscaled, rest = divmod(numerator * 10 ** max(scale, 0), denominator * 10 ** max(-scale, 0))
    most = 10**iceberg_type.precision - 1
    found = _within(unscaled, rest == 0, -most, most)
    return Cast(decimal_from_unscaled(found.value, scale), found.exact) if isinstance(found, Cast) else found


def _floating(iceberg_type: IcebergType, literal: Literal) -> Cast | Beyond:
    number = _number(iceberg_type, literal)
    if isinstance(number, float):
        return Cast(number)
    most = _MAX_FLOAT32 if isinstance(iceberg_type, FloatType) else _MAX_FLOAT64
    nearest = _nearest(number, isinstance(iceberg_type, FloatType))
    if math.isfinite(nearest):
        return Cast(nearest)
    # Beyond the last finite number, below infinity: rows may still be infinite.
    return Cast(most if nearest > 0 else -math.inf, exact=False)


def _nearest(number: int | Decimal, single: bool) -> float:
    try:
        double = float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
    if not single:
        return double
    with np.errstate(over="ignore"):
        return float(np.float32(double))


def _boolean(iceberg_type: IcebergType, literal: Literal) -> Cast:
    if isinstance(literal, bool):
        return Cast(literal)
    if isinstance(literal, str) and literal.lower() in ("true", "false"):
        return Cast(literal.lower() == "true")
    raise _unfit(iceberg_type, literal)


def _count(iceberg_type: IcebergType, literal: Literal, low: int, high: int) -> Cast | Beyond:
    """Days or microseconds given as a whole number."""
    if isinstance(literal, int) and not isinstance(literal, bool):
        return _within(literal, True, low, high)
    raise _unfit(iceberg_type, literal)


def _date(iceberg_type: IcebergType, literal: Literal) -> Cast | Beyond:
    if not isinstance(literal, str):
        return _count(iceberg_type, literal, *INT32)
    string = literal.strip()
    if ":" not in string:
        return Cast(parse_date(string))
    instant = _instant(string, zone=False, digits=6)
    days, rest = divmod(instant.value, MICROS_PER_DAY)
    return Cast(days, instant.exact and rest == 0)


def _time(iceberg_type: IcebergType, literal: Literal) -> Cast | Beyond:
    if not isinstance(literal, str):
        return _count(iceberg_type, literal, 0, MICROS_PER_DAY - 1)
    string, exact = _to_micros(literal.strip())
    return Cast(parse_time(string), exact)


def _timestamp(iceberg_type: IcebergType, literal: Literal) -> Cast | Beyond:
    if not isinstance(literal, str):
        return _count(iceberg_type, literal, *INT64)
    zone = isinstance(iceberg_type, TimestamptzType | TimestamptzNanoType)
    nanos = isinstance(iceberg_type, TimestampNanoType | TimestamptzNanoType)
    return _instant(literal.strip(), zone, 9 if nanos else 6)


def _instant(string: str, zone: bool, digits: int) -> Cast:
    exact = True
    if digits == 6:
        string, exact = _to_micros(string)
    return Cast(parse_timestamp(string, zone=zone, digits=digits, lenient=True), exact)


def _to_micros(string: str) -> tuple[str, bool]:
    """A time with its fraction cut to microseconds, and whether nothing was lost."""
    match = _FINER_THAN_MICROS.search(string)
    if match is None:
        return string, True
    cut = string[: match.end(1)] + string[match.end() :]
    return cut, not string[match.end(1) : match.end()].strip("0")


def _string(iceberg_type: IcebergType, literal: Literal) -> Cast:
    if not isinstance(literal, str):
        raise _unfit(iceberg_type, literal)
    return Cast(literal)


def _uuid(iceberg_type: IcebergType, literal: Literal) -> Cast:
    if isinstance(literal, bytes) and len(literal) == 16:
        return Cast(literal)
    if isinstance(literal, str):
        try:
            return Cast(uuid.UUID(literal).bytes)
        except ValueError:
            pass
    raise _unfit(iceberg_type, literal)


def _binary(iceberg_type: IcebergType, literal: Literal) -> Cast:
    """Bytes; a string stands for its UTF-8."""
    if not isinstance(literal, bytes | str):
        raise _unfit(iceberg_type, literal)
    data = literal.encode() if isinstance(literal, str) else literal
    if isinstance(iceberg_type, FixedType) and len(data) != iceberg_type.length:
        raise InvalidExpression(f"type {iceberg_type} cannot be compared with {len(data)} bytes: {shown(literal)}")
    return Cast(data)


_CASTS: Final[dict[type[IcebergType], Callable[[IcebergType, Literal], Cast | Beyond]]] = {
    BooleanType: _boolean,
    IntegerType: _integer,
    LongType: _integer,
    FloatType: _floating,
    DoubleType: _floating,
    DecimalType: _decimal,
    DateType: _date,
    TimeType: _time,
    TimestampType: _timestamp,
    TimestamptzType: _timestamp,
    TimestampNanoType: _timestamp,
    TimestamptzNanoType: _timestamp,
    StringType: _string,
    UUIDType: _uuid,
    FixedType: _binary,
    BinaryType: _binary,
}


def internal_string(iceberg_type: IcebergType, value: Any) -> str:
    """An internal value as a literal that casts back to it."""
    match iceberg_type:
        case DateType():
            return quoted(format_date(value))
        case TimeType():
            return quoted(format_time(value))
        case TimestampType() | TimestamptzType():
            return quoted(format_timestamp(value, zone=isinstance(iceberg_type, TimestamptzType)))
        case TimestampNanoType() | TimestamptzNanoType():
            zone = isinstance(iceberg_type, TimestamptzNanoType)
            return quoted(format_timestamp(value, zone=zone, digits=9))
        case UUIDType():
            return quoted(str(uuid.UUID(bytes=value)))
    return literal_string(value)
