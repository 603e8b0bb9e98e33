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

    @classmethod
    def parse(cls, given: Any) -> Self:
        """The quantity of a number, or of a string with a unit. Raises ``ValueError``."""
        if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
            return cls(given)
        if given in cls.words:
            return cls(cls.words[given])
        found = cls.pattern.fullmatch(str(given).strip())
        if found is None or isinstance(given, bool):
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


class Span(_Quantity):
    """A number of milliseconds."""

    pattern = re.compile(r"(\d{1,9})\s*(s|m|h|d|w)?", re.ASCII)
    example = "30m, 12h or 7d"
    words: ClassVar[Mapping[str, int]] = {"never": _NEVER}

    @classmethod
    def unit(cls, name: str) -> int:
        """The milliseconds of a unit such as ``h``."""
        return _MILLISECONDS.get(name, 1)
