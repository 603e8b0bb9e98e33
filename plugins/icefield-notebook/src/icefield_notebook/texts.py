"""Names, numbers, sizes and times as people read them: on one line, and of bounded length."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Final

from icefield.toolkit import without_userinfo

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_MOST_EXAMINED: Final = 1_000
_EPOCH: Final = dt.datetime(1970, 1, 1)


def short(value: object, most: int = 200) -> str:
    """A value as one printable line without passwords of URIs. An ellipsis replaces text beyond ``most`` characters."""
    line = " ".join(without_userinfo(beginning(str(value))).split())
    plain = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in line)
    return plain if len(plain) <= most else f"{plain[: most - 1]}\N{HORIZONTAL ELLIPSIS}"


def beginning(text: str) -> str:
    """The part of a text that is examined; the search for passwords takes quadratic time.

    An "@" after the part makes a password that it cuts in two one that is found.
    """
    return text if len(text) <= _MOST_EXAMINED else f"{text[:_MOST_EXAMINED]}@"


def count(number: int, noun: str = "") -> str:
    """A number with separators and an optional noun: ``1 file``, ``1,200 files``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}" if noun else f"{number:,}"


def size(number: float) -> str:
    """A number of bytes: ``716 B``, ``12.3 MiB``."""
    unit = 0
    while abs(number) >= 1023.5 and unit < len(_UNITS) - 1:
        number /= 1024
        unit += 1
    return f"{number:.{0 if unit == 0 or abs(number) >= 100 else 1}f} {_UNITS[unit]}"


def time(milliseconds: int) -> str:
    """A time in UTC, to the second, or the number itself if it is outside of the calendar."""
    try:
        return f"{_EPOCH + dt.timedelta(seconds=milliseconds // 1000):%Y-%m-%d %H:%M:%S} UTC"
    except OverflowError:
        return f"{milliseconds} ms since 1970"


def number_in(summary: Mapping[str, str], name: str) -> int | None:
    """A count in the summary of a snapshot; None if it is missing, or no number."""
    text = summary.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None
