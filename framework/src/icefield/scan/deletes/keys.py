"""Keys of deleted rows: hashed and sorted, so that the rows of a batch are looked up all at once.

Null equals null. Floats are equal when their bits are, with one NaN, so that 0.0 and -0.0 differ: what Java's
``Double.equals`` does. A hash only finds candidates; whether a key is equal is decided by its values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import UnsupportedFeature
from icefield.partitioning.transforms.murmur3 import hash_slots
from icefield.types import (
    BinaryType,
    DateType,
    GeographyType,
    GeometryType,
    IcebergType,
    LongType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    VariantType,
)
from icefield.types.arrow.nested import unwrap

Words = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

_MIX_1: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_MIX_2: Final = np.uint64(0xBF58_476D_1CE4_E5B9)
_NULL: Final = np.uint64(0x6A09_E667_F3BC_C909)
_HALF: Final = np.uint64(32)
_BITS_A_KEY: Final = 16
_FEWEST_BITS, _MOST_BITS = 1 << 16, 1 << 28
_WIDE: Final = (LongType, TimeType, TimestampType, TimestamptzType, TimestampNanoType, TimestamptzNanoType)


def check_type(kind: IcebergType, location: str) -> None:
    """Raise ``UnsupportedFeature`` for a column by which no rows can be found."""
    if kind.is_nested or isinstance(kind, VariantType):
        raise UnsupportedFeature(
            f"{location} deletes rows by a column of type {kind}; only columns of primitive types identify a row",
            location=location,
        )


def plain(array: pa.Array) -> pa.Array:
    """A column of a key without dictionaries and extensions."""
    while isinstance(array, pa.ExtensionArray | pa.DictionaryArray):
        array = unwrap(array)
    return array


def hash_keys(columns: Sequence[pa.Array], types: Sequence[IcebergType]) -> Words:
    """A hash of each row of some columns."""
    total: Words = np.zeros(len(columns[0]), np.uint64)
    for column, kind in zip(columns, types, strict=True):
        total = _mixed(total ^ _codes(column, kind))
    return total


def equal_keys(left: Sequence[pa.Array], right: Sequence[pa.Array]) -> Mask:
    """Whether the keys at each place are equal."""
    equal = np.ones(len(left[0]), bool)
    for one, other in zip(left, right, strict=True):
        if pa.types.is_null(one.type):
            continue
        if pa.types.is_floating(one.type):
            one, other = _bits(one), _bits(other)
        same = pc.fill_null(pc.equal(one, other), False)
        if one.null_count and other.null_count:
            same = pc.or_(same, pc.and_(one.is_null(), other.is_null()))
        equal &= same.to_numpy(zero_copy_only=False)
    return equal


class KeySet:
    """Keys of deleted rows, each with the number of the delete file that it is of."""

    def __init__(self, columns: Sequence[pa.Array], types: Sequence[IcebergType], files: npt.NDArray[np.int32]) -> None:
        self.columns = [plain(column) for column in columns]
        self.types = types
        self.files = files
        hashes = hash_keys(self.columns, types)
        self._order = np.argsort(hashes, kind="stable").astype(np.int32 if len(hashes) < 1 << 31 else np.int64)
        self._hashes = hashes[self._order]
        size = _FEWEST_BITS
        while size < min(_MOST_BITS, _BITS_A_KEY * len(hashes)):
            size *= 2
        self._shift = np.uint64(64 - size.bit_length() + 1)
        marked = np.zeros(size, bool)
        marked[self._hashes >> self._shift] = True
        self._marked = np.packbits(marked, bitorder="little")

    def __len__(self) -> int:
        return len(self.files)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the set takes."""
        arrays = (self._hashes, self._order, self.files, self._marked)
        total: int = sum(array.nbytes for array in arrays) + sum(column.nbytes for column in self.columns)
        return total

    def matches(self, hashes: Words, columns: Sequence[pa.Array], applying: Mask | None = None) -> Ints:
        """The places of the rows that have a key of the set; of the files alone of which ``applying`` is true.

        ``hashes`` are those of the columns.
        """
        marks = hashes >> self._shift
        bits = self._marked[marks >> np.uint64(3)] >> (marks & np.uint64(7)).astype(np.uint8)
        rows = np.flatnonzero(bits & 1)
        places = np.searchsorted(self._hashes, hashes[rows])
        found = []
        while len(rows):
            # Few keys have the hash of another one; a key that several files delete is there several times.
            inside = places < len(self._hashes)
            inside[inside] = self._hashes[places[inside]] == hashes[rows[inside]]
            rows, places = rows[inside], places[inside]
            keys = self._order[places]
            good = np.ones(len(rows), bool) if applying is None else applying[self.files[keys]]
            if good.any():
                here, there = pa.array(rows[good]), pa.array(keys[good])
                good[good] = equal_keys(
                    [column.take(here) for column in columns], [column.take(there) for column in self.columns]
                )
            found.append(rows[good])
            rows, places = rows[~good], places[~good] + 1
        return np.concatenate(found) if found else np.zeros(0, np.int64)

    def united(self, other: KeySet) -> KeySet:
        """The keys of both."""
        columns = [pa.concat_arrays(pair) for pair in zip(self.columns, other.columns, strict=True)]
        return KeySet(columns, self.types, np.concatenate((self.files, other.files)))


def _codes(column: pa.Array, kind: IcebergType) -> Words:
    """A number for each value, the same for equal ones."""
    if isinstance(kind, UnknownType) or column.null_count == len(column):
        return np.full(len(column), _NULL)
    if isinstance(kind, _WIDE):
        codes = _words(column.view(pa.int64())).view(np.uint64)
    elif isinstance(kind, DateType):
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
    """Words whose upper bits depend on all bits; the same for the same."""
    words = words * _MIX_1
    words ^= words >> _HALF
    words *= _MIX_2
    words ^= words >> _HALF
    return words * _MIX_1


def _bits(values: pa.Array) -> pa.Array:
    """Floats as the integers that their bits spell, every NaN the same."""
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False) if values.null_count else values.to_numpy()
    numbers = np.where(np.isnan(numbers), np.array(np.nan, numbers.dtype), numbers)
    bits = numbers.view(np.int64 if numbers.dtype.itemsize == 8 else np.int32)
    return pa.array(bits, mask=values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None)
