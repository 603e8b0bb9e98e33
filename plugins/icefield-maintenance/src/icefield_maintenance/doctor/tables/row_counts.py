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
        self._hashes, self._counts = bytearray(), bytearray()
        self._is_sorted = True

    def add(self, hashes: Hashes, counts: _Counts) -> None:
        """Add files, by the ``path_hashes`` of their locations."""
        self._hashes += hashes.data
        self._counts += counts.data
        self._is_sorted = False

    def find(self, locations: Sequence[str]) -> _Counts:
        """The number of rows of each data file, or -1 for a location that is no data file."""
        wanted = path_hashes(pa.array(locations, pa.string()))
        known, rows = np.frombuffer(self._hashes, np.uint64), np.frombuffer(self._counts, np.int64)
        if not self._is_sorted:
            order = np.argsort(known, kind="stable")  # of equal hashes, the first comes first
            for numbers in (known, rows):
                numbers[:] = numbers[order]
            self._is_sorted = True
        found: _Counts = np.full(len(wanted), -1, np.int64)
        if len(known):
            at = np.searchsorted(known, wanted)
            at[at == len(known)] = 0
            is_known = known[at] == wanted
            found[is_known] = rows[at[is_known]]
        return found
