"""Maps with integer keys, like the column statistics in manifests.

Most files of a table have the same keys in the same order, so an entry's key is checked once for all rows, and entries
with unwanted keys are skipped without being noted.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, cast

import numpy as np
import pyarrow as pa

from icefield_avro.arrays import Vector
from icefield_avro.skipping import Skip
from icefield_avro.varints import Malformed, Truncated, read_long
from icefield_avro.vectorized.byte_buffer import ByteBuffer, Unproven, fence_of
from icefield_avro.vectorized.nested import ArrayStep, Gathered, Items
from icefield_avro.vectorized.patterns import Pattern
from icefield_avro.vectorized.rows import Rows, from_children, from_items, from_values, no_items
from icefield_avro.vectorized.steps import ENOUGH, Read, SizedStep, Step, VarintStep

_U64 = np.uint64
_WIDEST = 1024  # bytes of entries that are compared at once
_FEWEST_LIKE = 64  # entries of a map that is compared with the one before
_MOST_UNLIKE = 8  # entries of it that may differ
_SELDOM = 64  # maps until two are compared again, after comparisons without success
_LOW = _U64(0x7F7F7F7F7F7F7F7F)
# The bits that are clear if key and length have one byte each and the length is not negative: the high bits of both
# bytes, and the sign bit of the second. For key 3 and length 4 the bytes are 06 08. The word ends in 0x0806, has these
# bits clear, and 0x0806 >> 9 is 4.
_SHORT_PAIR = _U64(0x8180)


class IntMapStep(ArrayStep):
    """A map with integer keys that cannot be null. ``keys`` are the wanted keys, None: all."""

    def __init__(
        self,
        key: VarintStep,
        value: Step,
        item_size: int,
        slow_skip: Skip,
        arrow: pa.DataType,
        keys: frozenset[int] | None = None,
    ) -> None:
        super().__init__(_entry_step(key, value), item_size, slow_skip, arrow)
        self.key = key
        self.value = value
        self.keys = keys
        self._pattern: Pattern | None = None
        self._rows_unlike = 0  # how many in a row were not like the one before
        if isinstance(value, VarintStep):
            self.integers = 2

    def _pass_long(self, buffer: ByteBuffer, position: int, count: int) -> tuple[Vector, int]:
        if not isinstance(self.item, _SizedEntry) or count < _FEWEST_LIKE or buffer.is_guessed:
            return super()._pass_long(buffer, position, count)
        if self._rows_unlike >= ENOUGH and self._rows_unlike % _SELDOM > 1:  # two in a row, since one is the pattern
            self._rows_unlike += 1
            return super()._pass_long(buffer, position, count)
        some, at = self._pass_like(buffer, position, count)
        left = count - len(some)
        rest, end = super()._pass_long(buffer, at, left) if left else (some[:0], at)
        found = np.concatenate([some, rest]) if left else some
        self._rows_unlike = 0 if left <= len(some) else self._rows_unlike + 1
        if left > len(some):
            self._pattern = Pattern.of(buffer, found, end)
        return found, end

    def _pass_like(self, buffer: ByteBuffer, at: int, count: int) -> tuple[Vector, int]:
        """Return the starts of a map's first entries, and the position after them, as far as the pattern fits.

        A few entries may differ from the pattern; they are skipped one by one.
        """
        parts: list[Vector] = [np.zeros(0, np.int64)]
        left, pattern = count, self._pattern
        for turn in range(_MOST_UNLIKE + 1 if pattern is not None else 0):
            if turn:
                one, at = self._one_by_one(buffer, at, 1)
                parts.append(np.array(one))
                left -= 1
            found, at = cast("Pattern", pattern).follow(buffer, at, count - left, left)
            parts.append(found)
            left -= len(found)
            if not left:
                break
        return np.concatenate(parts), at

    def read(self, buffer: ByteBuffer, at: Vector, rows: Rows) -> Read:
        """A function that makes the array, and the positions after the maps."""
        entries = _Entries(len(at))
        end = self._walk(buffer, at, entries)
        return partial(self._finish_map, buffer, entries, rows), end

    def _pass_block(
        self, buffer: ByteBuffer, at: Vector, count: Vector, items: Gathered, live: Vector | None
    ) -> Vector:
        most = int(count.max())
        if not isinstance(self.item, _SizedEntry) or most != int(count.min()):
            return super()._pass_block(buffer, at, count, items, live)
        # As long as all rows have the same keys and lengths, the next entry is at the same distance from the first
        # entry in each row.
        passed, distance = self._pass_alike(buffer, at, most, cast("_Entries", items), live)
        room = buffer.room_behind(at)
        for _ in range(most - passed):
            pair = buffer.common_pair(at, distance) if distance <= room else None
            if pair is not None and not pair & _SHORT_PAIR:
                key, length = _of_pair(int(pair))
                if items is not None and self._wants(key):
                    cast("_Entries", items).found.append((live, key, at + (distance + 1)))
                distance += 2 + length
                continue
            at = np.minimum(at + distance, buffer.dead) if distance else at
            if items is not None:
                self._note(buffer, at, cast("Items", items), live, 0)
            at = np.minimum(self.item.skip(buffer, at), buffer.dead)
            distance, room = 0, buffer.room_behind(at)
        return np.minimum(at + distance, buffer.dead) if distance else at

    def _pass_alike(
        self, buffer: ByteBuffer, at: Vector, most: int, items: _Entries | None, live: Vector | None
    ) -> tuple[int, int]:
        """Skip the first entries that have the same keys and lengths in all rows as in the first row.

        Returns the number of these entries, and the distance from the first entry to the next unskipped one. Wanted
        entries are noted.
        """
        laid_out = _layout(buffer, int(at[0]), most) if self._unlike < ENOUGH else []
        differing = buffer.differing(at, laid_out[-1].end) if len(laid_out) > 1 else None
        if differing is None:
            return 0, 0
        alike = 0
        for entry in laid_out:
            if differing[entry.start : entry.value].any():
                break
            alike += 1
            if items is not None and self._wants(entry.key):
                items.found.append((live, entry.key, at + entry.length))
        self._unlike = 0 if alike > most // 2 else self._unlike + 1
        return alike, laid_out[alike - 1].end if alike else 0

    def _pass_item(
        self, buffer: ByteBuffer, at: Vector, items: Items | None, rows: Vector | None, ordinal: int
    ) -> Vector:
        end = None if items is None else self._noted(buffer, at, items, rows)
        return self.item.skip(buffer, at) if end is None else end

    def _note(self, buffer: ByteBuffer, at: Vector, items: Items, rows: Vector | None, ordinal: Vector | int) -> None:
        self._noted(buffer, at, items, rows)

    def _noted(self, buffer: ByteBuffer, at: Vector, items: Items, rows: Vector | None) -> Vector | None:
        """Note the entries of wanted keys: integers as values, values of another type as positions.

        Returns the positions after all entries if they are known: reading an integer costs no more than finding its
        end.
        """
        keys: Vector | int
        known = _common_key(buffer, at)
        if known is not None:
            keys, after = known[0], at + known[1]
            if not self._wants(keys):
                return None
        else:
            keys, after = buffer.longs(at)
            if self.keys is not None:
                wanted = np.flatnonzero(np.isin(keys, list(self.keys)))
                keys, after, rows = keys[wanted], after[wanted], wanted if rows is None else rows[wanted]
        held, end = buffer.longs(after) if self.integers else (after, None)
        cast("_Entries", items).found.append((rows, keys, held))
        return end if len(held) == len(at) else None

    def _wants(self, key: int) -> bool:
        return self.keys is None or key in self.keys

    def _finish_map(self, buffer: ByteBuffer, entries: _Entries, rows: Rows) -> pa.Array:
        counts, keys, held = entries.by_row()
        if not len(held):
            return from_items(self.arrow, counts, rows, no_items(self.arrow))
        wire = self.key.node.wire
        if wire == "int":
            narrow = keys.astype(np.int32)
            if not np.array_equal(narrow, keys):
                raise Unproven("a key out of range")
            keys = narrow
        inside = Rows(len(held))
        if isinstance(self.value, VarintStep):
            values = self.value.array(held, None, inside)
        else:
            values = self.value.read(buffer, held, inside)[0]()
        entry = pa.struct([self.arrow.key_field, self.arrow.item_field])
        children = [from_values(self.key.node.arrow, keys, inside, None), values]
        return from_items(self.arrow, counts, rows, from_children(entry, children, inside))


class _Entries(Items):
    """Collects entries of maps: their rows (None: all), their keys, and their values or the positions of values."""

    def __init__(self, rows: int) -> None:
        super().__init__(rows)
        self.rows = rows
        self.found: list[tuple[Vector | None, Vector | int, Vector]] = []

    def by_row(self) -> tuple[Vector, Vector, Vector]:
        """Return the number of entries of each row, then keys and noted values or positions, sorted by row."""
        if all(rows is None for rows, _, _ in self.found):
            return self._of_all_rows()
        everywhere = np.arange(self.rows)
        rows = np.concatenate([everywhere if rows is None else rows for rows, _, _ in self.found])
        keys = np.concatenate([np.broadcast_to(np.asarray(key, np.int64), len(held)) for _, key, held in self.found])
        held = np.concatenate([held for _, _, held in self.found])
        order = np.argsort(rows, kind="stable")
        return np.bincount(rows, minlength=self.rows), keys[order], held[order]

    def _of_all_rows(self) -> tuple[Vector, Vector, Vector]:
        width = len(self.found)
        held = np.empty((self.rows, width), np.int64)
        for place, (_, _, values) in enumerate(self.found):
            held[:, place] = values
        return np.full(self.rows, width), self._keys_of_all_rows(), held.ravel()

    def _keys_of_all_rows(self) -> Vector:
        known = [key for _, key, _ in self.found]
        if all(isinstance(key, int) for key in known):
            return np.tile(np.array(known, np.int64), self.rows)
        keys = np.empty((self.rows, len(known)), np.int64)
        for place, key in enumerate(known):
            keys[:, place] = key
        return keys.ravel()


class _LaidOut(NamedTuple):
    """An entry of the first row's map: its key, the positions of entry, length and value, and the end."""

    key: int
    start: int
    length: int
    value: int
    end: int


def _layout(buffer: ByteBuffer, first: int, most: int) -> list[_LaidOut]:
    """The first entries of the map at a position, as far as they look sound."""
    out: list[_LaidOut] = []
    at = first
    try:
        while len(out) < most:
            key, length = read_long(buffer.raw, at)
            size, value = read_long(buffer.raw, length)
            if not 0 <= size <= _WIDEST - (value - first):
                break
            out.append(_LaidOut(key, at - first, length - first, value - first, value - first + size))
            at = value + size
    except (Malformed, Truncated):
        pass
    return out


def _of_pair(pair: int) -> tuple[int, int]:
    """Key and length of an entry, if each takes one byte."""
    key = pair & 0x7F
    return (key >> 1) ^ -(key & 1), pair >> 9


def _common_key(buffer: ByteBuffer, at: Vector) -> tuple[int, int] | None:
    """Return the common key of all rows at their positions and its width, if it has one or two bytes."""
    position = int(at[0])
    try:
        key, after = read_long(buffer.raw, position)
    except Malformed:
        return None
    width = after - position
    if width > 2:
        return None
    for place in range(width):
        column = buffer.bytes[at + place] if place else buffer.bytes[at]
        if np.count_nonzero(column == column[0]) != len(at):
            return None
    return key, width


class _LongEntry:
    """An entry with an integer as its value: two integers within eight bytes are skipped in one operation."""

    def __init__(self, key: VarintStep, value: VarintStep) -> None:
        self.key = key
        self.value = value

    def skip(self, buffer: ByteBuffer, at: Vector) -> Vector:
        word = buffer.words[at] | _LOW
        # With the first integer's bytes set, the fence is that of the second: d8 04 | 06 gives 0xffff, then 0xffffff.
        length = np.bitwise_count(fence_of(word | fence_of(word))) >> 3
        if not np.count_nonzero(length > 7):
            end: Vector = at + length
            return end
        return buffer.ends_of_longs(buffer.ends_of_longs(at))

    def read(self, buffer: ByteBuffer, at: Vector, rows: Rows) -> Read:
        raise AssertionError  # entries are read as keys and values


class _SizedEntry:
    """An entry with a byte string as its value: a key and a length of one byte each are read in one operation."""

    def __init__(self, key: VarintStep, value: SizedStep) -> None:
        self.key = key
        self.value = value

    def skip(self, buffer: ByteBuffer, at: Vector) -> Vector:
        word = buffer.words[at]
        if np.count_nonzero(word & _SHORT_PAIR):
            return self.value.skip(buffer, self.key.skip(buffer, at))
        return at + (((word >> _U64(9)) & _U64(0x3F)).view(np.int64) + 2)

    def read(self, buffer: ByteBuffer, at: Vector, rows: Rows) -> Read:
        raise AssertionError  # entries are read as keys and values


class _Entry:
    """An entry of any kind."""

    def __init__(self, key: VarintStep, value: Step) -> None:
        self.key = key
        self.value = value

    def skip(self, buffer: ByteBuffer, at: Vector) -> Vector:
        return self.value.skip(buffer, self.key.skip(buffer, at))

    def read(self, buffer: ByteBuffer, at: Vector, rows: Rows) -> Read:
        raise AssertionError  # entries are read as keys and values


def _entry_step(key: VarintStep, value: Step) -> Step:
    if isinstance(value, VarintStep):
        return _LongEntry(key, value)
    return _SizedEntry(key, value) if isinstance(value, SizedStep) else _Entry(key, value)
