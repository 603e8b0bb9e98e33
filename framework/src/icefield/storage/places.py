"""Sets of files as 64-bit hashes of their canonical locations.

Two locations that may be one file count as one: an orphan may stay, but no file is deleted that is still referenced.
For the same reason a hash is enough: a collision costs one orphan at most, once in some 10^19 pairs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.storage.canonical import CanonicalLocations
from icefield.storage.hashing import path_hashes

Hashes = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]


class HashedLocations(CanonicalLocations):
    """The canonical locations of files for one file IO, and their hashes."""

    def hashes(self, locations: pa.StringArray) -> Hashes:
        """A hash of each file; no location may be null."""
        return path_hashes(self.column(locations))


class LocationSet:
    """A growing set of hashes: sorted runs, each at least twice as long as the next."""

    def __init__(self) -> None:
        self._runs: list[Hashes] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def copy(self) -> LocationSet:
        """A copy that grows independently."""
        made = LocationSet()
        made._runs = [*self._runs]  # the runs themselves never change
        return made

    def has(self, hashes: Hashes) -> Mask:
        """A mask of the hashes that are in the set."""
        found = np.zeros(len(hashes), np.bool_)
        for run in self._runs:
            found |= is_in(hashes, run)
        return found

    def add_new(self, hashes: Hashes) -> npt.NDArray[np.int64]:
        """Add hashes; the positions of the new ones, each once, in order."""
        distinct, first = np.unique(hashes, return_index=True)
        new = ~self.has(distinct)
        self._add(distinct[new])
        return np.sort(first[new])

    def sorted(self) -> Hashes:
        """All hashes, as one run."""
        while len(self._runs) > 1:
            self._merge()
        return self._runs[0] if self._runs else np.zeros(0, np.uint64)

    def _add(self, run: Hashes) -> None:
        if not len(run):
            return
        self._runs.append(run)
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            self._merge()

    def _merge(self) -> None:
        merged = np.concatenate([self._runs.pop(), self._runs.pop()])
        merged.sort(kind="stable")  # a stable sort merges sorted runs
        self._runs.append(merged)


def is_in(hashes: Hashes, run: Hashes) -> Mask:
    """A mask of the hashes that are in a sorted run."""
    if not len(run):
        return np.zeros(len(hashes), np.bool_)
    at = np.searchsorted(run, hashes)
    at[at == len(run)] = 0
    found: Mask = run[at] == hashes
    return found
