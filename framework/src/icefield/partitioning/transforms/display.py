"""Internal values as people read them: ISO dates and times, base64 bytes."""

from __future__ import annotations

from base64 import b64encode
from decimal import Decimal
from typing import Any
from uuid import UUID

from icefield.types import AnyTimestampType, DateType, IcebergType, TimeType, UUIDType
from icefield.types.values.calendar import date_from_days, format_time

SECONDS_PER_DAY = 86_400


def display_value(value_type: IcebergType, value: Any) -> str:
    """The string of an internal value; None is ``null``."""
    if value is None:
        return "null"
    match value_type:
        case DateType():
            return display_day(value)
        case TimeType():
            return _clock(value, 6)
        case AnyTimestampType():
            days, rest = divmod(value, SECONDS_PER_DAY * 10**value_type.digits)
            zone = "+00:00" if value_type.has_zone else ""
            return f"{display_day(days)}T{_clock(rest, value_type.digits)}{zone}"
        case UUIDType():
            return str(UUID(bytes=value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def display_day(days: int) -> str:
    """``1970-01-01``, from days since then."""
    year, month, day = date_from_days(days)
    return f"{year:04d}-{month:02d}-{day:02d}"


def _clock(ticks: int, digits: int) -> str:
    """A time of day, without a fraction that is zero."""
    seconds, _, fraction = format_time(ticks, digits).partition(".")
    return f"{seconds}.{fraction}" if fraction.strip("0") else seconds
