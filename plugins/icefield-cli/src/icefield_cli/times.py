"""Times and spans as a command line takes them. Each function is a ``type`` of click's and raises its error."""

from __future__ import annotations

import datetime as dt
import re
import time

import click

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SPAN = re.compile(r"(\d{1,9})(ms|s|m|h|d|w)")
_MILLISECONDS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


def instant(given: str) -> int:
    """Milliseconds since 1970; a time without a zone is in UTC."""
    try:
        found = dt.datetime.fromisoformat(given)
    except ValueError:
        raise click.BadParameter(f"'{given}' is no time in ISO form") from None
    found = found if found.tzinfo is not None else found.replace(tzinfo=dt.UTC)
    return (found - _EPOCH) // dt.timedelta(milliseconds=1)


def span(given: str) -> int:
    """Milliseconds of a span such as ``90s``, ``12h`` or ``7d``."""
    found = _SPAN.fullmatch(given)
    if found is None:
        raise click.BadParameter(f"'{given}' is no span of time such as 90s, 30m, 12h, 7d or 2w")
    return int(found[1]) * _MILLISECONDS[found[2]]


def instant_or_age(given: str) -> int:
    """Milliseconds since 1970 of a time in ISO form, or of now less a span."""
    if _SPAN.fullmatch(given):
        return time.time_ns() // 1_000_000 - span(given)
    try:
        return instant(given)
    except click.BadParameter:
        raise click.BadParameter(f"'{given}' is neither a time in ISO form nor an age such as 12h or 7d") from None
