"""The limits of an answer, and values of tables in the forms of JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

_MOST_CHARACTERS: Final = 2_000
"""The number of characters of one string that are shown."""

_EXACT: Final = 2**53
"""Many readers of JSON round integers beyond this one."""


@dataclass(frozen=True)
class AnswerLimits:
    """The most rows, and the most bytes of values, in one answer."""

    rows: int = 100
    size: int = 200_000

    def taken(self, rows: Iterable[Mapping[str, Any]], most: int | None = None) -> dict[str, Any]:
        """The first rows, as JSON holds them, and whether there are more.

        ``most`` is the number of rows that was asked for, at most the limit.
        """
        most = self.rows if most is None else max(0, min(most, self.rows))
        found: list[Any] = []
        left, stopped = self.size, ""
        for row in islice(rows, most + 1):
            shown = plain(row)
            left -= len(json.dumps(shown, ensure_ascii=False).encode())
            if len(found) == most:
                stopped = f"there are more rows than {most}"
            elif left < 0:
                stopped = f"further rows would exceed {self.size} bytes: ask for fewer columns or rows"
            if stopped:
                break
            found.append(shown)
        return {"rows": found, "is_complete": not stopped, **({"note": stopped} if stopped else {})}


def plain(value: Any) -> Any:
    """A value as JSON holds it: bytes in hexadecimal, large integers as strings, long strings cut."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < _EXACT else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {_cut(str(key)): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    return _cut(value.hex() if isinstance(value, bytes) else str(value))


def _cut(text: str) -> str:
    more = len(text) - _MOST_CHARACTERS
    return text if more <= 0 else f"{text[:_MOST_CHARACTERS]}... ({more} more characters)"
