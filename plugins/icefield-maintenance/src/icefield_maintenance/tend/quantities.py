"""Quantities in policies: sizes such as ``128 MiB``, and spans of time such as ``7d``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Self

_MILLISECONDS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}

_NEVER: Final = 100 * 365 * 86_400_000
"""An age that no table has, in milliseconds."""


class _Quantity(int):
    pattern: ClassVar[re.Pattern[str]]
    example: ClassVar[str]
    words: ClassVar[Mapping[str, int]] = {}
    bounds: ClassVar[tuple[str, ...]] = ()
    """The least and the greatest, in words; empty without bounds."""

    @classmethod
    def parse(cls, given: Any) -> Self:
        """The quantity of a number, or of a string with a unit. Raises ``ValueError``."""
        found = cls._read(given)
        if cls.bounds and not cls._read(cls.bounds[0]) <= found <= cls._read(cls.bounds[1]):
            raise ValueError(f"{given!r:.40} is not from {cls.bounds[0]} to {cls.bounds[1]}")
        return found

    @classmethod
    def _read(cls, given: Any) -> Self:
        if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
            return cls(given)
        if isinstance(given, str) and given in cls.words:
            return cls(cls.words[given])
        found = cls.pattern.fullmatch(str(given).strip()) if isinstance(given, str | float) else None
        if found is None:
            raise ValueError(f"{given!r:.40} is neither a number nor a string such as {cls.example}")
        return cls(float(found[1]) * cls.unit(found[2] or ""))

    @classmethod
    def unit(cls, name: str) -> int:
        """The value of a unit."""
        return 1


class Size(_Quantity):
    """A number of bytes."""

    pattern = re.compile(r"(\d{1,15}(?:\.\d{1,3})?)\s*([kMGTP]i?)?B?", re.ASCII)
    example = "128 MiB"

    @classmethod
    def unit(cls, name: str) -> int:
        """The bytes of a prefix such as ``Mi``."""
        step = 1024 if name.endswith("i") else 1000
        return int(step ** ("kMGTP".index(name[0]) + 1)) if name else 1


class FileSize(Size):
    """The target size of data files. A smaller one would make a file of each row, and a larger one rewrite too much."""

    bounds = ("1 MiB", "8 GiB")

    @classmethod
    def nearest(cls, size: int) -> Self:
        """The nearest size within the bounds."""
        least, most = (int(cls._read(each)) for each in cls.bounds)
        return cls(min(max(size, least), most))


class Span(_Quantity):
    """A number of milliseconds, of at most 100 years."""

    pattern = re.compile(r"(\d{1,9})\s*(s|m|h|d|w)?", re.ASCII)
    example = "30m, 12h or 7d"
    words: ClassVar[Mapping[str, int]] = {"never": _NEVER}
    bounds = ("0s", "never")

    @classmethod
    def unit(cls, name: str) -> int:
        """The milliseconds of a unit such as ``h``."""
        return _MILLISECONDS.get(name, 1)


class TableTime(Span):
    """The longest time of a run on one table."""

    bounds = ("1s", "1d")


class SnapshotAge(Span):
    """An age of snapshots that leaves time for readers of a version."""

    bounds = ("1m", "never")


class StatisticsAge(Span):
    """An age of statistics. Their computation reads the whole table."""

    bounds = ("1h", "never")


class OrphanAge(Span):
    """An age of orphan files that leaves time for writers. A search lists all files of the table."""

    bounds = ("1d", "never")
