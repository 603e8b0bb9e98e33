"""The steps of records, arrays and maps."""

from __future__ import annotations

from functools import partial
from itertools import count as count_up
from typing import Final, TypeAlias, cast

import numpy as np
import pyarrow as pa

from icefield_avro.arrays import Vector
from icefield_avro.skipping import Skip
from icefield_avro.varints import Malformed, Truncated
from icefield_avro.vectorized.byte_buffer import ByteBuffer
from icefield_avro.vectorized.rows import Finish, Rows, from_children, from_items, no_items
from icefield_avro.vectorized.slices import items_from_slices
from icefield_avro.vectorized.steps import ENOUGH, FixedStep, Read, Step, VarintStep, strides

_FEW_ROWS: Final = 6
_MANY_ITEMS: Final = 64
_LONG_BLOCK: Final = 256  # items; if only a few rows have more, each of these is skipped alone
_LONG_ROWS: Final = 64
_MANY_BLOCKS: Final = 64  # blocks; if only a few rows have more, each of these is skipped alone
_ROWS_OF_MANY_BLOCKS: Final = 16
_SHORTEST_LOOK: Final = 1024
_LONGEST_LOOK: Final = 1 << 18
_LONGEST_INTEGER: Final = 10
_MORE: Final = np.uint8(0x80)
_LEAST_ALIKE: Final = 8
_PATIENCE: Final = 16


class RecordStep:
    """The fields of a record. Records inside it that cannot be null are laid out flat among its own fields.

    ``wanted`` are the indexes of requested fields in the flat ``steps``. ``layout`` describes the struct to build from
    their arrays: each child is the index of a step, or the layout of a record inside.
    """

    def __init__(self, steps: list[Step], layout: Layout) -> None:
        self.steps = steps
        self._strides: list[Step] | None = None
        self.layout = layout
        self.wanted = frozenset(_places(layout))

    @property
    def strides(self) -> list[Step]:
        """The steps, with runs of integers passed together.

        They are computed at the first use, since steps are added before.
        """
        if self._strides is None:
            self._strides = strides(self.steps)
        return self._strides

    def skip(self, buffer: ByteBuffer, at: Vector) -> Vector:
        for step in self.strides:
            at = step.skip(buffer, at)
        return at

    def read(self, buffer: ByteBuffer, at: Vector, rows: Rows) -> Read:
        return self._read(buffer, at, rows, len(self.steps))

    def read_wanted(self, buffer: ByteBuffer, at: Vector, rows: Rows) -> Read:
        """Like ``read``, but only up to the last wanted field."""
        return self._read(buffer, at, rows, max(self.wanted, default=-1) + 1)

    def _read(self, buffer: ByteBuffer, at: Vector, rows: Rows, last: int) -> Read:
        arrays: dict[int, Finish] = {}
        for place, step in enumerate(self.steps[:last]):
            if place in self.wanted:
                arrays[place], at = step.read(buffer, at, rows)
            else:
                at = step.skip(buffer, at)
        return partial(_assemble, self.layout, arrays, rows), at


class Layout:
    """The layout of a record's struct: its type, and for each child an index into the steps or a nested layout."""

    __slots__ = ("arrow", "children")

    def __init__(self, arrow: pa.DataType, children: list[int | Layout]) -> None:
        self.arrow = arrow
        self.children = children


def _places(layout: Layout) -> list[int]:
    out = []
    for child in layout.children:
        out += _places(child) if isinstance(child, Layout) else [child]
    return out


def _assemble(layout: Layout, arrays: dict[int, Finish], rows: Rows) -> pa.Array:
    children = [
        _assemble(child, arrays, rows) if isinstance(child, Layout) else arrays[child]() for child in layout.children
    ]
    return from_children(layout.arrow, children, rows)


class Items:
    """Gathers the starts of array items in any order, and sorts them by row."""

    def __init__(self, rows: int) -> None:
        self.counts = np.zeros(rows, np.int64)
        self._found: list[tuple[Vector | None, Vector | int, Vector]] = []  # rows, ordinal in the row, position

    def add(self, rows: Vector | None, ordinal: Vector | int, at: Vector) -> None:
        """The items with number ``ordinal`` of these rows (None: of all rows)."""
        self._found.append((rows, ordinal, at))

    def starts(self) -> Vector:
        """Return the starts of the items, sorted by row."""
        total = int(self.counts.sum())
        out = np.empty(total, np.int64)
        base = np.cumsum(self.counts) - self.counts
        for rows, ordinal, at in self._found:
            out[(base if rows is None else base[rows]) + ordinal] = at
        return out


class Blocks:
    """Gathers the starts of the blocks of arrays, and sorts them by row."""

    def __init__(self, rows: int) -> None:
        self.counts = np.zeros(rows, np.int64)
        self._found: list[tuple[Vector | None, Vector, Vector]] = []

    def add(self, rows: Vector | None, at: Vector, counts: Vector) -> None:
        """The next blocks of these rows (None: of all rows)."""
        self._found.append((rows, at, counts))

    def in_order(self) -> tuple[Vector, Vector]:
        """Return the starts of the blocks and their numbers of items, sorted by row."""
        if len(self._found) == 1:
            _, at, counts = self._found[0]
            return at, counts
        rows = [np.arange(len(self.counts)) if rows is None else rows for rows, _, _ in self._found]
        order = np.argsort(np.concatenate(rows), kind="stable")
        at = np.concatenate([at for _, at, _ in self._found])
        return at[order], np.concatenate([counts for _, _, counts in self._found])[order]


Gathered: TypeAlias = Items | Blocks | None


class ArrayStep:
    """Items in blocks.

    Rows advance together from item to item; if only a few rows have further items or blocks, each continues alone.
    """

    integers = 0  # how many integers an item is, if it is nothing else

    def __init__(self, item: Step, item_size: int, slow_skip: Skip, arrow: pa.DataType) -> None:
        self._unlike = 0  # consecutive failures to find items of one length
        self.item = item
        self.item_size = item_size
        self.slow_skip = slow_skip
        self.arrow = arrow
        if isinstance(item, VarintStep):
            self.integers = 1

    def skip(self, buffer: ByteBuffer, at: Vector) -> Vector:
        return self._walk(buffer, at, None)

    def read(self, buffer: ByteBuffer, at: Vector, rows: Rows) -> Read:
        items = Items(len(at))
        end = self._walk(buffer, at, items)
        return partial(self._finish, buffer, items, rows), end

    def _finish(self, buffer: ByteBuffer, items: Items, rows: Rows) -> pa.Array:
        starts = items.starts()
        if not len(starts):
            return from_items(self.arrow, items.counts, rows, no_items(self.arrow))
        child, _ = self.item.read(buffer, starts, Rows(len(starts)))
        return from_items(self.arrow, items.counts, rows, child())

    def _walk(self, buffer: ByteBuffer, at: Vector, items: Gathered) -> Vector:
        """Skip block after block; ``live`` are the rows with an unfinished array (None: all)."""
        live: Vector | None = None
        ends = at
        for turn in count_up():
            if turn >= _PATIENCE and (buffer.is_guessed or (turn >= _MANY_BLOCKS and len(at) <= _ROWS_OF_MANY_BLOCKS)):
                if live is None:
                    live, ends = np.arange(len(at)), np.empty_like(at)
                break
            count, at = buffer.counts(at, self.item_size)
            busy = np.flatnonzero(count)
            if len(busy) < len(count):
                if live is None:
                    ends = at
                else:
                    ends[live] = at
                if not len(busy):
                    return ends
                live = busy if live is None else live[busy]
                count, at = count[busy], at[busy]
            at = self._pass_blocks(buffer, at, count, items, live)
            if items is not None:
                items.counts[slice(None) if live is None else live] += count
        if buffer.is_guessed:
            ends[live] = buffer.dead  # wrong guesses, most likely, that read nonsense as blocks
            return ends
        for row, position in zip(cast("Vector", live).tolist(), at.tolist(), strict=True):
            ends[row] = self._walk_alone(buffer, position, row, items)
        return ends

    def _walk_alone(self, buffer: ByteBuffer, position: int, row: int, items: Gathered) -> int:
        """Skip the remaining blocks of one row."""
        pending: list[int] = []
        while True:
            count, first = buffer.count_at(position, self.item_size)
            if pending and not 0 < count <= _MANY_ITEMS:
                self._note_row(buffer, np.array(pending), items, row)
                pending.clear()
            if not count:
                return first
            if count <= _MANY_ITEMS:
                some, position = self._one_by_one(buffer, first, count)
                pending += some
            else:
                found, position = self._pass_long(buffer, first, count)
                self._note_row(buffer, found, items, row)

    def _note_row(self, buffer: ByteBuffer, at: Vector, items: Gathered, row: int) -> None:
        """Remember where the next items of a row are."""
        if items is not None:
            self._note(buffer, at, cast("Items", items), np.full(len(at), row), np.arange(len(at)))
            items.counts[row] += len(at)

    def _pass_blocks(
        self, buffer: ByteBuffer, at: Vector, count: Vector, items: Gathered, live: Vector | None
    ) -> Vector:
        """Skip a block of each row: all rows together, but a few rows with long blocks one by one."""
        most = int(count.max())
        if most <= _LONG_BLOCK:
            return self._pass_block(buffer, at, count, items, live)
        if len(count) > _LONG_ROWS:
            most_of_others = int(np.partition(count, -_LONG_ROWS - 1)[-_LONG_ROWS - 1])
            is_long = count > max(_LONG_BLOCK, most_of_others)
        else:
            is_long = count > _LONG_BLOCK
        ends = np.empty_like(at)
        long = np.flatnonzero(is_long)
        if _is_nonsense(buffer, len(long), len(at)):
            ends[long] = buffer.dead
            long = long[:0]
        for place in long.tolist():
            found, ends[place] = self._pass_long(buffer, int(at[place]), int(count[place]))
            if items is not None:
                rows = np.full(len(found), place if live is None else live[place])
                self._note(buffer, found, cast("Items", items), rows, np.arange(len(found)))
        rest = np.flatnonzero(~is_long)
        if len(rest):
            rows = rest if live is None else live[rest]
            ends[rest] = self._pass_block(buffer, at[rest], count[rest], items, rows)
        return ends

    def _pass_long(self, buffer: ByteBuffer, position: int, count: int) -> tuple[Vector, int]:
        """Return the starts of ``count`` items from a position on, and the position after them."""
        if self.integers:
            return starts_of_longs(buffer, position, count, self.integers)
        places, position = self._one_by_one(buffer, position, count)
        return np.array(places, np.int64), position

    def _one_by_one(self, buffer: ByteBuffer, position: int, count: int) -> tuple[list[int], int]:
        found: list[int] = []
        try:
            for _ in range(count):
                found.append(position)
                position = self.slow_skip(buffer.raw, position)
                if position > buffer.end:
                    raise Truncated
        except (Truncated, Malformed):
            return found + [buffer.dead] * (count - len(found)), buffer.dead
        return found, position

    def _pass_block(
        self, buffer: ByteBuffer, at: Vector, count: Vector, items: Gathered, live: Vector | None
    ) -> Vector:
        """Pass ``count`` items (at least one) of each row."""
        assert not isinstance(items, Blocks)
        most = int(count.max())
        if items is None and self.integers:
            return self._pass_longs(buffer, at, count * self.integers, most * self.integers)
        if most == int(count.min()):
            for ordinal in range(most):
                at = np.minimum(self._pass_item(buffer, at, items, live, ordinal), buffer.dead)
            return at
        order = np.argsort(-count, kind="stable")
        at = at[order]
        rows = order if live is None else live[order]
        falling = -count[order]
        for ordinal in range(most):
            active = int(np.searchsorted(falling, -ordinal, side="left"))
            if ordinal >= _PATIENCE and _is_nonsense(buffer, active, len(at)):
                at[:active] = buffer.dead
                break
            if active <= _FEW_ROWS and most - ordinal > _MANY_ITEMS:
                for place, left in enumerate((-falling[:active] - ordinal).tolist()):
                    found, at[place] = self._pass_long(buffer, int(at[place]), left)
                    if items is not None:
                        self._note(buffer, found, items, np.full(left, rows[place]), ordinal + np.arange(left))
                break
            passed = self._pass_item(buffer, at[:active].copy(), items, rows[:active], ordinal)
            at[:active] = np.minimum(passed, buffer.dead)
        back: Vector = np.empty_like(at)
        back[order] = at
        return back

    def _pass_longs(self, buffer: ByteBuffer, at: Vector, left: Vector, most: int) -> Vector:
        """Skip ``left`` integers of each row, first the integers that take the same number of bytes in all rows."""
        if self._unlike < ENOUGH and most >= _LEAST_ALIKE and most == int(left.min()):
            alike, width = buffer.longs_of_one_length(at, most)
            self._unlike = 0 if alike > most // 2 else self._unlike + 1
            at, left = cast("Vector", np.minimum(at + width, buffer.dead)), left - alike
            if alike == most:
                return at
        return buffer.ends_of_many_longs(at, left)

    def _pass_item(
        self, buffer: ByteBuffer, at: Vector, items: Items | None, rows: Vector | None, ordinal: int
    ) -> Vector:
        """Pass item number ``ordinal`` of the block in each of these rows."""
        if items is not None:
            self._note(buffer, at, items, rows, ordinal)
        return self.item.skip(buffer, at)

    def _note(self, buffer: ByteBuffer, at: Vector, items: Items, rows: Vector | None, ordinal: Vector | int) -> None:
        """Remember the positions of items; ``ordinal`` is their number in the block."""
        items.add(rows, (items.counts if rows is None else items.counts[rows]) + ordinal, at)


def _is_nonsense(buffer: ByteBuffer, long: int, rows: int) -> bool:
    """Whether a few long arrays among many rows most likely come from wrong guesses, with random bytes as lengths."""
    return buffer.is_guessed and long * _PATIENCE < rows


def starts_of_longs(buffer: ByteBuffer, start: int, count: int, each: int) -> tuple[Vector, int]:
    """Return the starts of ``count`` items of ``each`` integers, and the position after them; ``dead`` if too few."""
    stops: list[Vector] = []
    left, at = count * each, start
    while left and at < buffer.end:
        width = min(max(4 * left, _SHORTEST_LOOK), _LONGEST_LOOK, buffer.end - at)
        found = np.flatnonzero(buffer.bytes[at : at + width] < _MORE)[:left] + (at + 1)
        stops.append(found)
        left -= len(found)
        at += width
    ends = np.concatenate([[start], *stops])
    if np.count_nonzero(np.diff(ends) > _LONGEST_INTEGER):
        left = max(left, 1)
    starts = ends[:-1:each][:count]
    if left:
        return np.concatenate([starts, np.full(count - len(starts), buffer.dead)]), buffer.dead
    return starts, int(ends[-1])


class FixedItems(ArrayStep):
    """An array with items of fixed width: a multiplication gives the position of each."""

    def __init__(self, item: FixedStep, arrow: pa.DataType) -> None:
        width = item.width
        super().__init__(item, width, lambda data, position: position + width, arrow)
        self._is_plain = item.is_plain

    def read(self, buffer: ByteBuffer, at: Vector, rows: Rows) -> Read:
        if not self._is_plain:
            return super().read(buffer, at, rows)
        blocks = Blocks(len(at))
        end = self._walk(buffer, at, blocks)
        return partial(self._finish_plain, buffer, blocks, rows), end

    def _finish_plain(self, buffer: ByteBuffer, blocks: Blocks, rows: Rows) -> pa.Array:
        """The items of a block are side by side as Arrow lays them: they are copied block by block."""
        total = int(blocks.counts.sum())
        if not total:
            return from_items(self.arrow, blocks.counts, rows, no_items(self.arrow))
        starts, counts = blocks.in_order()
        data = items_from_slices(buffer, starts, counts * self.item_size)
        child = pa.Array.from_buffers(self.arrow.value_type, total, [None, data])
        return from_items(self.arrow, blocks.counts, rows, child)

    def _walk_alone(self, buffer: ByteBuffer, position: int, row: int, items: Gathered) -> int:
        starts: list[int] = []
        while True:
            count, first = buffer.count_at(position, self.item_size)
            if not count:
                break
            starts.append(position)
            position = min(first + count * self.item_size, buffer.dead)
        if starts and items is not None:
            self._note_blocks(buffer, np.array(starts), items, row)
        return first

    def _note_blocks(self, buffer: ByteBuffer, starts: Vector, items: Items | Blocks, row: int) -> None:
        """Remember the blocks of one row."""
        count, first = buffer.counts(starts, self.item_size)
        total = int(count.sum())
        if isinstance(items, Blocks):
            items.add(np.full(len(first), row), first, count)
        else:
            within = np.arange(total) - np.repeat(np.cumsum(count) - count, count)
            at = np.repeat(first, count) + within * self.item_size
            items.add(np.full(total, row), int(items.counts[row]) + np.arange(total), at)
        items.counts[row] += total

    def _pass_blocks(
        self, buffer: ByteBuffer, at: Vector, count: Vector, items: Gathered, live: Vector | None
    ) -> Vector:
        if isinstance(items, Blocks):
            items.add(live, at, count)
        elif items is not None:
            done = items.counts if live is None else items.counts[live]
            total = int(count.sum())
            ordinal = np.arange(total) - np.repeat(np.cumsum(count) - count, count)
            rows = np.repeat(np.arange(len(count)) if live is None else live, count)
            items.add(rows, np.repeat(done, count) + ordinal, np.repeat(at, count) + ordinal * self.item_size)
        end: Vector = np.minimum(at + count * self.item_size, buffer.dead)
        return end


class MapStep(ArrayStep):
    """A map with any key, as an array of entries."""

    def __init__(self, key: Step, value: Step, item_size: int, slow_skip: Skip, arrow: pa.DataType) -> None:
        entry = pa.struct([arrow.key_field, arrow.item_field])
        record = RecordStep([key, value], Layout(entry, [0, 1]))
        super().__init__(record, item_size, slow_skip, arrow)
