"""The base of strategies: the order of the rows of a group."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator

import pyarrow as pa

ReadColumns = Callable[[Collection[int]], Iterator[pa.RecordBatch]]
"""Reads the rows of a group once more, only the columns of some ids."""


class Ordering(ABC):
    """Brings the rows of a group into an order. ``sort_order_id`` is set if the order is a sort order of the table."""

    sort_order_id: int | None = None

    @abstractmethod
    def rows(
        self, batches: Iterator[pa.RecordBatch], schema: pa.Schema, read_columns: ReadColumns
    ) -> Iterator[pa.RecordBatch]:
        """The rows of the batches, which have the schema, in the order."""
