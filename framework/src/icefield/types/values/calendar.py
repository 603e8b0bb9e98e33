"""The calendar and its ISO 8601 string, as integers.

Every day has 86,400 seconds; neither the machine's zone nor daylight saving ever matters. Years follow the proleptic
Gregorian calendar and may exceed 9999, the limit of Python's own ``date``.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Final

from icefield.errors import InvalidArgument

MICROS_PER_DAY: Final = 86_400_000_000
NANOS_PER_DAY: Final = 86_400_000_000_000
INT32: Final = (-(2**31), 2**31 - 1)
INT64: Final = (-(2**63), 2**63 - 1)

_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
_CYCLE_YEARS: Final = 400
_CYCLE_DAYS: Final = 146_097
_CYCLE_START: Final = date(2000, 1, 1).toordinal() - _EPOCH_ORDINAL

_DATE = r"(?P<year>[0-9]{4}|[+-][0-9]{4,9})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_TIME = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{1,9}))?)?"
_OFFSET = r"(?P<offset>[Zz]|[+-][0-9]{2}(?::?[0-9]{2}(?::?[0-9]{2})?)?)?"
_DATE_STRING: Final = re.compile(_DATE)
_TIME_STRING: Final = re.compile(_TIME)
_TIMESTAMP_STRING: Final = re.compile(f"{_DATE}T{_TIME}{_OFFSET}")
_LENIENT_TIMESTAMP_STRING: Final = re.compile(f"{_DATE}(?:[Tt ]{_TIME} ?{_OFFSET})?")
_MAX_STRING: Final = 64


def days_from_date(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to a day of any year. Raises ``ValueError`` for a day that does not exist."""
    cycles, year = divmod(year - 2000, _CYCLE_YEARS)
    return date(2000 + year, month, day).toordinal() - _EPOCH_ORDINAL + cycles * _CYCLE_DAYS


def date_from_days(days: int) -> tuple[int, int, int]:
    """Year, month and day of a count of days from 1970-01-01."""
    cycles, rest = divmod(days - _CYCLE_START, _CYCLE_DAYS)
    day = date.fromordinal(_CYCLE_START + rest + _EPOCH_ORDINAL)
    return day.year + cycles * _CYCLE_YEARS, day.month, day.day


def parse_date(string: str) -> int:
    """Days from 1970-01-01 of ``2017-11-16``. Raises ``InvalidArgument``."""
    match = _DATE_STRING.fullmatch(_bounded(string, "date"))
    if match is None:
        raise _wrong(string, "date", "2017-11-16")
    return _in_range(_days(match, string, "date"), INT32, string, "date")


def format_date(days: int) -> str:
    """ISO string of a day; years beyond four digits carry a sign."""
    year, month, day = date_from_days(days)
    shown = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+05d}"
    return f"{shown}-{month:02d}-{day:02d}"


def parse_time(string: str) -> int:
    """Microseconds from midnight of ``22:31:08.123456``. Raises ``InvalidArgument``."""
    match = _TIME_STRING.fullmatch(_bounded(string, "time"))
    if match is None:
        raise _wrong(string, "time", "22:31:08.123456")
    return _nanos_of_day(match, string, "time", 1000) // 1000


def format_time(of_day: int, digits: int = 6) -> str:
    """ISO string of a time of day in micro- (``digits=6``) or nanoseconds (``digits=9``), with all digits."""
    seconds, fraction = divmod(of_day, 10**digits)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction:0{digits}d}"


def parse_timestamp(string: str, *, zone: bool, digits: int = 6, lenient: bool = False) -> int:
    """Micro- (``digits=6``) or nanoseconds (``digits=9``) from 1970-01-01T00:00:00 (UTC with ``zone``).

    Strictly, the offset is ``+00:00`` with a zone and absent without one. With ``lenient``, any offset is allowed, a
    blank may replace the ``T``, and a date alone means its midnight (UTC). Raises ``InvalidArgument``.
    """
    what = "timestamp with zone" if zone else "timestamp without zone"
    match = (_LENIENT_TIMESTAMP_STRING if lenient else _TIMESTAMP_STRING).fullmatch(_bounded(string, what))
    if match is None:
        raise _wrong(string, what, "2017-11-16T22:31:08" + ("+00:00" if zone else ""))
    date_alone = match["hour"] is None
    if zone and match["offset"] is None and not date_alone:
        raise InvalidArgument(f"{what} lacks an offset: '{string}'; add one, such as +00:00")
    if not zone and match["offset"] is not None:
        raise InvalidArgument(f"{what} has an offset: '{string}'; leave it out")
    if zone and not lenient and match["offset"] != "+00:00":
        raise InvalidArgument(f"{what} has another offset than +00:00: '{string}'")
    unit = 10 ** (9 - digits)
    of_day = 0 if date_alone else _nanos_of_day(match, string, what, unit)
    nanos = _days(match, string, what) * NANOS_PER_DAY + of_day - _offset_seconds(match, string, what) * 10**9
    return _in_range(nanos // unit, INT64, string, what)


def format_timestamp(value: int, *, zone: bool, digits: int = 6) -> str:
    """ISO string of micro- or nanoseconds from the epoch, with all digits of fraction; ``+00:00`` with a zone."""
    days, of_day = divmod(value, 86_400 * 10**digits)
    return f"{format_date(days)}T{format_time(of_day, digits)}{'+00:00' if zone else ''}"


def _days(match: re.Match[str], string: str, what: str) -> int:
    try:
        return days_from_date(int(match["year"]), int(match["month"]), int(match["day"]))
    except ValueError as error:
        raise InvalidArgument(f"not a {what}: '{string}': {error}") from None


def _nanos_of_day(match: re.Match[str], string: str, what: str, unit: int) -> int:
    hour, minute, second = int(match["hour"]), int(match["minute"]), int(match["second"] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise InvalidArgument(f"not a {what}: '{string}': hour, minute or second out of range")
    nanos = int((match["fraction"] or "0").ljust(9, "0"))
    if nanos % unit:
        raise InvalidArgument(f"{what} is finer than microseconds: '{string}'", inexact=True)
    return (hour * 3600 + minute * 60 + second) * 10**9 + nanos


def _offset_seconds(match: re.Match[str], string: str, what: str) -> int:
    offset = match["offset"]
    if offset is None or offset in "Zz":
        return 0
    figures = offset[1:].replace(":", "")
    hours, minutes, seconds = int(figures[:2]), int(figures[2:4] or 0), int(figures[4:6] or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        raise InvalidArgument(f"not a {what}: '{string}': offset out of range")
    total = hours * 3600 + minutes * 60 + seconds
    return -total if offset[0] == "-" else total


def _bounded(string: str, what: str) -> str:
    if len(string) > _MAX_STRING:
        raise InvalidArgument(f"not a {what}: a string of {len(string)} characters")
    return string


def _wrong(string: str, what: str, example: str) -> InvalidArgument:
    return InvalidArgument(f"not a {what}: '{string}'; write it as {example}")


def _in_range(value: int, bounds: tuple[int, int], string: str, what: str) -> int:
    low, high = bounds
    if low <= value <= high:
        return value
    raise InvalidArgument(f"{what} is out of range: '{string}'", out_of_range=1 if value > high else -1)
