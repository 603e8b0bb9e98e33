"""Matching of deleted rows with inserted rows: removal of carried-over rows, and computation of updates.

Each row has a change number: twice its change ordinal, plus one for an insert. Copy-on-write deletes and inserts again
every row of a file; unchanged rows cancel out here. "Changelog" in Iceberg's documentation defines the change types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.errors import InvalidArgument
from icefield.scan.deletes.keys import Mask, equal_keys
from icefield.types.arrow.equality import Ints, plain, row_numbers, value_numbers

CHANGE_TYPES: Final = ("DELETE", "INSERT", "UPDATE_BEFORE", "UPDATE_AFTER")
DELETE, INSERT, UPDATE_BEFORE, UPDATE_AFTER = range(4)


@dataclass(frozen=True, slots=True)
class MatchedChanges:
    """The indexes of the remaining rows, and the index of each row's change type in ``CHANGE_TYPES``."""

    places: Ints
    types: npt.NDArray[np.int8]


def settle(
    columns: Sequence[pa.Array], keys: Sequence[pa.Array], changes: Ints, *, net: bool, names: str
) -> MatchedChanges:
    """The remaining changes after equal rows cancel out: deletes, pairs of updates, inserts.

    Equal rows are equal in all ``columns``. ``keys`` identify a row; without them there are no updates. ``changes`` are
    the change numbers, sorted by snapshot. ``net``: whether changes of several snapshots cancel out. ``names``: the
    names of the keys, for errors. Raises ``InvalidArgument`` for keys that several rows share.
    """
    left = _net(columns, changes) if net else differing(columns, changes & 1 == 1)
    inserted = changes[left] & 1 == 1
    if not keys or not inserted.any() or inserted.all():
        order = np.argsort(inserted, kind="stable")
        return MatchedChanges(left[order], inserted[order].astype(np.int8))
    before, after = _updates([key.take(pa.array(left)) for key in keys], inserted, names)
    updated = np.zeros(len(left), bool)
    updated[before], updated[after] = True, True
    deletes, inserts = np.flatnonzero(~updated & ~inserted), np.flatnonzero(~updated & inserted)
    pairs = np.stack((before, after), axis=1).reshape(-1)
    types = np.repeat(np.array([DELETE, INSERT], np.int8), [len(deletes), len(inserts)])
    pair_types = np.tile(np.array([UPDATE_BEFORE, UPDATE_AFTER], np.int8), len(before))
    return MatchedChanges(
        left[np.concatenate((deletes, pairs, inserts))],
        np.concatenate((types[: len(deletes)], pair_types, types[len(deletes) :])),
    )


def differing(columns: Sequence[pa.Array], inserted: Mask) -> Ints:
    """The indexes of the remaining rows after each deleted row cancels out with an equal inserted row.

    Column by column, rows without an equal row of the opposite kind are set aside. When each row has only one possible
    match left, the other columns are compared in pairs.
    """
    left = np.arange(len(inserted))
    numbers = np.zeros(len(left), np.int64)
    aside: list[Ints] = []
    for place, column in enumerate(columns):
        codes, distinct = value_numbers(column if len(left) == len(inserted) else column.take(pa.array(left)))
        if distinct > 1:
            numbers = row_numbers([pa.array(numbers), pa.array(codes)], len(left)) if place else codes
        kinds = inserted[left]
        size = int(numbers.max(initial=0)) + 1
        gone, come = np.bincount(numbers[~kinds], minlength=size), np.bincount(numbers[kinds], minlength=size)
        met = (gone > 0) & (come > 0)
        inside = met[numbers]
        aside.append(left[~inside])
        left, numbers = left[inside], numbers[inside]
        if not len(left):
            break
        if gone[met].max() == 1 == come[met].max():
            aside.append(_unequal_pairs(columns[place + 1 :], left, numbers, inserted))
            left = left[:0]
            break
    if len(left):
        aside.append(left[_uncancelled(numbers, inserted[left])])
    return np.sort(np.concatenate(aside)) if aside else left[_uncancelled(numbers, inserted)]


def _unequal_pairs(columns: Sequence[pa.Array], left: Ints, numbers: Ints, inserted: Mask) -> Ints:
    """The deleted and inserted rows with the same number that differ in one of the columns."""
    order = left[np.argsort(numbers, kind="stable")]
    kinds = inserted[order]
    gone, come = order[~kinds], order[kinds]
    unequal = []
    for column in columns:
        if not len(gone):
            break
        same = _equal(column.take(pa.array(gone)), column.take(pa.array(come)))
        unequal += [gone[~same], come[~same]]
        gone, come = gone[same], come[same]
    return np.concatenate(unequal) if unequal else left[:0]


def _equal(one: pa.Array, other: pa.Array) -> Mask:
    one, other = plain(one), plain(other)
    if pa.types.is_nested(one.type):
        codes, _ = value_numbers(pa.concat_arrays([one, other]))
        return np.asarray(codes[: len(one)] == codes[len(one) :])
    return equal_keys([one], [other])


def _uncancelled(numbers: Ints, inserted: Mask) -> Mask:
    """Which rows remain after deletes and inserts with the same number cancel out.

    Rows are in the order of time, and the latest rows remain.
    """
    size = int(numbers.max(initial=0)) + 1
    surplus = np.bincount(numbers[inserted], minlength=size) - np.bincount(numbers[~inserted], minlength=size)
    alive = np.flatnonzero(np.where(inserted, surplus[numbers] > 0, surplus[numbers] < 0))
    order = alive[np.argsort(numbers[alive], kind="stable")][::-1]
    grouped = numbers[order]
    starts = np.flatnonzero(np.concatenate(([True], grouped[1:] != grouped[:-1]))) if len(order) else order
    ranks = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    kept = np.zeros(len(numbers), bool)
    kept[order[ranks < np.abs(surplus[grouped])]] = True
    return kept


def _net(columns: Sequence[pa.Array], changes: Ints) -> Ints:
    """Like ``differing``, for several snapshots: first within each snapshot, then across all of them."""
    numbers = row_numbers(columns, len(changes))
    each = row_numbers([pa.array(numbers), pa.array(changes >> 1)], len(changes))
    left = np.flatnonzero(_uncancelled(each, changes & 1 == 1))
    return left[_uncancelled(row_numbers([pa.array(numbers[left])], len(left)), changes[left] & 1 == 1)]


def _updates(keys: Sequence[pa.Array], inserted: Mask, names: str) -> tuple[Ints, Ints]:
    """The indexes of the rows before and after updates: a deleted and an inserted row with the same key."""
    numbers = row_numbers(keys, len(inserted))
    size = int(numbers.max(initial=0)) + 1
    gone, come = np.bincount(numbers[~inserted], minlength=size), np.bincount(numbers[inserted], minlength=size)
    both = (gone > 0) & (come > 0)
    shared = both & ((gone > 1) | (come > 1))
    if shared.any():
        number = int(np.flatnonzero(shared)[0])
        row = int(np.flatnonzero(numbers == number)[0])
        values = ", ".join(_shown(key[row]) for key in keys)
        raise InvalidArgument(
            f"{names} do not identify a row: {gone[number]} rows with ({values}) were deleted and {come[number]} "
            "inserted at once, so that it is not known which became which; give other identifier_columns, or "
            "compute_updates=False"
        )
    places = np.flatnonzero(both[numbers])
    order = places[np.argsort(numbers[places], kind="stable")]
    return order[~inserted[order]], order[inserted[order]]


def _shown(value: Any) -> str:
    try:
        return repr(value.as_py())[:100]
    except (ValueError, OverflowError):
        return str(value.cast(pa.string()))
