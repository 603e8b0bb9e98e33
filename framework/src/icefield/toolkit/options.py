"""Properties of a plugin read as numbers and booleans, with the same errors for all plugins."""

from __future__ import annotations

from collections.abc import Mapping

from icefield.base.concurrency import IO_THREADS, MAX_THREADS
from icefield.errors import InvalidArgument


def whole_number(properties: Mapping[str, str], name: str, default: int, least: int) -> int:
    """A property as a whole number of at least ``least``. Raises ``InvalidArgument``."""
    string = properties.get(name)
    if string is None:
        return default
    try:
        number = int(string)
    except ValueError:
        number = least - 1
    if number < least:
        raise InvalidArgument(f"{name} is a whole number of {least} or more, not {string!r}")
    return number


def is_true(properties: Mapping[str, str], name: str, default: bool = False) -> bool:
    """Whether a property is ``true``. Raises ``InvalidArgument`` for any value but ``true`` and ``false``."""
    string = properties.get(name)
    if string is None:
        return default
    said = string.strip().lower()
    if said not in ("true", "false"):
        raise InvalidArgument(f"{name} is true or false, not {string!r}")
    return said == "true"


def thread_count(properties: Mapping[str, str]) -> int | None:
    """The value of ``io.threads``; None if it is not set. Raises ``InvalidArgument``."""
    if IO_THREADS not in properties:
        return None
    threads = whole_number(properties, IO_THREADS, 1, 1)
    if threads > MAX_THREADS:
        raise InvalidArgument(f"{IO_THREADS} is at most {MAX_THREADS}, not {threads}")
    return threads
