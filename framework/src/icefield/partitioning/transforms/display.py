"""Internal values as people read them: ISO dates and times, base64 bytes."""

from __future__ import annotations

from base64 import b64encode
from decimal import Decimal
from typing import Any
from uuid import UUID

from icefield.types import (
    DateType,
    IcebergType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from icefield.types.values.calendar import date_from_days

MICROS = 1_000_000
NANOS = 1_000_000_000
SECONDS_PER_DAY = 86_400


def display_value(value_type: IcebergType, value: Any) -> str:
    """The string of an internal value; None is ``null``."""
    if value is None:
        return "null"
    match value_type:
        case DateType():
            return display_day(value)
        case TimeType():
            return _clock(value, MICROS)
        case TimestampType():
            return _instant(value, MICROS)
        case TimestamptzType():
            return _instant(value, MICROS) + "+00:00"
        case TimestampNanoType():
            return _instant(value, NANOS)
        case TimestamptzNanoType():
            return _instant(value, NANOS) + "+00:00"
        case UUIDType():
            return str(UUID(bytes=value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def display_year(years: int) -> str:
    """``1970``, from years since 1970."""
    return f"{1970 + years:04d}"


def display_month(months: int) -> str:
    """``1970-01``, from months since 1970-01."""
    years, month = divmod(months, 12)
    return f"{1970 + years:04d}-{month + 1:02d}"


def display_day(days: int) -> str:
    """``1970-01-01``, from days since then."""
    year, month, day = date_from_days(days)
    return f"{year:04d}-{month:02d}-{day:02d}"


def display_hour(hours: int) -> str:
    """``1970-01-01-00``, from hours since then."""
    days, hour = divmod(hours, 24)
    return f"{display_day(days)}-{hour:02d}"


def _clock(ticks: int, per_second: int) -> str:
    seconds, fraction = divmod(ticks, per_second)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    string = f"{hour:02d}:{minute:02d}:{second:02d}"
    return f"{string}.{fraction:0{len(str(per_second)) - 1}d}" if fraction else string


def _instant(ticks: int, per_second: int) -> str:
    days, rest = divmod(ticks, SECONDS_PER_DAY * per_second)
    return f"{display_day(days)}T{_clock(rest, per_second)}"
