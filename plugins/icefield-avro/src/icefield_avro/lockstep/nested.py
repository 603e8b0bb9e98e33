"""The steps of records, arrays and maps."""

from __future__ import annotations

from functools import partial
from typing import Final, TypeAlias, cast

import numpy as np
import pyarrow as pa

from icefield_avro.arrays import Vector
from icefield_avro.lockstep.rows import Finish, Rows, from_children, from_items, no_items
from icefield_avro.lockstep.slices import items_from_slices
from icefield_avro.lockstep.steps import FixedStep, Read, Step, VarintStep, strides
from icefield_avro.lockstep.tape import Tape
from icefield_avro.skipping import Skip
from icefield_avro.varints import Malformed, Truncated

_FEW_ROWS: Final = 6
_MANY_ITEMS: Final = 64
_LEAST_ALIKE: Final = 8
_PATIENCE: Final = 16
ENOUGH: Final = 4  # times that something was tried in vain


class RecordStep:
    """The fields of a record. Records inside it that cannot be null are laid out flat among its own fields.

    ``places`` are the indexes, among the flat ``steps``, of what is wanted, in ascending order; ``layout`` says how
    to put the arrays of these together: the index of a step, or the type and layout of a record inside.
    """

    def __init__(self, steps: list[Step], layout: Layout) -> None:
        self.steps = steps
        self._strides: list[Step] | None = None
        self.layout = layout
        self.wanted = frozenset(_places(layout))

    @property
    def strides(self) -> list[Step]:
        """The steps, with runs of integers passed together. Made when first asked for: steps are added until then."""
        if self._strides is None:
            self._strides = strides(self.steps)
        return self._strides

    def skip(self, tape: Tape, at: Vector) -> Vector:
        for step in self.strides:
            at = step.skip(tape, at)
        return at

    def read(self, tape: Tape, at: Vector, rows: Rows) -> Read:
        return self._read(tape, at, rows, len(self.steps))

    def read_wanted(self, tape: Tape, at: Vector, rows: Rows) -> Read:
        """As ``read``, but only as far as something is wanted."""
        return self._read(tape, at, rows, max(self.wanted, default=-1) + 1)

    def _read(self, tape: Tape, at: Vector, rows: Rows, last: int) -> Read:
        arrays: dict[int, Finish] = {}
        for place, step in enumerate(self.steps[:last]):
            if place in self.wanted:
                arrays[place], at = step.read(tape, at, rows)
            else:
                at = step.skip(tape, at)
        return partial(_assemble, self.layout, arrays, rows), at


class Layout:
    """How a record is put together: its type, and for each of its children a place among the steps or a layout."""

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
    """Gathers where the items of arrays start, in any order of finding, and sorts them by row."""

    def __init__(self, rows: int) -> None:
        self.counts = np.zeros(rows, np.int64)
        self._found: list[tuple[Vector | None, Vector | int, Vector]] = []  # rows, ordinal in the row, position

    def add(self, rows: Vector | None, ordinal: Vector | int, at: Vector) -> None:
        """Items number ``ordinal`` of these rows (None: of all rows)."""
        self._found.append((rows, ordinal, at))

    def starts(self) -> Vector:
        """Where the items start, those of the first row first."""
        total = int(self.counts.sum())
        out = np.empty(total, np.int64)
        base = np.cumsum(self.counts) - self.counts
        for rows, ordinal, at in self._found:
            out[(base if rows is None else base[rows]) + ordinal] = at
        return out


class Blocks:
    """Gathers where the blocks of arrays start, and sorts them by row."""

    def __init__(self, rows: int) -> None:
        self.counts = np.zeros(rows, np.int64)
        self._found: list[tuple[Vector | None, Vector, Vector]] = []

    def add(self, rows: Vector | None, at: Vector, counts: Vector) -> None:
        """The next blocks of these rows (None: of all rows)."""
        self._found.append((rows, at, counts))

    def in_order(self) -> tuple[Vector, Vector]:
        """Where the blocks start and how many items each holds, those of the first row first."""
        if len(self._found) == 1:
            _, at, counts = self._found[0]
            return at, counts
        rows = [np.arange(len(self.counts)) if rows is None else rows for rows, _, _ in self._found]
        order = np.argsort(np.concatenate(rows), kind="stable")
        at = np.concatenate([at for _, at, _ in self._found])
        return at[order], np.concatenate([counts for _, _, counts in self._found])[order]


Gathered: TypeAlias = Items | Blocks | None


class ArrayStep:
    """Items in blocks. Rows advance together from item to item; a few rows with many items go on alone."""

    integers = 0  # how many integers an item is, if it is nothing else

    def __init__(self, item: Step, item_size: int, slow_skip: Skip, arrow: pa.DataType) -> None:
        self._unlike = 0  # how many times in a row looking for items of one length was in vain
        self.item = item
        self.item_size = item_size
        self.slow_skip = slow_skip
        self.arrow = arrow
        if isinstance(item, VarintStep):
            self.integers = 1

    def skip(self, tape: Tape, at: Vector) -> Vector:
        return self._walk(tape, at, None)

    def read(self, tape: Tape, at: Vector, rows: Rows) -> Read:
        items = Items(len(at))
        end = self._walk(tape, at, items)
        return partial(self._finish, tape, items, rows), end

    def _finish(self, tape: Tape, items: Items, rows: Rows) -> pa.Array:
        starts = items.starts()
        if not len(starts):
            return from_items(self.arrow, items.counts, rows, no_items(self.arrow))
        child, _ = self.item.read(tape, starts, Rows(len(starts)))
        return from_items(self.arrow, items.counts, rows, child())

    def _walk(self, tape: Tape, at: Vector, items: Gathered) -> Vector:
        """Pass block after block; ``live`` are the rows whose array has not ended (None: all)."""
        live: Vector | None = None
        ends = at
        while True:
            count, at = tape.counts(at, self.item_size)
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
            at = self._pass_block(tape, at, count, items, live)
            if items is not None:
                items.counts[slice(None) if live is None else live] += count

    def _pass_block(self, tape: Tape, at: Vector, count: Vector, items: Gathered, live: Vector | None) -> Vector:
        """Pass ``count`` items (at least one) of each row."""
        assert not isinstance(items, Blocks)
        most = int(count.max())
        if items is None and self.integers:
            return self._pass_longs(tape, at, count * self.integers, most * self.integers)
        if most == int(count.min()):
            for ordinal in range(most):
                at = np.minimum(self._pass_item(tape, at, items, live, ordinal), tape.dead)
            return at
        order = np.argsort(-count, kind="stable")
        at = at[order]
        rows = order if live is None else live[order]
        falling = -count[order]
        for ordinal in range(most):
            active = int(np.searchsorted(falling, -ordinal, side="left"))
            if active <= _FEW_ROWS and most - ordinal > _MANY_ITEMS:
                self._pass_alone(tape, at, -falling[:active] - ordinal, ordinal, items, rows)
                break
            if tape.is_guessed and ordinal >= _PATIENCE and active * _PATIENCE < len(at):
                at[:active] = tape.dead  # wrong guesses, most likely, that read nonsense as long arrays
                break
            passed = self._pass_item(tape, at[:active].copy(), items, rows[:active], ordinal)
            at[:active] = np.minimum(passed, tape.dead)
        back: Vector = np.empty_like(at)
        back[order] = at
        return back

    def _pass_longs(self, tape: Tape, at: Vector, left: Vector, most: int) -> Vector:
        """Pass so many integers of each row, first those that take as many bytes in all rows."""
        if self._unlike < ENOUGH and most >= _LEAST_ALIKE and most == int(left.min()):
            alike, width = tape.longs_of_one_length(at, most)
            self._unlike = 0 if alike > most // 2 else self._unlike + 1
            at, left = cast("Vector", np.minimum(at + width, tape.dead)), left - alike
            if alike == most:
                return at
        return tape.ends_of_many_longs(at, left)

    def _pass_item(self, tape: Tape, at: Vector, items: Items | None, rows: Vector | None, ordinal: int) -> Vector:
        """Pass item number ``ordinal`` of the block in each of these rows."""
        if items is not None:
            self._note(tape, at, items, rows, ordinal)
        return self.item.skip(tape, at)

    def _note(self, tape: Tape, at: Vector, items: Items, rows: Vector | None, ordinal: Vector | int) -> None:
        """Remember where these items are, whose number in their block is ``ordinal``."""
        items.add(rows, (items.counts if rows is None else items.counts[rows]) + ordinal, at)

    def _pass_alone(
        self, tape: Tape, at: Vector, left: Vector, ordinal: int, items: Items | None, rows: Vector
    ) -> None:
        """Pass the items that are left of a few rows, one after another; ``at`` is updated."""
        for place, count in enumerate(left.tolist()):
            position = int(at[place])
            found = []
            try:
                for _ in range(count):
                    found.append(position)
                    position = self.slow_skip(tape.raw, position)
                    if position > tape.end:
                        raise Truncated
            except (Truncated, Malformed):
                found += [tape.dead] * (count - len(found))
                position = tape.dead
            at[place] = position
            if items is not None:
                row = np.full(count, rows[place])
                self._note(tape, np.array(found, np.int64), items, row, ordinal + np.arange(count))


class FixedItems(ArrayStep):
    """An array of items of one width: where each lies is a multiplication."""

    def __init__(self, item: FixedStep, arrow: pa.DataType) -> None:
        width = item.width
        super().__init__(item, width, lambda data, position: position + width, arrow)
        self._is_plain = item.is_plain

    def read(self, tape: Tape, at: Vector, rows: Rows) -> Read:
        if not self._is_plain:
            return super().read(tape, at, rows)
        blocks = Blocks(len(at))
        end = self._walk(tape, at, blocks)
        return partial(self._finish_plain, tape, blocks, rows), end

    def _finish_plain(self, tape: Tape, blocks: Blocks, rows: Rows) -> pa.Array:
        """The items of a block lie side by side as Arrow lays them: they are copied block by block."""
        total = int(blocks.counts.sum())
        if not total:
            return from_items(self.arrow, blocks.counts, rows, no_items(self.arrow))
        starts, counts = blocks.in_order()
        data = items_from_slices(tape, starts, counts * self.item_size)
        child = pa.Array.from_buffers(self.arrow.value_type, total, [None, data])
        return from_items(self.arrow, blocks.counts, rows, child)

    def _pass_block(self, tape: Tape, at: Vector, count: Vector, items: Gathered, live: Vector | None) -> Vector:
        if isinstance(items, Blocks):
            items.add(live, at, count)
        elif items is not None:
            done = items.counts if live is None else items.counts[live]
            total = int(count.sum())
            ordinal = np.arange(total) - np.repeat(np.cumsum(count) - count, count)
            rows = np.repeat(np.arange(len(count)) if live is None else live, count)
            items.add(rows, np.repeat(done, count) + ordinal, np.repeat(at, count) + ordinal * self.item_size)
        end: Vector = np.minimum(at + count * self.item_size, tape.dead)
        return end


class MapStep(ArrayStep):
    """A map with any key, as an array of entries."""

    def __init__(self, key: Step, value: Step, item_size: int, slow_skip: Skip, arrow: pa.DataType) -> None:
        entry = pa.struct([arrow.key_field, arrow.item_field])
        record = RecordStep([key, value], Layout(entry, [0, 1]))
        super().__init__(record, item_size, slow_skip, arrow)
