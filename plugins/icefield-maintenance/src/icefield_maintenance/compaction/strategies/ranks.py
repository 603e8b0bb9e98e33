"""The rank of a value within a sample of its column, for any primitive type.

A rank is the share of smaller values in the sample, with as many steps as the bits allow. So an outlier takes only one
step, and values with a long common prefix differ in rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from icefield.engine import halves_of

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
_SIGN: Final = np.uint64(1 << 63)
_WORD: Final = 8
_COMPARED_BYTES: Final = 256
"""Comparisons use this many bytes of strings and binary values."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """The values of a column at the steps of its sample, ascending: rank 1, 2, and so on. Null has rank 0.

    Values are compared as 64-bit words: by their first words, then by their second words if the first are equal.
    ``steps`` holds the words of the values at the steps, one array for each word.
    """

    steps: tuple[Words, ...]

    @classmethod
    def of(cls, sampled: pa.Array, bits: int) -> Self:
        """Make the ranks from an unsorted sample."""
        values = _comparable(sampled).drop_null()
        if not len(values):
            return cls(())
        values = values.take(pc.sort_indices(values))
        count = (1 << bits) - 2
        # The first step is the least value, which has rank 1; a value beyond the last step has the highest rank.
        chosen = values.take(pa.array(np.arange(count) * len(values) // count))
        words = _Words(chosen)
        return cls(tuple(words.word(depth, np.arange(count)) for depth in range(words.depth())))

    def find(self, column: pa.Array) -> npt.NDArray[np.intp]:
        """The rank of each value. A smaller value never has a greater rank."""
        ranks = np.zeros(len(column), np.intp)
        if not self.steps or column.null_count == len(column):
            return ranks
        words = _Words(_comparable(column))
        low: npt.NDArray[Any] = self.steps[0]
        key: npt.NDArray[Any] = words.word(0, None)
        rows: Ints | slice = slice(None)
        # Values may be longer than all values of the sample, which then count as padded with zeros.
        beyond = [np.zeros_like(self.steps[0])] * (words.depth() - len(self.steps))
        for depth, steps in enumerate((*self.steps[1:], *beyond, None), start=1):
            found = np.searchsorted(low, key)
            ranks[rows] = found + 1
            if steps is None:
                break
            equal = found < len(low)
            equal[equal] = low[found[equal]] == key[equal]
            # If the words of a value equal those of a step so far, its next word decides among the steps with the same
            # words so far.
            rows = np.flatnonzero(equal) if isinstance(rows, slice) else rows[equal]
            if not len(rows):
                break
            known = np.unique(steps)
            group = found[equal]
            low, key = _joined(np.searchsorted(low, low), steps, known), _joined(group, words.word(depth, rows), known)
        if column.null_count:
            ranks[np.asarray(column.is_null())] = 0
        return ranks


def _joined(group: Ints, word: Words, known: Words) -> Ints:
    """Numbers ordered by group, then by word. Each known word has its own number; words between two share one.

    For example 5, 6, 7 and 9 of group 0, among 6 and 9 known, are 0, 1, 2 and 3; of group 1 they are 5, 6, 7 and 8.
    """
    place = np.searchsorted(known, word)
    same = place < len(known)
    same[same] = known[place[same]] == word[same]
    joined: Ints = group * (2 * len(known) + 1) + 2 * place + same
    return joined


def shortened(array: pa.Array) -> pa.Array:
    """Cut strings and binary values to the compared bytes, so that a sample takes less memory."""
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        array = array.cast(pa.large_binary())
    if pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type):
        return pc.binary_slice(array, 0, _COMPARED_BYTES)
    return array


def _comparable(array: pa.Array) -> pa.Array:
    """Values as signed integers, decimals or bytes in the same order."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _comparable(array.dictionary_decode())
    if pa.types.is_null(kind) or pa.types.is_boolean(kind):
        return array.cast(pa.int64())
    if pa.types.is_floating(kind):
        # IEEE's total order: the magnitude of negative ones counts downwards.
        bits = array.cast(pa.float64()).view(pa.int64())
        values = np.asarray(bits.fill_null(0))
        mask = np.asarray(bits.is_null()) if bits.null_count else None
        return pa.array(values ^ ((values >> 63) & np.int64(0x7FFF_FFFF_FFFF_FFFF)), mask=mask)
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        return array.view(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(pa.int64())
    if pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind):
        return array
    return array.cast(pa.large_binary())


class _Words:
    """The values of a comparable array in pieces of 64 bits, the highest first; zeros after the end of bytes."""

    def __init__(self, array: pa.Array) -> None:
        self._array = array
        kind = array.type
        self._starts: Ints | None = None
        if pa.types.is_fixed_size_binary(kind):
            self._lengths = np.full(len(array), min(kind.byte_width, _COMPARED_BYTES))
            self._starts = (np.arange(len(array)) + array.offset) * kind.byte_width
        elif pa.types.is_large_binary(kind):
            offsets = np.frombuffer(array.buffers()[1], np.int64, len(array) + 1, array.offset * 8)
            self._starts, self._lengths = offsets[:-1], np.minimum(np.diff(offsets), _COMPARED_BYTES)
        if self._starts is not None:
            data = array.buffers()[2 if pa.types.is_large_binary(kind) else 1]
            octets = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
            if len(octets) < _WORD:
                octets = np.concatenate((octets, np.zeros(_WORD, np.uint8)))
            # One word begins at each byte.
            self._octets = np.ndarray(len(octets) - _WORD + 1, ">u8", octets, strides=(1,))

    def depth(self) -> int:
        """How many words the longest value has, at least one."""
        if self._starts is not None:
            return max(1, -(-int(self._lengths.max(initial=0)) // _WORD))
        return 2 if pa.types.is_decimal(self._array.type) else 1

    def word(self, depth: int, rows: Ints | None) -> Words:
        """The word at position ``depth`` of some values, or of all."""
        if self._starts is not None:
            return self._of_bytes(depth * _WORD, rows)
        if pa.types.is_decimal(self._array.type):
            low, high = halves_of(self._array)
            half = low if depth else np.ascontiguousarray(high).view(np.uint64) ^ _SIGN
            return half.copy() if rows is None else half[rows]
        values: Words = np.asarray(self._array.fill_null(0)).view(np.uint64) ^ _SIGN
        return values if rows is None else values[rows]

    def _of_bytes(self, skipped: int, rows: Ints | None) -> Words:
        assert self._starts is not None
        starts, lengths = (self._starts, self._lengths) if rows is None else (self._starts[rows], self._lengths[rows])
        begin = starts + skipped
        left = lengths - skipped
        # A word that begins within the last word of the buffer is read from there: the bytes before it are shifted out.
        read = np.clip(begin, 0, len(self._octets) - 1)
        word = self._octets[read].astype(np.uint64) << (8 * np.clip(begin - read, 0, _WORD - 1)).astype(np.uint64)
        # The bytes after the end of a value belong to another value.
        keep = np.clip(left, 0, _WORD)
        mask = np.where(keep > 0, ~np.uint64(0) << (8 * np.minimum(_WORD - keep, _WORD - 1)).astype(np.uint64), 0)
        made: Words = word & mask.astype(np.uint64)
        return made
