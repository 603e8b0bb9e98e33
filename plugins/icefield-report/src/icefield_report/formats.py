"""Numbers, sizes and times as people read them."""

from __future__ import annotations

import datetime as dt
from typing import Final

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def size(number: float) -> str:
    """A number of bytes, with three digits: ``12.3 MiB``."""
    unit = 0
    while abs(number) >= 1023.5 and unit < len(_UNITS) - 1:
        number /= 1024
        unit += 1
    digits = 0 if unit == 0 or abs(number) >= 100 else 1
    return f"{number:.{digits}f}".removesuffix(".0") + f" {_UNITS[unit]}"


def count(number: int, one: str = "", many: str = "") -> str:
    """A number with separators and an optional noun: ``1 file``, ``1,200 files``."""
    what = one if number == 1 else many or f"{one}s"
    return f"{number:,} {what}" if one else f"{number:,}"


def share(part: float, whole: float) -> str:
    """A part in percent, with a no-break space; 0 % if the whole is 0."""
    percent = 100 * part / whole if whole else 0.0
    number = "< 0.1" if 0 < percent < 0.1 else f"{percent:.1f}".removesuffix(".0")
    return f"{number} %".replace(" ", "\N{NO-BREAK SPACE}")


def time(milliseconds: int) -> str:
    """A time in UTC, to the minute, or the number itself if it is outside of the calendar."""
    try:
        found = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"
    return found.strftime("%Y-%m-%d %H:%M UTC")


def printable(string: str) -> str:
    """A string without control characters, surrogates and changes of direction."""
    if string.isprintable():
        return string
    kept = " \N{NO-BREAK SPACE}"
    return "".join(each if each.isprintable() or each in kept else "\N{REPLACEMENT CHARACTER}" for each in string)


def short(string: str, most: int) -> str:
    """A string on one line without control characters. An ellipsis replaces the middle beyond ``most`` characters."""
    plain = printable(string)
    if len(plain) <= most:
        return plain
    head = (most - 1) // 2
    return f"{plain[:head]}\N{HORIZONTAL ELLIPSIS}{plain[len(plain) - (most - 1 - head) :]}"
