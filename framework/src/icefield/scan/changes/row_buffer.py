"""A buffer of rows to compare, in memory or, for many rows, in temporary files by hash.

The two copies of a carried-over row mostly arrive close together, and are dropped early by compaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final

import numpy as np
import pyarrow as pa

from icefield.scan.deletes.keys import Words
from icefield.scan.temporary_batches import TemporaryBatches

_MOST_FILES: Final = 256
_SHARE: Final = 4
"""A temporary file should hold a quarter of the memory limit: comparing rows needs more memory than the rows."""

_COMPACTED: Final = 8
"""Rows are first compacted when they fill an eighth of the memory limit."""

Hashes = Callable[[pa.RecordBatch], Words | None]
Compact = Callable[[pa.Table], pa.RecordBatch]


class RowBuffer(ExitStack):
    """Batches of one schema, returned in parts such that rows with equal hashes are in one part.

    ``compact`` drops rows that are not needed. ``hashes`` returns a hash for each row, or None if the rows cannot be
    hashed: then all rows stay in memory. When ``held_bytes`` are reached and compaction leaves more than half of them,
    rows go to temporary files. Their number depends on ``expected_rows``.
    """

    def __init__(
        self, schema: pa.Schema, compact: Compact, hashes: Hashes, held_bytes: int, expected_rows: int
    ) -> None:
        super().__init__()
        self._schema = schema
        self._compact = compact
        self._hashes = hashes
        self._next = held_bytes // _COMPACTED
        self._come = 0
        self._most = held_bytes
        self._expected = expected_rows
        self._held: list[pa.RecordBatch] = []
        self._bytes = 0
        self._spilled = self.enter_context(TemporaryBatches(schema))

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch."""
        if self._spilled:
            self._spill(batch)
            return
        self._held.append(batch)
        self._bytes += batch.nbytes
        self._come += batch.num_rows
        if self._bytes <= self._next:
            return
        left = self._compact(pa.Table.from_batches(self._held, schema=self._schema))
        self._held, self._bytes = [left], left.nbytes
        self._next = max(self._next, min(2 * self._bytes, self._most))
        if 2 * self._bytes > self._most and self._hashes(left.slice(0, 1)) is not None:
            self._open(left.num_rows / self._come)
            for held in self._held:
                self._spill(held)
            self._held = []

    def parts(self) -> Iterator[pa.Table]:
        """All rows in parts; each part keeps the order of arrival."""
        if not self._spilled:
            yield pa.Table.from_batches(self._held, schema=self._schema)
            return
        for number in range(len(self._spilled)):
            self._spilled.end(number)
        for number in range(len(self._spilled)):
            yield pa.Table.from_batches(self._spilled.read(number), schema=self._schema)

    def _open(self, share: float) -> None:
        rows = self._held[0].num_rows
        total = self._bytes * max(1.0, self._expected * share / max(1, rows))
        count = int(min(_MOST_FILES, max(2, -(-total * _SHARE // max(1, self._most)))))
        for _ in range(count):
            self._spilled.begin()

    def _spill(self, batch: pa.RecordBatch) -> None:
        hashes = self._hashes(batch)
        assert hashes is not None
        files = (hashes >> np.uint64(32)) % np.uint64(len(self._spilled))
        order = np.argsort(files, kind="stable")
        rows = batch.take(pa.array(order))
        ends = np.cumsum(np.bincount(files.astype(np.int64), minlength=len(self._spilled)))
        start = 0
        for number, end in enumerate(ends.tolist()):
            if end > start:
                self._spilled.write(number, rows.slice(start, end - start))
            start = end
