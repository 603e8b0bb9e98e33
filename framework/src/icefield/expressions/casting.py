"""Casts a literal to a column's type, exactly: a literal that is no value of the type is between or beyond its values.

So a comparison keeps its mathematical meaning: for an int column ``x < 2.5`` is ``x <= 2``, and ``x < 3000000000``
matches every value. For float and double the nearest value is used, since few decimal literals have an exact one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, Final

import numpy as np

from icefield import types as iceberg
from icefield.errors import InvalidArgument, InvalidExpression
from icefield.expressions.literals import Literal, literal_string, quoted, shown
from icefield.types import TIMESTAMP_TYPES, IcebergType
from icefield.types.values import calendar, decimal_from_unscaled, to_internal, value_to_json
from icefield.types.values.calendar import INT32, INT64, MICROS_PER_DAY


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
    return _within(floor, floor == number, *(INT64 if isinstance(iceberg_type, iceberg.LongType) else INT32))


def _decimal(iceberg_type: IcebergType, literal: Literal) -> Cast | Beyond:
    assert isinstance(iceberg_type, iceberg.DecimalType)
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
    most = _MAX_FLOAT32 if isinstance(iceberg_type, iceberg.FloatType) else _MAX_FLOAT64
    nearest = _nearest(number, isinstance(iceberg_type, iceberg.FloatType))
    if math.isfinite(nearest):
        return Cast(nearest)
    # The literal is between infinity and the largest finite number, or between their negatives. Rows may still be
    # infinite.
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


def _plain(iceberg_type: IcebergType, literal: Literal) -> Cast:
    """The cast of a literal that is never rounded; whole numbers are internal values of dates, times and timestamps."""
    try:
        return Cast(to_internal(iceberg_type, literal))
    except InvalidArgument as error:
        if "out_of_range" in error.data:
            raise
        raise _unfit(iceberg_type, literal) from None


def _date(iceberg_type: IcebergType, literal: Literal) -> Cast | Beyond:
    if not isinstance(literal, str):
        return _plain(iceberg_type, literal)
    string = literal.strip()
    if ":" not in string:
        return Cast(calendar.parse_date(string))
    instant = _instant(string, zone=False, digits=6)
    days, rest = divmod(instant.value, MICROS_PER_DAY)
    return Cast(days, instant.exact and rest == 0)


def _time(iceberg_type: IcebergType, literal: Literal) -> Cast | Beyond:
    if not isinstance(literal, str):
        return _plain(iceberg_type, literal)
    string, exact = _to_micros(literal.strip())
    return Cast(calendar.parse_time(string), exact)


def _timestamp(iceberg_type: Any, literal: Literal) -> Cast | Beyond:
    if not isinstance(literal, str):
        return _plain(iceberg_type, literal)
    return _instant(literal.strip(), iceberg_type.has_zone, iceberg_type.digits)


def _instant(string: str, zone: bool, digits: int) -> Cast:
    exact = True
    if digits == 6:
        string, exact = _to_micros(string)
    return Cast(calendar.parse_timestamp(string, zone=zone, digits=digits, lenient=True), exact)


def _to_micros(string: str) -> tuple[str, bool]:
    """A time with its fraction cut to microseconds, and whether nothing was lost."""
    match = _FINER_THAN_MICROS.search(string)
    if match is None:
        return string, True
    cut = string[: match.end(1)] + string[match.end() :]
    return cut, not string[match.end(1) : match.end()].strip("0")


def _binary(iceberg_type: IcebergType, literal: Literal) -> Cast:
    """Bytes; a string stands for its UTF-8."""
    if not isinstance(literal, bytes | str):
        raise _unfit(iceberg_type, literal)
    data = literal.encode() if isinstance(literal, str) else literal
    if isinstance(iceberg_type, iceberg.FixedType) and len(data) != iceberg_type.length:
        raise InvalidExpression(f"type {iceberg_type} cannot be compared with {len(data)} bytes: {shown(literal)}")
    return Cast(data)


_CASTS: Final[dict[type[IcebergType], Callable[[IcebergType, Literal], Cast | Beyond]]] = {
    iceberg.BooleanType: _plain,
    iceberg.IntegerType: _integer,
    iceberg.LongType: _integer,
    iceberg.FloatType: _floating,
    iceberg.DoubleType: _floating,
    iceberg.DecimalType: _decimal,
    iceberg.DateType: _date,
    iceberg.TimeType: _time,
    **dict.fromkeys(TIMESTAMP_TYPES, _timestamp),
    iceberg.StringType: _plain,
    iceberg.UUIDType: _plain,
    iceberg.FixedType: _binary,
    iceberg.BinaryType: _binary,
}


def internal_string(iceberg_type: IcebergType, value: Any) -> str:
    """An internal value as a literal that casts back to it."""
    if isinstance(iceberg_type, iceberg.DateType | iceberg.TimeType | iceberg.AnyTimestampType | iceberg.UUIDType):
        return quoted(value_to_json(iceberg_type, value))
    return literal_string(value)
