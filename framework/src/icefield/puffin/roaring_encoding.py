"""Row positions written as portable 64-bit Roaring bitmaps, all containers at once. The format: see ``roaring``.

The number of positions and runs of each container determines the layout. These numbers are computed first, in columns;
then headers and bodies are written to one array of bytes. Writing the containers one by one would cost 30 us each, and
distant positions need a container each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from icefield.errors import InvalidArgument
from icefield.puffin.roaring import BITS_BYTES, LARGEST_ARRAY, OFFSETS_FROM, PLAIN, WITH_RUNS, Positions

_Ints = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]

_AT_ONCE: Final = 1 << 20
"""The number of positions for which container bodies are written together."""


def encode_each(sets: Sequence[Positions]) -> list[bytes]:
    """The bitmaps of several sets of ascending, distinct positions, as Java and C++ write them.

    They are made together, since a single small bitmap would take 500 us. Each container has its smallest form.

    Raises ``InvalidArgument`` for a negative position.
    """
    filled = [positions for positions in sets if len(positions)]
    for positions in filled:
        if positions[0] < 0:
            raise InvalidArgument(f"a row has no position {positions[0]}")
    made = iter(_encoded(filled) if filled else [])
    return [next(made) if len(positions) else bytes(8) for positions in sets]


def _encoded(sets: Sequence[Positions]) -> list[bytes]:
    positions = np.concatenate(sets)
    lengths = np.array([len(each) for each in sets])
    firsts = np.cumsum(lengths) - lengths
    blocks = positions >> 16
    begins = np.ones(len(positions), bool)
    np.not_equal(blocks[1:], blocks[:-1], out=begins[1:])
    begins[firsts] = True
    starts = np.flatnonzero(begins)
    begins[1:] |= positions[1:] - positions[:-1] != 1
    counts = np.diff(starts, append=len(positions))
    containers = _Containers(blocks[starts], starts, counts, np.add.reduceat(begins, starts, dtype=np.int64))
    out, places, ends = _with_headers(containers, np.searchsorted(firsts, starts, "right") - 1)
    for first, end in _portions(counts):
        _write_bodies(out, positions, begins, containers.part(first, end), places[first:end])
    return [out[start:end].tobytes() for start, end in pairwise([0, *ends.tolist()])]


@dataclass(slots=True)
class _Containers:
    """For each container: the upper bits of its positions, their start, their number, and the number of runs."""

    blocks: _Ints
    starts: _Ints
    counts: _Ints
    runs: _Ints

    def part(self, first: int, end: int) -> _Containers:
        return _Containers(*(column[first:end] for column in (self.blocks, self.starts, self.counts, self.runs)))

    @property
    def is_run(self) -> _Mask:
        smaller: _Mask = 2 + 4 * self.runs < np.minimum(2 * self.counts, BITS_BYTES)
        return smaller

    @property
    def is_bits(self) -> _Mask:
        large: _Mask = ~self.is_run & (self.counts > LARGEST_ARRAY)
        return large

    @property
    def sizes(self) -> _Ints:
        """The bytes of each."""
        sizes: _Ints = np.where(self.is_run, 2 + 4 * self.runs, np.minimum(2 * self.counts, BITS_BYTES))
        return sizes


def _with_headers(containers: _Containers, owners: _Ints) -> tuple[npt.NDArray[np.uint8], _Ints, _Ints]:
    """An array of bytes with all headers, the place of each container's body, and the end of each set of positions.

    ``owners`` holds the number of each container's set; sets are numbered from 0 without a gap.
    """
    keys, is_run, sizes = containers.blocks >> 16, containers.is_run, containers.sizes
    firsts = np.concatenate(([0], np.flatnonzero((np.diff(keys) != 0) | (np.diff(owners) != 0)) + 1))
    number = np.diff(firsts, append=len(keys))
    has_runs = np.logical_or.reduceat(is_run, firsts)
    has_offsets = ~has_runs | (number >= OFFSETS_FROM)
    # After the cookie: a bit for each container if there are runs, else the number of containers.
    flags = np.where(has_runs, (number + 7) // 8, 4)
    header = 4 + flags + 4 * number + np.where(has_offsets, 4 * number, 0)
    whole = header + np.add.reduceat(sizes, firsts)
    # Each set begins with the number of its bitmaps, and each bitmap with its key.
    owner = owners[firsts]
    bitmaps = np.bincount(owner)
    ends = 8 * (owner + 1) + np.cumsum(4 + whole)
    starts = ends - whole
    set_ends = ends[np.cumsum(bitmaps) - 1]

    bitmap = np.repeat(np.arange(len(firsts)), number)
    ordinal = np.arange(len(keys)) - firsts[bitmap]
    before = np.cumsum(sizes) - sizes
    inside = header[bitmap] + before - before[firsts][bitmap]

    out = np.zeros(int(ends[-1]), np.uint8)
    heads = starts[bitmap] + 4 + flags[bitmap] + 4 * ordinal
    listed = has_offsets[bitmap]
    _put(out, (heads + 4 * number[bitmap])[listed], inside[listed], 4)
    _put(out, heads, containers.blocks & 0xFFFF | containers.counts - 1 << 16, 4)
    np.bitwise_or.at(out, (starts[bitmap] + 4 + (ordinal >> 3))[is_run], (1 << (ordinal & 7)).astype(np.uint8)[is_run])
    _put(out, starts[~has_runs] + 4, number[~has_runs], 4)
    _put(out, starts, np.where(has_runs, WITH_RUNS | (number - 1) << 16, PLAIN), 4)
    _put(out, starts - 4, keys[firsts], 4)
    _put(out, np.concatenate(([0], set_ends[:-1])), bitmaps, 8)
    return out, starts[bitmap] + inside, set_ends


def _portions(counts: _Ints) -> Iterator[tuple[int, int]]:
    """Ranges of containers to be written together: the index of the first container, and one after the last."""
    totals = np.cumsum(counts)
    first, before = 0, 0
    while first < len(counts):
        end = max(first + 1, int(np.searchsorted(totals, before + _AT_ONCE, "right")))
        yield first, end
        first, before = end, int(totals[end - 1])


def _write_bodies(
    out: npt.NDArray[np.uint8], positions: Positions, begins: _Mask, containers: _Containers, places: _Ints
) -> None:
    counts, is_run, is_bits = containers.counts, containers.is_run, containers.is_bits
    start, end = int(containers.starts[0]), int(containers.starts[-1] + counts[-1])
    values = positions[start:end] & 0xFFFF
    first = np.cumsum(counts) - counts
    is_array = ~(is_run | is_bits)
    if is_array.all() and places[-1] - places[0] == 2 * first[-1]:
        # Bodies follow each other directly, without headers between them.
        out[places[0] : places[0] + 2 * len(values)] = values.astype("<u2").view(np.uint8)
    elif is_array.any():
        chosen = np.repeat(is_array, counts)
        at = np.repeat(places - 2 * first, counts) + 2 * np.arange(len(values))
        _put(out, at[chosen], values[chosen], 2)
    if is_run.any():
        runs = containers.runs
        heads = np.flatnonzero(begins[start:end])
        lengths = np.diff(heads, append=len(values))
        chosen = np.repeat(is_run, runs)
        at = np.repeat(places + 2 - 4 * (np.cumsum(runs) - runs), runs) + 4 * np.arange(len(heads))
        _put(out, at[chosen], (values[heads] | lengths - 1 << 16)[chosen], 4)
        _put(out, places[is_run], runs[is_run], 2)
    for one in np.flatnonzero(is_bits).tolist():
        bits = np.zeros(1 << 16, np.uint8)
        bits[values[first[one] : first[one] + counts[one]]] = 1
        out[places[one] : places[one] + BITS_BYTES] = np.packbits(bits, bitorder="little")


def _put(out: npt.NDArray[np.uint8], places: _Ints, numbers: Any, width: int) -> None:
    """Write each number, little endian, to its place."""
    for byte in range(width):
        out[places + byte] = numbers >> 8 * byte & 0xFF
