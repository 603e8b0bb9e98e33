"""The base of strategies: the order of the rows of a group."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from icefield.metadata import TableMetadata

ReadColumns = Callable[[Collection[int]], Iterator[pa.RecordBatch]]
"""Reads the rows of a group once more, only the columns of some ids."""


@dataclass(frozen=True, slots=True)
class OrderingRequest:
    """The table to compact, the options for the order, and the bytes of rows that the strategy may hold."""

    metadata: TableMetadata
    sort_order: Any
    """An order in any form that ``create_table`` takes; None for the table's order."""

    zorder_columns: tuple[str, ...]
    held_bytes: int


class Ordering(ABC):
    """Brings the rows of a group into an order. Picklable, since executors of a cluster may write groups.

    ``sort_order_id`` is set if the order is a sort order of the table. ``streams`` says that the rows stream through
    bounded memory, so that groups may be larger.
    """

    sort_order_id: int | None = None
    streams: bool = False

    @abstractmethod
    def rows(
        self, batches: Iterator[pa.RecordBatch], schema: pa.Schema, read_columns: ReadColumns
    ) -> Iterator[pa.RecordBatch]:
        """The rows of the batches, which have the schema, in the order."""
