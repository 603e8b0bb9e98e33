"""Inflated blocks one after another in memory, and vector operations that read values at many places at once.

A position may be a wrong guess, so the value read there may be nonsense. No value can lead outside the buffer: a
position that leaves the data is set to ``dead``, where only zeros follow, and a walk over zeros ends within
``padding`` bytes. The caller proves afterwards that each walk ended at the start of the next record.

Vectors of positions are never empty.
"""

from __future__ import annotations

from functools import cache
from itertools import count
from typing import Final

import numpy as np

from icefield_avro.arrays import Vector
from icefield_avro.varints import Data, Malformed, Truncated, read_long

_U64: Final = np.uint64
_ONE: Final = _U64(1)
_ZERO: Final = _U64(0)
_MORE: Final = np.uint8(0x80)
_BYTE: Final = np.uint8(1)
_HIGH: Final = _U64(0x8080808080808080)
_LOW: Final = _U64(0x7F7F7F7F7F7F7F7F)
_LOW_AND_FIRST: Final = _U64(0x7F7F7F7F7F7F7FFF)
_FEW_ITEMS: Final = 32  # believed without a look at how much of the block is left
_NO_LIMIT: Final = 1 << 62
_ROWS_AT_ONCE: Final = 1024
_SIDE_BY_SIDE: Final = 64  # rows laid side by side, so that vectors are long however few bytes a row has
_WIDEST: Final = 512
_SMALL_BLOCK: Final = 8192  # bytes


class Unproven(Exception):
    """The vectorized decoder cannot prove its result: the blocks are damaged or unusual."""


# If a word holds only the lowest bit of each byte, multiplication with this factor moves these bits to the top byte.
# The bit of byte i is bit 8i of the word; the factor has bits 56, 49, 42, ... 7, and 8i + (56 - 7i) = 56 + i, so that
# the top byte gets the bits in the order of the bytes. All other sums are different bits below 56, or beyond 63, and
# nothing carries. For the bytes d8 04 06 80 01 02 03 04, the bytes without the high bit give the top byte 1111 0110:
# the third set bit is bit 4, so three integers end before byte 5.
_GATHER: Final = _U64(0x0102040810204080)
_GATHER_HIGH: Final = _U64(0x0002040810204081)  # the same with the highest bits


def _after_stops() -> Vector:
    """A table: at index byte * 9 + n, the position of the byte's n-th set bit plus one; 0 for n = 0."""
    table = np.zeros((256, 9), np.int64)
    for byte in range(256):
        places = [bit + 1 for bit in range(8) if byte >> bit & 1]
        table[byte, 1 : len(places) + 1] = places
    return table.ravel()


_AFTER_STOPS: Final = _after_stops()


@cache
def _after_several(many: int) -> Vector:
    """Return a table with the position of the ``many``-th clear bit, plus one, for each number of sixteen bits.

    The entry is 0 for fewer clear bits, or if more than eight set bits precede one of them: an integer of so many bytes
    needs the slow way.
    """
    masks = np.arange(1 << 16)
    seen, last, out = np.zeros_like(masks), np.zeros_like(masks), np.zeros(1 << 16, np.uint8)
    for bit in range(16):
        here = (masks >> bit & 1 == 0) & (seen < many) & (seen >= 0)
        seen[here & (bit - last > 8)] = -1
        here &= seen >= 0
        seen[here] += 1
        last[here] = bit + 1
        out[here & (seen == many)] = bit + 1
    return out


def fence_of(word: Vector) -> Vector:
    """The bits up to the end of the first byte without the high bit, for words in which all other bits are set.

    Adding one carries through the bytes with the high bit, and stops in the first byte without it. A word with the
    high bit in every byte gives all bits, like a word without it in the last byte only.

    An example with four bytes: the integer ``d8 04`` and the next byte, as a word ``..0604d8``. With all bits but the
    high ones set it is ``7f7f7fff``, one more is ``7f7f8000``, and the two differ in ``0000ffff``: two bytes.
    """
    fence: Vector = word ^ (word + _ONE)
    return fence


class Memory:
    """Reusable memory for one buffer after another: allocating fresh pages for each would cost more than copying."""

    __slots__ = ("_end", "_room")

    def __init__(self) -> None:
        self._room = bytearray()
        self._end = 0  # behind it all is zero

    def holding(self, payloads: list[Data], size: int, zeros: int) -> bytearray:
        """Return the payloads one after another, ``size`` bytes together, followed by at least ``zeros`` zeros."""
        if len(self._room) < size + zeros:
            self._room, self._end = bytearray(size + zeros), 0
        view = memoryview(self._room)
        if len(payloads) * _SMALL_BLOCK > size:  # one by one costs more than copying twice
            payloads = [b"".join(payloads)]
        start = 0
        for payload in payloads:
            end = start + len(payload)
            view[start:end] = payload
            start = end
        if start < self._end:
            view[start : self._end] = bytes(self._end - start)
        self._end = start
        return self._room


class ByteBuffer:
    """The data of some blocks. ``end`` is where it ends; from there to the end of ``raw`` there are zeros."""

    __slots__ = ("bytes", "dead", "end", "ends", "item_limit", "pairs", "raw", "string_limit", "windows", "words")

    def __init__(self, payloads: list[Data], padding: int, memory: Memory) -> None:
        self.ends = np.cumsum([len(payload) for payload in payloads], dtype=np.int64)
        """Where each block ends, which is where the next one starts."""
        self.end = int(self.ends[-1]) if payloads else 0
        self.raw = memory.holding(payloads, self.end, padding + 32)
        self.bytes = np.frombuffer(self.raw, np.uint8)
        # the eight bytes from each position on, little end first
        self.words = np.lib.stride_tricks.as_strided(self.bytes[:8].view("<u8"), (len(self.raw) - 8,), (1,))
        self.pairs = np.lib.stride_tricks.as_strided(self.bytes[:2].view("<u2"), (len(self.raw) - 2,), (1,))
        self.windows = np.ndarray((len(self.raw) - 15,), np.dtype((np.void, 16)), self.raw, 0, (1,))
        self.dead = self.end + 1
        self.item_limit = _NO_LIMIT
        """The most items of an array that are believed: guesses at record starts set it low."""
        self.string_limit = self.end
        """The same for the bytes of a string."""

    @property
    def is_guessed(self) -> bool:
        """Whether most positions are wrong guesses, so that as many as possible should end early."""
        return self.item_limit != _NO_LIMIT

    def guess(self, longest: int) -> None:
        """Treat arrays with more items and strings with more bytes than ``longest`` as wrong guesses; 0 ends this."""
        self.item_limit = longest or _NO_LIMIT
        self.string_limit = min(longest, self.end) if longest else self.end

    def fixed(self, at: Vector, width: int) -> Vector:
        """Return ``width`` bytes at each position, as rows of a matrix."""
        if not width:
            return np.zeros((len(at), 0), np.uint8)
        slices = np.ndarray((len(self.raw) - width + 1,), np.dtype((np.void, width)), self.raw, 0, (1,))
        found: Vector = slices[at].view(np.uint8).reshape(-1, width)
        return found

    def room_behind(self, at: Vector) -> int:
        """How many bytes can be read after every one of the positions."""
        return len(self.pairs) - 1 - int(np.maximum.reduce(at))

    def common_pair(self, at: Vector, distance: int) -> np.uint16 | None:
        """The two bytes at a distance after each position, if they are equal for all positions; else None."""
        here = self.pairs[at + distance] if distance else self.pairs[at]
        first: np.uint16 = here[0]
        return first if np.count_nonzero(here == first) == len(at) else None

    def differing(self, at: Vector, width: int) -> Vector | None:
        """The bits, byte by byte, in which the ``width`` bytes at the positions differ; None beyond the buffer."""
        words = (width + 7) // 8
        room = len(self.raw) - 8 * words
        if int(np.maximum.reduce(at)) > room:
            return None
        slices = np.ndarray((room + 1,), np.dtype((np.void, 8 * words)), self.raw, 0, (1,))
        if len(at) % _SIDE_BY_SIDE:
            at = np.concatenate([at, np.full(-len(at) % _SIDE_BY_SIDE, at[0])])
        some, every = np.zeros(words, np.uint64), np.full(words, ~_ZERO)
        for first in range(0, len(at), _ROWS_AT_ONCE):
            found = slices[at[first : first + _ROWS_AT_ONCE]].view("<u8").reshape(-1, _SIDE_BY_SIDE * words)
            some |= np.bitwise_or.reduce(np.bitwise_or.reduce(found, axis=0).reshape(-1, words), axis=0)
            every &= np.bitwise_and.reduce(np.bitwise_and.reduce(found, axis=0).reshape(-1, words), axis=0)
        differing: Vector = (some ^ every).view(np.uint8)[:width]
        return differing

    def longs_of_one_length(self, at: Vector, count: int) -> tuple[int, int]:
        """How many of the next ``count`` integers have the same width in all rows, and the sum of their widths."""
        first = int(at[0])
        stops = np.flatnonzero(self.bytes[first : first + _WIDEST] < _MORE)[:count]
        differing = self.differing(at, int(stops[-1]) + 1) if len(stops) else None
        if differing is None:
            return 0, 0
        uneven = np.flatnonzero(differing & _MORE)
        alike = int(np.searchsorted(stops, uneven[0])) if len(uneven) else len(stops)
        return alike, int(stops[alike - 1]) + 1 if alike else 0

    def longs(self, at: Vector) -> tuple[Vector, Vector]:
        """The integers at the positions, and the positions after them."""
        first = self.bytes[at]
        if not np.count_nonzero(first & _MORE):
            number = first.astype(np.int64)
            return (number >> 1) ^ -(number & 1), at + 1
        bits, end = self._bits(self.words[at], at)
        return ((bits >> _ONE) ^ (_ZERO - (bits & _ONE))).view(np.int64), end

    def longs_where(self, at: Vector, present: Vector) -> tuple[Vector, Vector]:
        """Like ``longs`` for ``present`` rows; 0 and the position itself for other rows."""
        first = self.bytes[at] * present
        if not np.count_nonzero(first & _MORE):
            number = first.astype(np.int64)
            return (number >> 1) ^ -(number & 1), at + present
        bits, end = self._bits(self.words[at] * present, at)
        return ((bits >> _ONE) ^ (_ZERO - (bits & _ONE))).view(np.int64), end - ~present

    def _bits(self, word: Vector, at: Vector) -> tuple[Vector, Vector]:
        """The unsigned numbers that the words start with, still zigzag, and the positions after them.

        Groups of seven bits are moved together two by two: first within pairs of bytes, then of four and of eight. An
        example: the fence and the mask reduce the bytes ``d8 04`` to the word ``0x0458``. Its upper byte moves down by
        one bit: ``0x58 | 0x0200`` is 600 and, no longer zigzag, 300.
        """
        fence = fence_of(word | _LOW)
        length = np.bitwise_count(fence) >> 3
        longest = np.maximum.reduce(length)
        bits = word & fence & _LOW
        bits = (bits & _U64(0x007F007F007F007F)) | ((bits & _U64(0x7F007F007F007F00)) >> _ONE)
        if longest > 2:
            bits = (bits & _U64(0x00003FFF00003FFF)) | ((bits & _U64(0x3FFF00003FFF0000)) >> _U64(2))
        if longest > 4:
            bits = (bits & _U64(0x000000000FFFFFFF)) | ((bits & _U64(0x0FFFFFFF00000000)) >> _U64(4))
        end = at + length
        if longest == 8:
            self._complete(bits, end, np.flatnonzero(~word & _HIGH == 0))
        return bits, end

    def _complete(self, bits: Vector | None, end: Vector, rows: Vector) -> None:
        """Read the ninth and tenth byte of the integers of these rows; ``end`` is the position after the eighth byte.

        Eight bytes hold 56 bits, the ninth seven more and the tenth the last one. For example, -2**63 is nine times
        ``ff`` and ``01``: this gives 2**56 - 1, 127 << 56 and 1 << 63, all 64 bits, which zigzag decodes to -2**63.
        """
        if not len(rows):
            return
        ninth = self.bytes[end[rows]].astype(_U64)
        tenth = self.bytes[end[rows] + 1].astype(_U64)
        more = ninth >= _U64(0x80)
        after = end[rows] + 1 + more
        after[more & (tenth > 1)] = self.dead
        end[rows] = after
        if bits is not None:
            bits[rows] |= ((ninth & _U64(0x7F)) << _U64(56)) | ((tenth & _ONE) << _U64(63)) * more

    def ends_of_longs(self, at: Vector) -> Vector:
        """The positions after the integers at the positions."""
        word = self.words[at]
        length = np.bitwise_count(fence_of(word | _LOW)) >> 3
        end: Vector = at + length
        if np.count_nonzero(length > 7):
            self._complete(None, end, np.flatnonzero(~word & _HIGH == 0))
        return end

    def ends_of_few_longs(self, at: Vector, many: int) -> tuple[Vector, int]:
        """Return the positions after ``many`` integers, and the number of rows that needed more than sixteen bytes."""
        # The high bits of sixteen bytes become a number of sixteen bits, which is the index into a table. For three
        # integers in d8 04 06 80 01 ... it is 0000 0000 0000 1001: the third clear bit is bit 4, so 5 bytes are passed.
        more = self.windows[at].view("<u8") & _HIGH
        more *= _GATHER_HIGH
        more >>= _U64(56)
        both = more[0::2]
        both |= more[1::2] << _U64(8)
        passed = _after_several(many)[both.view(np.int64)]
        ends: Vector = at + passed
        if np.minimum.reduce(passed):
            return ends, 0
        longer = np.flatnonzero(passed == 0)
        rest = at[longer]
        for _ in range(many):
            rest = self.ends_of_longs(rest)
        ends[longer] = rest
        return ends, len(longer)

    def ends_of_many_longs(self, at: Vector, left: Vector) -> Vector:
        """Return the positions after ``left`` integers each, eight bytes at a time. Lengths are not checked."""
        ends = np.empty_like(at)
        rows: Vector | None = None  # unfinished rows, None: all
        most = int(np.maximum.reduce(left))
        left = left.astype(np.uint8 if most < 256 else np.int64)
        least = int(np.minimum.reduce(left))
        for turn in count(1):
            stops = ~self.words[at] & _HIGH
            passed = np.bitwise_count(stops)
            if least <= 8:
                going = left > passed
                if np.count_nonzero(going) < len(at):
                    through = ~going
                    mask = ((stops[through] >> _U64(7)) * _GATHER) >> _U64(56)
                    ended = at[through] + _AFTER_STOPS[mask.view(np.int64) * 9 + left[through]]
                    ends[through if rows is None else rows[through]] = ended
                    rows = np.flatnonzero(going) if rows is None else rows[going]
                    if not len(rows):
                        break
                    at, left, passed = at[going], left[going], passed[going]
            left = left - passed
            least = least - 8 if least > 16 else int(np.minimum.reduce(left))
            at = at + 8 if turn % 4 else np.minimum(at + 8, self.dead)
        return np.minimum(ends, self.dead)

    def ends_of_optional_longs(self, at: Vector, value: int, null: int) -> Vector | None:
        """The positions after unions of null and an integer; the branches are these bytes (-1: none).

        None if branch and integer take more than seven bytes in any row.
        """
        word = self.words[at]
        branch = word.astype(np.uint8)
        length = np.bitwise_count(fence_of(word | _LOW_AND_FIRST)) >> 3
        present = branch == value
        count = np.count_nonzero(present)
        if count < len(at):
            length = np.where(present, length, _BYTE)
        if np.count_nonzero(length > 7):
            return None
        end: Vector = at + length
        if count < len(at) and count + np.count_nonzero(branch == null) < len(at):
            end[~present & (branch != null)] = self.dead
        return end

    def ends_of_longs_where(self, at: Vector, present: Vector) -> Vector:
        """Like ``ends_of_longs`` for ``present`` rows; the position itself for other rows."""
        word = self.words[at] * present
        length = np.bitwise_count(fence_of(word | _LOW)) >> 3
        end: Vector = at + length * present
        if np.count_nonzero(length > 7):
            self._complete(None, end, np.flatnonzero(~word & _HIGH == 0))
        return end

    def sized(self, at: Vector) -> tuple[Vector, Vector, Vector]:
        """Where the byte strings at the positions start, their lengths, and the positions after them."""
        first = self.bytes[at]
        if not np.count_nonzero(first & _MORE):
            return self._sized(first.astype(_U64), at + 1)
        return self._sized(*self._bits(self.words[at], at))

    def sized_where(self, at: Vector, present: Vector) -> tuple[Vector, Vector, Vector]:
        """Like ``sized`` for ``present`` rows; an empty string at the position itself for other rows."""
        first = self.bytes[at] * present
        if not np.count_nonzero(first & _MORE):
            return self._sized(first.astype(_U64), at + present)
        bits, start = self._bits(self.words[at] * present, at)
        return self._sized(bits, start - ~present)

    def _sized(self, bits: Vector, start: Vector) -> tuple[Vector, Vector, Vector]:
        # The sign moves to the top, so that a negative length is a huge one: 6 (zigzag for 3) becomes 3, and 5 (zigzag
        # for -3) becomes 2 with bit 63 set.
        length = (bits >> _ONE) | (bits << _U64(63))
        if np.maximum.reduce(length) > self.string_limit:
            bad = length > _U64(self.string_limit)
            length[bad] = 0
            start[bad] = self.dead
        length = length.view(np.int64)
        return start, length, np.minimum(start + length, self.dead)

    def counts(self, at: Vector, item_size: int) -> tuple[Vector, Vector]:
        """The numbers of items in the array blocks at the positions, and where their first items are.

        A number of items that is impossible for the remaining bytes of the block becomes 0, and its position ``dead``.
        """
        first = int(self.bytes[at[0]])
        if first <= 2 * _FEW_ITEMS and not first & 1 and np.count_nonzero(self.bytes[at] == first) == len(at):
            return np.full(len(at), first >> 1), at + 1
        number, at = self.longs(at)
        negative = number < 0
        if np.count_nonzero(negative):  # the block states its size in bytes as well
            number = np.abs(number)
            at[negative] = self.longs(at[negative])[1]
        if np.count_nonzero((number < 0) | (number > _FEW_ITEMS)):
            block = np.minimum(np.searchsorted(self.ends, at, side="right"), len(self.ends) - 1)
            room = np.maximum(self.ends[block] - at, 0) // item_size
            bad = (number < 0) | (number > np.minimum(room, self.item_limit))
            number[bad] = 0
            at[bad] = self.dead
        return number, at

    def count_at(self, position: int, item_size: int) -> tuple[int, int]:
        """Like ``counts``, for a single array block."""
        try:
            number, at = read_long(self.raw, position)
            if number < 0:
                number, at = -number, read_long(self.raw, at)[1]
        except (Malformed, Truncated):
            return 0, self.dead
        if number > _FEW_ITEMS:
            block = min(int(np.searchsorted(self.ends, at, side="right")), len(self.ends) - 1)
            if number > min(max(int(self.ends[block]) - at, 0) // item_size, self.item_limit):
                return 0, self.dead
        return number, at
