"""Amounts of work as strings."""

from __future__ import annotations


def amount(done: int, total: int | None) -> str:
    """The finished amount, and the total amount if it is known: ``1,200 of 3,000``. Empty for nothing of unknown."""
    if total is None:
        return f"{done:,}" if done else ""
    return f"{done:,} of {total:,}"


def elapsed(seconds: float) -> str:
    """A time as hours, minutes and seconds: ``0:01:05``."""
    minutes, left = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{left:02}"
