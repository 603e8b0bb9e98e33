"""What a strategy is: the order of the rows of a group."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

SLICE_ROWS: Final = 1 << 18
"""How many rows of a sorted group are put together at a time."""


class Ordering(ABC):
    """Brings the rows of a group into an order. ``sort_order_id`` is that of the table which the order is, if any."""

    sort_order_id: int | None = None

    @abstractmethod
    def rows(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of the batches, which are of the schema, in the order."""


def taken(table: pa.Table, rows: pa.Array) -> Iterator[pa.RecordBatch]:
    """Rows of a table by their positions, a slice at a time, so that there is no second copy of all."""
    table = table.combine_chunks()  # a chunk again for each 2 GiB of strings
    for start in range(0, len(rows), SLICE_ROWS):
        yield from table.take(rows.slice(start, SLICE_ROWS)).combine_chunks().to_batches()
