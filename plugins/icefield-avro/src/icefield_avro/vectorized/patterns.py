"""Skipping a row's long map by the pattern of another row's map: all keys and lengths are compared at once.

The bounds of one file mostly have the same keys as the bounds of the file before, and values of the same lengths. Where
the earlier map has a key or a length, this map must have the same bytes; the bytes of values do not matter.

An example, of entries that are a key, a length and so many bytes: ``1 2 a b 2 1 c`` has keys and lengths at 0, 1, 4 and
5. The map ``1 2 x y 2 3 p q r`` has the same bytes at 0, 1 and 4, but not at 5. So the pattern skips its first entry,
and the second entry is skipped by itself. The comparison continues with the third entries of both maps.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from icefield_avro.arrays import Vector
from icefield_avro.vectorized.byte_buffer import ByteBuffer

_MOST_BYTES: Final = 8 << 20
"""Of a pattern, which is kept."""


class Pattern:
    """Where the entries of a map are, and their keys and lengths. It does not change and holds its own bytes."""

    __slots__ = ("_bytes", "_is_head", "_starts")

    def __init__(self, data: Vector, is_head: Vector, starts: Vector) -> None:
        self._bytes = data
        self._is_head = is_head
        self._starts = starts  # of the entries and, last, behind them

    @classmethod
    def of(cls, buffer: ByteBuffer, starts: Vector, end: int) -> Pattern | None:
        """Return the pattern of valid entries (a key, a length and so many bytes); None for a map that is too long."""
        if not len(starts) or end > buffer.end or end - starts[0] > _MOST_BYTES:
            return None
        first = int(starts[0])
        values = buffer.ends_of_longs(buffer.ends_of_longs(starts))
        edges = np.zeros(end - first + 1, np.int8)
        edges[values - first] -= 1  # an empty value ends where the next entry begins
        edges[starts - first] += 1
        is_head = np.cumsum(edges[:-1], dtype=np.int8) > 0
        return cls(buffer.bytes[first:end].copy(), is_head, np.append(starts, end) - first)

    def follow(self, buffer: ByteBuffer, at: int, item: int, most: int) -> tuple[Vector, int]:
        """Return the starts of entries that match the pattern from its entry ``item`` on, and the position after them.

        At most ``most`` entries are matched.
        """
        if item >= len(self._starts):
            return self._starts[:0], at
        first = int(self._starts[item])
        size = min(int(self._starts[min(item + most, len(self._starts) - 1)]) - first, buffer.end - at)
        if size <= 0:
            return self._starts[:0], at
        stop = first + size
        unlike = buffer.bytes[at : at + size] != self._bytes[first:stop]
        unlike &= self._is_head[first:stop]
        place = int(unlike.argmax())
        reached = first + place if unlike[place] else stop
        last = int(np.searchsorted(self._starts, reached, side="right")) - 1
        return self._starts[item:last] + (at - first), at + int(self._starts[last]) - first
