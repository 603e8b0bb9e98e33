"""Delete files sorted by their scope, with lookups for whole columns of data files.

A lookup returns pairs of a data file's row and a delete file, or ranges that represent such pairs. Delete files are row
numbers of an index; groups are partition numbers, -1 for a partition without delete files.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.base import compute as pc
from icefield.storage.places import path_hashes
from icefield.types.arrow.equality import Ints

Mask = npt.NDArray[np.bool_]

_AT_ONCE: Final = 1 << 20
"""The number of pairs to check together."""

_ABOVE_ALL_PATHS: Final = b"\xff"
"""A bound above all paths: UTF-8 never contains this byte."""


@dataclass(slots=True)
class FilesToAssign:
    """Data files of one spec: their paths, groups and data sequence numbers."""

    paths: pa.StringArray
    groups: Ints
    sequences: Ints

    def take(self, rows: Ints) -> FilesToAssign:
        """A selection of the files."""
        return FilesToAssign(self.paths.take(pa.array(rows)), self.groups[rows], self.sequences[rows])


@dataclass(slots=True)
class Ranges:
    """For each data file the delete files ``numbers[firsts:ends]``; the end may be before the first."""

    numbers: Ints
    firsts: Ints
    ends: Ints

    @property
    def counts(self) -> Ints:
        """The number of delete files of each data file."""
        counts: Ints = np.maximum(self.ends - self.firsts, 0)
        return counts

    def pairs(self) -> tuple[Ints, Ints]:
        """The rows of data files, ascending, and the delete file of each pair."""
        counts = self.counts
        rows = np.repeat(np.arange(len(counts)), counts)
        places = np.arange(len(rows)) + np.repeat(self.firsts - (np.cumsum(counts) - counts), counts)
        return rows, self.numbers[places]


class ByAge:
    """Delete files that apply to all files of their partition that are old enough."""

    def __init__(self, numbers: Ints, groups: Ints, sequences: Ints, *, inclusive: bool) -> None:
        """``inclusive``: whether they apply to files of their own data sequence number."""
        self._side: Any = "left" if inclusive else "right"
        order = np.lexsort((sequences, groups))
        self.numbers = numbers[order]
        self._ages = np.unique(sequences)
        self._width = len(self._ages) + 1
        self._keys = groups[order] * self._width + np.searchsorted(self._ages, sequences[order])

    def find(self, files: FilesToAssign) -> Ranges:
        """The delete files that apply to each data file, oldest first."""
        low = files.groups * self._width
        firsts = np.searchsorted(self._keys, low + np.searchsorted(self._ages, files.sequences, self._side))
        return Ranges(self.numbers, firsts, np.searchsorted(self._keys, low + self._width))


class ByPath:
    """Delete files for a single data file each, found by path hashes and confirmed by comparing paths."""

    def __init__(self, numbers: Ints, groups: Ints, sequences: Ints, paths: pa.StringArray) -> None:
        hashes = path_hashes(paths) if len(numbers) else np.zeros(0, np.uint64)
        order = np.argsort(hashes, kind="stable")
        self.numbers, self._hashes = numbers[order], hashes[order]
        self._groups, self._sequences = groups[order], sequences[order]
        self._paths = paths.take(pa.array(order))

    def find(self, files: FilesToAssign) -> tuple[Ints, Ints]:
        """Rows of data files and the delete file of each pair."""
        hashes = path_hashes(files.paths)
        places = np.arange(len(self.numbers))
        ends = np.searchsorted(self._hashes, hashes, "right")
        rows, places = Ranges(places, np.searchsorted(self._hashes, hashes), ends).pairs()
        fits = (self._groups[places] == files.groups[rows]) & (self._sequences[places] >= files.sequences[rows])
        rows, places = rows[fits], places[fits]
        if len(rows):
            same = pc.equal(self._paths.take(pa.array(places)), files.paths.take(pa.array(rows)))
            kept = np.asarray(same)
            rows, places = rows[kept], places[kept]
        return rows, self.numbers[places]


class ByBounds:
    """Position delete files of many data files of a partition, found by the bounds of the paths that they name.

    The bounds of all files are sorted and numbered, so that a path is compared with distinct bounds only. Files are
    sorted by group and lower bound; ``ceilings`` are the running maximum of the upper bounds within a group. The
    candidates for a path are between the first ceiling that reaches it and the last lower bound that is not above it::

        lower bounds    a    c    e    g         candidates for the path f: files 2 and 3;
        upper bounds    b    h    e    i         file 3 ends before f, so only file 2 matches
        ceilings        b    h    h    i
    """

    def __init__(self, numbers: Ints, groups: Ints, sequences: Ints, low: pa.BinaryArray, high: pa.BinaryArray) -> None:
        """A null bound is unlimited on its side."""
        bounds = pa.concat_arrays([pc.fill_null(low, b""), pc.fill_null(high, _ABOVE_ALL_PATHS)]).dictionary_encode()
        order = pc.sort_indices(bounds.dictionary)
        self._bounds = bounds.dictionary.take(order)
        self._ordered: list[bytes] = self._bounds.to_pylist()
        ranks = np.empty(len(order), np.int64)
        ranks[np.asarray(order)] = np.arange(len(order))
        ranks = ranks[np.asarray(bounds.indices)]
        self._width = len(order) + 1
        keys = groups * self._width + ranks[: len(numbers)]
        by_low = np.argsort(keys, kind="stable")
        self.numbers, self._keys = numbers[by_low], keys[by_low]
        self._highs, self._sequences = ranks[len(numbers) :][by_low], sequences[by_low]
        self._ceilings = np.maximum.accumulate(groups[by_low] * self._width + self._highs)
        self._has_group = np.zeros(int(groups.max()) + 2, bool)
        self._has_group[groups] = True

    def find(self, files: FilesToAssign) -> tuple[Ints, Ints]:
        """Rows of data files and the delete file of each pair."""
        # The last element is false; it stands for group -1 and for all groups above the greatest group here.
        inside = np.flatnonzero(self._has_group[np.minimum(files.groups, len(self._has_group) - 1)])
        if not len(inside):
            return inside, inside
        chosen = files if len(inside) == len(files.groups) else files.take(inside)
        below, not_above = self._placed(chosen.paths.cast(pa.binary()))
        low = chosen.groups * self._width
        firsts = np.searchsorted(self._ceilings, low + below)
        ends = np.searchsorted(self._keys, low + not_above)
        found = list(self._pairs(firsts, ends, below, chosen.sequences))
        rows, places = (np.concatenate(part) for part in zip(*found, strict=True))
        return inside[rows], self.numbers[places]

    def _placed(self, paths: pa.BinaryArray) -> tuple[Ints, Ints]:
        """The number of bounds below each path, and the number of bounds not above it."""
        ends = pc.min_max(paths)
        least, greatest = ends["min"].as_py(), ends["max"].as_py()
        start, stop = bisect_left(self._ordered, least), bisect_left(self._ordered, greatest)
        # All bounds between the least and the greatest path share their common prefix. The next eight bytes decide the
        # order, or leave few bounds to compare.
        pairs = enumerate(zip(least, greatest, strict=False))
        common = next((at for at, (one, other) in pairs if one != other), min(len(least), len(greatest)))
        words = _words(self._bounds.slice(start, stop - start), common)
        wanted = _words(paths, common)
        first, last = start + np.searchsorted(words, wanted), start + np.searchsorted(words, wanted, "right")
        is_open = first < last
        while is_open.any():
            rows = np.flatnonzero(is_open)
            middle = (first[rows] + last[rows]) >> 1
            less = self._compared(pc.less, middle, paths.take(pa.array(rows)))
            first[rows] = np.where(less, middle + 1, first[rows])
            last[rows] = np.where(less, last[rows], middle)
            is_open[rows] = first[rows] < last[rows]
        return first, first + (self._compared(pc.equal, first, paths) & (first < len(self._ordered)))

    def _compared(self, compare: Any, places: Ints, paths: pa.BinaryArray) -> Mask:
        bounds = self._bounds.take(pa.array(np.minimum(places, len(self._ordered) - 1)))
        return np.asarray(compare(bounds, paths))

    def _pairs(self, firsts: Ints, ends: Ints, below: Ints, sequences: Ints) -> Iterator[tuple[Ints, Ints]]:
        """The pairs of rows and positions, some rows at a time, because wide bounds have many candidates."""
        places = np.arange(len(self.numbers))
        start, count = 0, len(firsts)
        totals = np.cumsum(np.maximum(ends - firsts, 0))
        while start < count:
            before = int(totals[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(totals, before + _AT_ONCE, "right")))
            rows, found = Ranges(places, firsts[start:stop], ends[start:stop]).pairs()
            rows += start
            fits = (self._highs[found] >= below[rows]) & (self._sequences[found] >= sequences[rows])
            yield rows[fits], found[fits]
            start = stop


def _words(strings: pa.BinaryArray, skipped: int) -> npt.NDArray[np.uint64]:
    """Eight bytes of each string after a skipped prefix, as integers that sort like the bytes.

    Shorter strings are padded with zeros, so that some different strings have equal integers.
    """
    if not len(strings):
        return np.zeros(0, np.uint64)
    offsets = np.frombuffer(strings.buffers()[1], np.int32)[strings.offset : strings.offset + len(strings) + 1]
    origin, end = int(offsets[0]), int(offsets[-1])
    data = np.zeros(end - origin + 8, np.uint8)
    data[:-8] = np.frombuffer(strings.buffers()[2], np.uint8)[origin:end]
    ends = offsets[1:].astype(np.int64) - origin
    starts = np.minimum(offsets[:-1] - origin + skipped, ends)
    words = np.lib.stride_tricks.as_strided(data[:8].view(">u8"), (len(data) - 7,), (1,))[starts].astype(np.uint64)
    short = np.flatnonzero(ends - starts < 8)
    if len(short):
        # The bytes after a short string belong to the next one. Shift in two halves: numpy leaves a shift by 64 bits
        # undefined.
        surplus = (8 * (8 - (ends - starts)[short])).astype(np.uint64)
        half = surplus >> np.uint64(1)
        words[short] = words[short] >> half >> half << half << half
    return words
