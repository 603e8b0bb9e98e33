"""Record batches: row positions, slices, ranges of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icefield.errors import InvalidArgument

POSITION: Final = pa.field("_pos", pa.int64(), nullable=False)
"""The last column of a batch if ``ReadRequest.positions`` is set."""


def with_positions(batch: pa.RecordBatch, first_row: int) -> pa.RecordBatch:
    """The batch with the column ``_pos``: ``first_row`` is the position in the file of its first row."""
    rows = pa.array(np.arange(first_row, first_row + batch.num_rows, dtype=np.int64))
    return pa.RecordBatch.from_arrays([*batch.columns, rows], schema=batch.schema.append(POSITION))


def bounded(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of at most ``rows`` rows, without empty ones; slices, so nothing is copied."""
    if rows < 1:
        raise InvalidArgument(f"a batch of at most {rows} rows cannot be made")
    for batch in batches:
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows) if batch.num_rows > rows else batch


def row_range(batches: Iterable[pa.RecordBatch], start: int, stop: int) -> Iterator[pa.RecordBatch]:
    """The rows from ``start`` up to and without ``stop``, counted over all batches from 0; slices, without empty ones.

    Batches after ``stop`` are not read.
    """
    first = 0
    for batch in batches:
        if first >= stop:
            return
        low, high = max(start - first, 0), min(stop - first, batch.num_rows)
        if low < high:
            yield batch.slice(low, high - low)
        first += batch.num_rows
        if first >= stop:
            return


def all_skipped(skipped: Any, first: int, count: int) -> bool:
    """Whether every one of ``count`` rows from position ``first`` on is among ``ReadRequest.skipped_rows``.

    For formats that spare reading a row group, stripe or block of deleted rows. None skips nothing.
    """
    if skipped is None or count == 0:
        return False
    low, high = np.searchsorted(skipped, (first, first + count))
    return bool(high - low == count)


def bare_batch(rows: int) -> pa.RecordBatch:
    """A batch with rows but without columns, which ``pa.RecordBatch.from_arrays`` cannot make."""
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None]))
