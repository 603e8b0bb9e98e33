"""The values of options: each function makes one of a string, and raises ``ValueError`` with a message for people."""

from __future__ import annotations

import datetime as dt
import re
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SPAN = re.compile(r"(\d{1,9})(ms|s|m|h|d|w)")
_MILLISECONDS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


def pair(given: str) -> tuple[str, str]:
    """Split ``KEY=VALUE``."""
    key, equals, value = given.partition("=")
    if not equals or not key:
        raise ValueError(f"'{given}' is no KEY=VALUE")
    return key, value


def count(given: str) -> int:
    """A number that is not negative."""
    try:
        number = int(given)
    except ValueError:
        number = -1
    if number < 0:
        raise ValueError(f"'{given}' is no number from 0 on")
    return number


def names(given: str) -> tuple[str, ...]:
    """Split names at commas."""
    return tuple(name.strip() for name in given.split(",")) if given else ()


def instant(given: str) -> int:
    """Milliseconds since 1970; a time without a zone is in UTC."""
    try:
        found = dt.datetime.fromisoformat(given)
    except ValueError:
        raise ValueError(f"'{given}' is no time in ISO form") from None
    found = found if found.tzinfo is not None else found.replace(tzinfo=dt.UTC)
    return (found - _EPOCH) // dt.timedelta(milliseconds=1)


def span(given: str) -> int:
    """Milliseconds of a span such as ``90s``, ``12h`` or ``7d``."""
    found = _SPAN.fullmatch(given)
    if found is None:
        raise ValueError(f"'{given}' is no span of time such as 90s, 30m, 12h, 7d or 2w")
    return int(found[1]) * _MILLISECONDS[found[2]]


def instant_or_age(given: str) -> int:
    """Milliseconds since 1970 of a time in ISO form, or of a span before now."""
    if _SPAN.fullmatch(given):
        return time.time_ns() // 1_000_000 - span(given)
    try:
        return instant(given)
    except ValueError:
        raise ValueError(f"'{given}' is neither a time in ISO form nor an age such as 12h or 7d") from None


PARSERS: Final[Mapping[str, Callable[[str], Any]]] = MappingProxyType(
    {"count": count, "names": names, "pair": pair, "time": instant, "time-or-age": instant_or_age, "span": span}
)
"""The functions for kinds of options that click does not know."""
