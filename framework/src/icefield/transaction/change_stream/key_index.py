"""The keys of rows that a writer has written, and the places of the rows.

Keys are in a few sorted runs of their hashes. A run is united with its neighbour when both have about the same size. So
a batch is looked up in few runs, and each key is moved few times. A hash only finds candidates: the values of keys
decide whether they are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.scan.deletes.keys import Ints, Mask, Words, equal_rows, same_keys
from icefield.writing.ordered_writer import RowPlaces


@dataclass(slots=True)
class _KeyRun:
    """Keys in the order of their hashes; ``live`` marks the keys with a row that was not removed."""

    hashes: Words
    columns: list[pa.Array]
    partitions: Ints
    ordinals: Ints
    live: Mask

    @classmethod
    def of(cls, hashes: Words, columns: Sequence[pa.Array], places: RowPlaces) -> _KeyRun:
        order = np.argsort(hashes, kind="stable")
        taken = pa.array(order)
        return cls(
            hashes[order],
            [column.take(taken) for column in columns],
            places.partitions[order],
            places.ordinals[order],
            np.ones(len(hashes), bool),
        )

    @property
    def nbytes(self) -> int:
        held: int = sum(column.nbytes for column in self.columns)
        return held + sum(part.nbytes for part in (self.hashes, self.partitions, self.ordinals, self.live))

    def find(self, hashes: Words, columns: Sequence[pa.Array]) -> tuple[Ints, Ints]:
        """The indices of the given keys that have a live row here, and their places in the run."""

        def equal(rows: Ints, places: Ints) -> Mask:
            good = self.live[places]
            if good.any():
                good[good] = equal_rows(columns, self.columns, rows[good], places[good])
            return good

        return same_keys(hashes, np.arange(len(hashes)), self.hashes, equal)

    def kept(self) -> _KeyRun:
        """The run without the keys of removed rows."""
        if self.live.all():
            return self
        rows = np.flatnonzero(self.live)
        columns = [column.take(pa.array(rows)) for column in self.columns]
        return _KeyRun(self.hashes[rows], columns, self.partitions[rows], self.ordinals[rows], self.live[rows])

    def united(self, other: _KeyRun) -> _KeyRun:
        """The keys of both runs."""
        mine, theirs = self.kept(), other.kept()
        places = RowPlaces(
            np.concatenate((mine.partitions, theirs.partitions)), np.concatenate((mine.ordinals, theirs.ordinals))
        )
        columns = [pa.concat_arrays(pair) for pair in zip(mine.columns, theirs.columns, strict=True)]
        return _KeyRun.of(np.concatenate((mine.hashes, theirs.hashes)), columns, places)


class KeyIndex:
    """The keys of written rows; each key has at most one live row."""

    def __init__(self) -> None:
        self._runs: list[_KeyRun] = []
        self._gone: list[RowPlaces] = []

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the keys take."""
        return sum(run.nbytes for run in self._runs) + sum(2 * part.ordinals.nbytes for part in self._gone)

    def add(self, hashes: Words, columns: Sequence[pa.Array], places: RowPlaces) -> None:
        """Add keys that have no row so far, each once."""
        if not len(hashes):
            return
        self._runs.append(_KeyRun.of(hashes, columns, places))
        while len(self._runs) > 1 and len(self._runs[-2].hashes) < 2 * len(self._runs[-1].hashes):
            self._runs[-2:] = [self._runs[-2].united(self._runs[-1])]

    def remove(self, hashes: Words, columns: Sequence[pa.Array]) -> npt.NDArray[np.bool_]:
        """Remove the rows of some keys, each given once; a mask of the keys that had a row."""
        had = np.zeros(len(hashes), bool)
        for run in self._runs:
            rows, places = run.find(hashes, columns)
            had[rows] = True
            run.live[places] = False
            self._gone.append(RowPlaces(run.partitions[places], run.ordinals[places]))
        return had

    def gone(self) -> RowPlaces:
        """The places of the removed rows."""
        none = [np.zeros(0, np.int64)]
        return RowPlaces(
            np.concatenate([part.partitions for part in self._gone] or none),
            np.concatenate([part.ordinals for part in self._gone] or none),
        )
