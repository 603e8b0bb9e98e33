"""Keys of deleted rows, sorted by hash, for lookups of whole batches of rows.

Null equals null. Floats are equal if their bits are equal, with one NaN, so that 0.0 and -0.0 differ, as in Java's
``Double.equals``. Hashes only find candidates; the values decide whether keys are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.base import compute as pc
from icefield.errors import UnsupportedFeature
from icefield.partitioning.transforms.murmur3 import hash_slots
from icefield.types import BinaryType, GeographyType, GeometryType, IcebergType, UnknownType, VariantType
from icefield.types.arrow.equality import float_bits, plain

Words = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

_MIX_1: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_MIX_2: Final = np.uint64(0xBF58_476D_1CE4_E5B9)
_NULL: Final = np.uint64(0x6A09_E667_F3BC_C909)
_HALF: Final = np.uint64(32)
_BITS_A_KEY: Final = 16
_FEWEST_BITS, _MOST_BITS = 1 << 10, 1 << 28


def check_type(kind: IcebergType, location: str) -> None:
    """Raise ``UnsupportedFeature`` for a type that cannot be an equality column."""
    if kind.is_nested or isinstance(kind, VariantType):
        raise UnsupportedFeature(
            f"{location} deletes rows by a column of type {kind}; only columns of primitive types identify a row",
            location=location,
        )


def hash_keys(columns: Sequence[pa.Array], types: Sequence[IcebergType]) -> Words:
    """A hash of each row of some columns."""
    total: Words = np.zeros(len(columns[0]), np.uint64)
    for column, kind in zip(columns, types, strict=True):
        total = _mixed(total ^ _codes(column, kind))
    return total


def equal_keys(left: Sequence[pa.Array], right: Sequence[pa.Array]) -> Mask:
    """Whether the keys in each row are equal."""
    equal = np.ones(len(left[0]), bool)
    for one, other in zip(left, right, strict=True):
        if pa.types.is_null(one.type):
            continue
        if pa.types.is_floating(one.type):
            one, other = float_bits(one), float_bits(other)
        same = pc.fill_null(pc.equal(one, other), False)
        if one.null_count and other.null_count:
            same = pc.or_(same, pc.and_(one.is_null(), other.is_null()))
        equal &= same.to_numpy(zero_copy_only=False)
    return equal


class KeySet:
    """Distinct keys of deleted rows, each with the numbers of its delete files.

    A hot key is in nearly every delete file of a change stream. Storing it once makes its lookup a single step.
    """

    def __init__(
        self,
        columns: Sequence[pa.Array],
        types: Sequence[IcebergType],
        files: npt.NDArray[np.int32],
        counts: Ints | None = None,
    ) -> None:
        """``files`` has the delete file numbers of all rows in order: one per row, or ``counts[row]`` per row."""
        columns = [plain(column) for column in columns]
        hashes = hash_keys(columns, types)
        order = np.argsort(hashes, kind="stable")
        hashes = hashes[order]
        is_new = _first_of_equal(columns, hashes, order)
        self.types = types
        self._hashes = hashes[is_new]
        self.columns = [column.take(pa.array(order[is_new])) for column in columns]
        entries = np.empty(len(order), np.int64)
        entries[order] = np.cumsum(is_new) - 1
        pairs = np.unique(np.stack((entries if counts is None else np.repeat(entries, counts), files), axis=1), axis=0)
        self._files = pairs[:, 1].astype(np.int32)
        self._starts = np.searchsorted(pairs[:, 0], np.arange(len(self._hashes) + 1))
        size = _FEWEST_BITS
        while size < min(_MOST_BITS, _BITS_A_KEY * len(self._hashes)):
            size *= 2
        self._shift = np.uint64(64 - size.bit_length() + 1)
        marked = np.zeros(size, bool)
        marked[self._hashes >> self._shift] = True
        self._marked = np.packbits(marked, bitorder="little")

    def __len__(self) -> int:
        return len(self._files)

    @property
    def nbytes(self) -> int:
        """The size of the set in memory, in bytes."""
        arrays = (self._hashes, self._starts, self._files, self._marked)
        total: int = sum(array.nbytes for array in arrays) + sum(column.nbytes for column in self.columns)
        return total

    def matches(self, hashes: Words, columns: Sequence[pa.Array], applying: Mask | None = None) -> Ints:
        """The indexes of the rows with a key in the set.

        With ``applying``, a mask over file numbers, only the keys of these files count. ``hashes`` are the hashes of
        the rows.
        """
        marks = hashes >> self._shift
        bits = self._marked[marks >> np.uint64(3)] >> (marks & np.uint64(7)).astype(np.uint8)
        rows = np.flatnonzero(bits & 1)
        rows, places = same_keys(hashes, rows, self._hashes, partial(equal_rows, columns, self.columns))
        return rows if applying is None else rows[self._apply(places, applying)]

    def united(self, other: KeySet) -> KeySet:
        """A set with the keys of both."""
        columns = [pa.concat_arrays(pair) for pair in zip(self.columns, other.columns, strict=True)]
        counts = np.concatenate((np.diff(self._starts), np.diff(other._starts)))
        return KeySet(columns, self.types, np.concatenate((self._files, other._files)), counts)

    def _apply(self, entries: Ints, applying: Mask) -> Mask:
        """Whether any delete file of each key applies."""
        # A batch has few distinct keys that many files delete; check each of them once.
        distinct, inverse = np.unique(entries, return_inverse=True)
        if not len(distinct):
            return np.zeros(0, bool)
        firsts, counts = self._starts[distinct], self._starts[distinct + 1] - self._starts[distinct]
        offsets = np.cumsum(counts) - counts
        places = np.arange(int(counts.sum())) + np.repeat(firsts - offsets, counts)
        some: Mask = np.logical_or.reduceat(applying[self._files[places]], offsets)
        return some[inverse]


def same_keys(hashes: Words, rows: Ints, held: Words, equal: Callable[[Ints, Ints], Mask]) -> tuple[Ints, Ints]:
    """The rows with a key that is held, and the places of their keys.

    ``held`` are the hashes of the keys, ascending. ``equal`` compares the keys of rows with the keys at places.
    """
    places = np.searchsorted(held, hashes[rows])
    found, there = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    while len(rows):
        # Repeat with the next key, for the few keys with a hash collision.
        inside = places < len(held)
        inside[inside] = held[places[inside]] == hashes[rows[inside]]
        rows, places = rows[inside], places[inside]
        good = equal(rows, places)
        found.append(rows[good])
        there.append(places[good])
        rows, places = rows[~good], places[~good] + 1
    return np.concatenate(found), np.concatenate(there)


def _first_of_equal(columns: Sequence[pa.Array], hashes: Words, order: Ints) -> Mask:
    """Which rows, sorted by hash, are the first with their key; also groups equal keys together in ``order``.

    Hash collisions are rare, and are grouped one by one.
    """
    is_new = np.ones(len(order), bool)
    is_new[1:] = hashes[1:] != hashes[:-1]
    again = np.flatnonzero(~is_new)
    if not len(again):
        return is_new
    differ = again[~equal_rows(columns, columns, order[again], order[again - 1])]
    starts = np.flatnonzero(is_new)
    for run in np.unique(np.searchsorted(starts, differ, side="right") - 1).tolist():
        start, stop = int(starts[run]), int(starts[run + 1]) if run + 1 < len(starts) else len(order)
        left = order[start:stop].copy()
        while len(left):
            same = equal_rows(columns, columns, left, np.full(len(left), left[0]))
            order[start : start + int(same.sum())] = left[same]
            is_new[start] = True
            start, left = start + int(same.sum()), left[~same]
    return is_new


def equal_rows(left: Sequence[pa.Array], right: Sequence[pa.Array], rows: Ints, places: Ints) -> Mask:
    """Which rows of the left columns have the key of the right columns at the same position of ``places``."""
    here, there = pa.array(rows), pa.array(places)
    return equal_keys([column.take(here) for column in left], [column.take(there) for column in right])


def _codes(column: pa.Array, kind: IcebergType) -> Words:
    """A number for each value, the same for equal values."""
    if isinstance(kind, UnknownType) or column.null_count == len(column):
        return np.full(len(column), _NULL)
    held = column.type
    if pa.types.is_int64(held) or pa.types.is_time64(held) or pa.types.is_timestamp(held):
        codes = _words(column.view(pa.int64())).view(np.uint64)
    elif pa.types.is_date32(held):
        codes = _words(column.view(pa.int32())).astype(np.uint64)
    else:
        hashed = BinaryType() if isinstance(kind, GeometryType | GeographyType) else kind
        codes = hash_slots(column, hashed).view(np.uint32).astype(np.uint64)
    if column.null_count:
        codes = np.where(column.is_null().to_numpy(zero_copy_only=False), _NULL, codes)
    return codes


def _words(column: pa.Array) -> npt.NDArray[Any]:
    values: npt.NDArray[Any] = (column.fill_null(0) if column.null_count else column).to_numpy()
    return values


def _mixed(words: Words) -> Words:
    """Mix words so that their upper bits depend on all bits; equal words stay equal."""
    words = words * _MIX_1
    words ^= words >> _HALF
    words *= _MIX_2
    words ^= words >> _HALF
    return words * _MIX_1
