"""The interface of metadata tables: a schema, and rows in batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from icefield.catalog.inspection.selection import MetadataSelection
from icefield.errors import InvalidMetadata

INSTANT: Final = pa.timestamp("us", "UTC")
"""The type of every time."""


class MetadataTable(ABC):
    """A metadata table. The columns of ``schema`` have the names and types of Java's."""

    schema: pa.Schema

    @abstractmethod
    def batches(self, selection: MetadataSelection) -> Iterator[pa.RecordBatch]:
        """The selected rows and columns, in batches. A batch may be empty."""


class RowsTable(MetadataTable):
    """A metadata table with few rows, such as one per snapshot, ref or metadata file."""

    def batches(self, selection: MetadataSelection) -> Iterator[pa.RecordBatch]:
        rows = pa.Table.from_pylist(self.rows(), schema=self.schema)
        for batch in rows.to_batches():
            yield selection.of(batch)

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """The rows as dictionaries by column name."""


def instant(milliseconds: int) -> int:
    """A time of table metadata (ms since 1970 UTC) in microseconds. Raises ``InvalidMetadata`` beyond any timestamp."""
    if abs(milliseconds) > (2**63 - 1) // 1000:
        raise InvalidMetadata(f"the table metadata has the time {milliseconds} ms, which no timestamp holds")
    return milliseconds * 1000


def instants(milliseconds: Sequence[int | None] | Any) -> pa.Array:
    """Times of table metadata as a column; null stays null. Raises ``InvalidMetadata`` beyond any timestamp."""
    try:
        times = pc.multiply_checked(pa.array(milliseconds, pa.int64()), 1000)
    except pa.ArrowInvalid as error:
        raise InvalidMetadata("the table metadata has a time that no timestamp holds") from error
    return times.cast(INSTANT)
