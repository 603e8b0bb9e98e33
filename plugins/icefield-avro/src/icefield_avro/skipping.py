"""Skipping values without creating objects.

A skipper is a function of the bytes and a position that returns the position after a value. Skipped values are checked
as closely as values that are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from icefield_avro.nodes import SIZED, VARINTS, Array, Map, Node, Optional, Primitive, Record, item_size
from icefield_avro.varints import Data, Malformed, Truncated, read_long

Skip = Callable[[Data, int], int]

MAX_EMPTY_ITEMS: Final = 1 << 20
"""The most items without bytes (nulls, empty records) that the arrays of one block may hold together."""


_MOST_INTEGERS: Final = 256


class Budget:
    """The remaining number of items without bytes that a block may hold: a few bytes can claim any number of these."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_EMPTY_ITEMS

    def spend(self, count: int) -> None:
        """Take ``count`` items from the budget. Raises ``Malformed`` when it is used up."""
        self.left -= count
        if self.left < 0:
            raise Malformed(f"arrays with more than {MAX_EMPTY_ITEMS:,} empty items")


def skipper(node: Node, budget: Budget) -> Skip:
    """A function that gives the position after a value."""
    match node:
        case Optional():
            return _skip_optional(node, budget)
        case Record():
            return _skip_record([skipper(field.node, budget) for field in node.fields])
        case Array():
            if _is_integer(node.item.node):
                return _skip_runs(1, ItemCount(node, budget))
            return _skip_items(skipper(node.item.node, budget), ItemCount(node, budget))
        case Map():
            if _is_integer(node.key.node) and _is_integer(node.value.node):
                return _skip_runs(2, ItemCount(node, budget))
            if _is_integer(node.key.node) and isinstance(node.value.node, Primitive) and node.value.node.wire in SIZED:
                return _skip_sized_entries(ItemCount(node, budget))
            entry = _skip_record([skipper(node.key.node, budget), skipper(node.value.node, budget)])
            return _skip_items(entry, ItemCount(node, budget))
    width = node.width
    if width is not None:
        return skip_fixed(width)
    return skip_sized if node.wire in SIZED else _skip_long


def _skip_long(data: Data, position: int) -> int:
    return read_long(data, position)[1]


def skip_sized(data: Data, position: int) -> int:
    """Skip a string or bytes, which begin with their length."""
    size, start = read_long(data, position)
    end = start + size
    if size < 0:
        raise Malformed("a value of negative length")
    if end > len(data):
        raise Truncated
    return end


def skip_fixed(width: int) -> Skip:
    """The function that skips ``width`` bytes."""

    def skip(data: Data, position: int) -> int:
        end = position + width
        if end > len(data):
            raise Truncated
        return end

    return skip


def _skip_record(parts: list[Skip]) -> Skip:
    def skip(data: Data, position: int) -> int:
        for part in parts:
            position = part(data, position)
        return position

    return skip


def read_branch(data: Data, position: int, optional: Optional) -> tuple[bool, int]:
    """Whether a value follows the branch, and the position after the branch."""
    branch, position = read_long(data, position)
    if branch == optional.value_branch:
        return True, position
    if branch == optional.null_branch:
        return False, position
    raise Malformed(f"a union with the branch {branch}")


def _skip_optional(node: Optional, budget: Budget) -> Skip:
    inner = skipper(node.inner, budget)

    def skip(data: Data, position: int) -> int:
        present, position = read_branch(data, position, node)
        return inner(data, position) if present else position

    return skip


class ItemCount:
    """Reads the number of items in the next block of an array; the bytes that are left bound it."""

    def __init__(self, node: Array | Map, budget: Budget) -> None:
        self.size = item_size(node)
        self.budget = budget

    def __call__(self, data: Data, position: int) -> tuple[int, int]:
        count, position = read_long(data, position)
        if count < 0:
            count = -count
            _, position = read_long(data, position)
        if count * self.size > len(data) - position:
            raise Malformed(f"an array of {count:,} items where {len(data) - position:,} bytes are left")
        if self.size == 0:
            self.budget.spend(count)
        return count, position


def _skip_items(item: Skip, read_count: ItemCount) -> Skip:
    def skip(data: Data, position: int) -> int:
        while True:
            count, position = read_count(data, position)
            if count == 0:
                return position
            for _ in range(count):
                position = item(data, position)

    return skip


def _skip_sized_entries(read_count: ItemCount) -> Skip:
    """Skip maps from integers to byte strings, like the bounds in manifests, which may have very many entries."""

    def skip(data: Data, position: int) -> int:
        size = len(data)
        while True:
            count, position = read_count(data, position)
            if count == 0:
                return position
            try:
                for _ in range(count):
                    position = position + 1 if data[position] < 0x80 else read_long(data, position)[1]
                    length = data[position]
                    # Nearly all lengths have one byte and are not negative.
                    position = skip_sized(data, position) if length & 0x81 else position + 1 + (length >> 1)
            except IndexError:
                raise Truncated from None
            if position > size:
                raise Truncated

    return skip


def _is_integer(node: Node) -> bool:
    return isinstance(node, Primitive) and node.wire in VARINTS


@lru_cache(maxsize=_MOST_INTEGERS)
def _integers(count: int) -> re.Pattern[bytes]:
    """Return a pattern for ``count`` integers: regular expressions are Python's fastest loop over bytes."""
    return re.compile(rb"(?:[\x80-\xff]{0,8}[\x00-\x7f]|[\x80-\xff]{9}[\x00\x01]){%d}" % count)


def _skip_runs(each: int, read_count: ItemCount) -> Skip:
    """Skip arrays with items of ``each`` integers and nothing else."""

    def skip(data: Data, position: int) -> int:
        while True:
            count, position = read_count(data, position)
            if count == 0:
                return position
            left = count * each
            while left:
                found = _integers(min(left, _MOST_INTEGERS)).match(data, position)
                if found is None:
                    return _skip_one_by_one(data, position, left)
                position = found.end()
                left -= min(left, _MOST_INTEGERS)

    return skip


def _skip_one_by_one(data: Data, position: int, left: int) -> int:
    """Skip integers one by one, to raise the exact error of a damaged one."""
    for _ in range(left):
        position = _skip_long(data, position)
    return position
