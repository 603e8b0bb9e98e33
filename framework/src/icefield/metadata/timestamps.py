"""Conversion of callers' times to the milliseconds of snapshots."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from numbers import Integral
from typing import Final

from icefield.errors import InvalidArgument

Timestamp = int | datetime | str
"""Milliseconds since 1970 UTC, a ``datetime``, or a string in ISO form. Without a time zone it is of UTC."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOST: Final = 2**63 - 1


def as_milliseconds(value: Timestamp) -> int:
    """A time in milliseconds since 1970 UTC, fractions dropped. Raises ``InvalidArgument`` for anything else."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise InvalidArgument(
                f"'{value}' is no time in ISO form; write it as '2024-01-31', '2024-01-31T12:00:00' (UTC) or "
                "'2024-01-31T12:00:00+01:00'"
            ) from None
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(milliseconds=1)
    if isinstance(value, bool) or not isinstance(value, Integral) or not -_MOST - 1 <= value <= _MOST:
        raise InvalidArgument(
            f"a time is a number of milliseconds since 1970 UTC, a datetime or a string such as "
            f"'2024-01-31T12:00:00Z', not {value!r}"
        )
    return int(value)


def now_ms() -> int:
    """The time in milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000


def in_utc(milliseconds: int) -> str:
    """A time of milliseconds since 1970 as a string in ISO form; the number where that has no such form."""
    try:
        return f"{(_EPOCH + timedelta(milliseconds=milliseconds)).isoformat(timespec='milliseconds')[:-6]}Z"
    except OverflowError:
        return f"{milliseconds} ms since 1970"
