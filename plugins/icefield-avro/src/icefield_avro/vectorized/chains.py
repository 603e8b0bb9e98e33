"""Skipping one long array: vector operations over all its bytes find the starts of its items.

Rows cannot advance together from item to item if one row has thousands of items and all others few: each item would
cost a round of vector operations on hardly any rows. Here the end of an item is computed from *every* byte of a
window, as if an item started there. The result is a table of jumps, which is composed with itself a few times. A jump
then skips eight items, few jumps are made one by one, and the items between are looked up in the tables at once.

An example, of items that are a length and so many bytes, ``1 a 2 b c 0 1 d``: the jumps from each byte are
``2 . 5 . . 6 8 .``; composed once, from the items' own places, ``0 -> 5`` and ``5 -> 8``; a walk of two jumps and one
look into the first table give the starts 0, 2, 5, 6. The result equals a walk item by item.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from icefield_avro.arrays import Vector
from icefield_avro.vectorized.byte_buffer import ByteBuffer

Follow = Callable[[Vector], Vector]
"""The positions after the items at some positions; a position itself where there is none to pass."""

InWindow = Callable[[int, int], Vector]
"""The same for each position of a window of some width, counted from its first one; negative for rare items."""

_LEVELS: Final = 3  # tables, each with jumps twice as far as in the table before
_FEW: Final = 16
_RARE: Final = 8
_FIRST: Final = 1024
_WIDER: Final = 4
_WIDEST: Final = 32_768  # bytes of a window: its tables stay in the processor's cache
_MORE_THAN_SEEN: Final = 1.25
_MORE: Final = np.uint8(0x80)
_LONGEST: Final = 10  # bytes of an integer
_BYTES_AT_ONCE: Final = 1 << 18


class Chain:
    """Consecutive items from some position on. Keeps its window, which mostly contains the next items too."""

    def __init__(self, buffer: ByteBuffer, follow: Follow, in_window: InWindow | None = None) -> None:
        self._buffer = buffer
        self._follow = follow
        self._in_window = in_window
        self._rare = self._start = 0
        self._base = self._width = 0
        self._next: Vector = np.zeros(0, np.int64)
        self._tables: list[Vector] = []
        self._room = _FIRST
        self._item_bytes = 8.0

    def walk(self, start: int, most: int) -> tuple[Vector, int]:
        """Where the items from ``start`` on are, ``most`` at most, and where the one after them does.

        Ends early where there is no item to pass, and at the end of the data.
        """
        parts: list[Vector] = []
        left, at, end = most, start, self._buffer.end
        self._start = start
        while left and at < end:
            if not self._base <= at < self._base + self._width:
                self._look(at, left)
            found = self._found(at - self._base, left)
            last = int(found[-1])
            reached = int(self._next[last])
            stuck = reached < 0 or reached == last
            after = self._base + (last if stuck else min(reached, self._buffer.dead - self._base))
            if stuck:
                found = found[:-1]
            parts.append(found + self._base)
            left -= len(found)
            if len(found):
                self._item_bytes = max(1.0, (after - at) / len(found))
            at = after
            if stuck and left:
                at = self._past(after)
                if at == after:
                    break
                parts.append(np.array([after]))
                left -= 1
        return (np.concatenate(parts) if parts else np.zeros(0, np.int64)), at

    def _past(self, at: int) -> int:
        """Return the position after a rare item, which the window's tables lack; the position if there is none."""
        if self._in_window is None:
            return at
        self._rare += 1
        if self._rare > _FEW and (at - self._start) < self._rare * _RARE * self._item_bytes:
            self._in_window, self._width = None, 0  # rare items are frequent here
        return min(int(self._follow(np.array([at]))[0]), self._buffer.dead)

    def _look(self, at: int, left: int) -> None:
        """Make the tables of the window that begins at a position."""
        buffer = self._buffer
        wanted = int(min(left * self._item_bytes * _MORE_THAN_SEEN, self._room)) + 64
        self._room = min(self._room * _WIDER, _WIDEST)
        self._base, self._width = at, min(wanted, buffer.end - at)
        if self._in_window is not None:
            self._next = self._in_window(at, self._width)
            is_stuck = self._next < 0
        else:
            places = np.arange(at, at + self._width)
            self._next = np.minimum(self._follow(places), buffer.dead) - at
            is_stuck = self._next == places - at
        # The place behind the window stands for all that leads out of it, or nowhere.
        jumps = np.full(self._width + 1, self._width)
        np.minimum(self._next, self._width, out=jumps[:-1])
        np.copyto(jumps[:-1], self._width, where=is_stuck)
        self._tables = [jumps]
        for _ in range(_LEVELS):
            self._tables.append(self._tables[-1][self._tables[-1]])

    def _found(self, start: int, left: int) -> Vector:
        """The places of items in the window, from one on: ascending, ``left`` at most, at least one."""
        far, width = self._tables[-1], self._width
        some, most = [start], -(-left >> _LEVELS)
        jump = far.data
        at = jump[start]
        while at < width and len(some) <= most:
            some.append(at)
            at = jump[at]
        found = np.array(some)[:, None]
        for table in self._tables[-2::-1]:
            found = np.stack([found, table[found]], axis=-1).reshape(len(some), -1)
        flat = found.ravel()
        return flat[: min(left, int(np.searchsorted(flat, width)))]


def starts_of_longs(buffer: ByteBuffer, start: int, count: int, each: int) -> tuple[Vector, int]:
    """Return the starts of ``count`` items of ``each`` integers, and the position after them; ``dead`` if too few."""
    stops: list[Vector] = []
    left, at = count * each, start
    while left and at < buffer.end:
        width = min(max(4 * left, _FIRST), _BYTES_AT_ONCE, buffer.end - at)
        found = np.flatnonzero(buffer.bytes[at : at + width] < _MORE)[:left] + (at + 1)
        stops.append(found)
        left -= len(found)
        at += width
    ends = np.concatenate([[start], *stops])
    if np.count_nonzero(np.diff(ends) > _LONGEST):
        left = max(left, 1)
    starts = ends[:-1:each][:count]
    if left:
        return np.concatenate([starts, np.full(count - len(starts), buffer.dead)]), buffer.dead
    return starts, int(ends[-1])
