"""The numbers of rows of data files, by the hashes of their locations: 16 bytes a file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from icefield.storage import Hashes, path_hashes

_Counts = npt.NDArray[np.int64]


class RowCounts:
    """The record count in the first entry of each data file: ``add`` files, then look them up."""

    def __init__(self) -> None:
        self._parts: list[tuple[Hashes, _Counts]] = [(np.zeros(0, np.uint64), np.zeros(0, np.int64))]
        self._is_sorted = True

    def add(self, hashes: Hashes, counts: _Counts) -> None:
        """Add files, by the ``path_hashes`` of their locations."""
        self._parts.append((hashes, counts))
        self._is_sorted = False

    def find(self, locations: Sequence[str]) -> _Counts:
        """The number of rows of each data file, or -1 for a location that is no data file."""
        wanted = path_hashes(pa.array(locations, pa.string()))
        if not self._is_sorted:
            hashes, counts = (np.concatenate(parts) for parts in zip(*self._parts, strict=True))
            distinct, first = np.unique(hashes, return_index=True)
            self._parts, self._is_sorted = [(distinct, counts[first])], True
        ((known, rows),) = self._parts
        found: _Counts = np.full(len(wanted), -1, np.int64)
        if len(known):
            at = np.searchsorted(known, wanted)
            at[at == len(known)] = 0
            is_known = known[at] == wanted
            found[is_known] = rows[at[is_known]]
        return found
