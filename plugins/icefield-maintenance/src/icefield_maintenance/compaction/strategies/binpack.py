"""Packing: rows in the order of their files."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from icefield_maintenance.compaction.strategies.ordering import Ordering, OrderingRequest, ReadColumns


class BinPack(Ordering):
    """Leaves the rows as they come, so that they stream through bounded memory."""

    streams = True

    def __init__(self, request: OrderingRequest) -> None:
        """Packing takes no options."""

    def rows(
        self, batches: Iterator[pa.RecordBatch], schema: pa.Schema, read_columns: ReadColumns
    ) -> Iterator[pa.RecordBatch]:
        """The batches themselves."""
        return batches
