"""Metadata tables, and scans of them: some of the rows and columns, as one table or as a stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from icefield.catalog.inspection.selection import MetadataSelection
from icefield.expressions import AlwaysFalse, BooleanExpression

INSTANT: Final = pa.timestamp("us", "UTC")
"""The type of every time."""


class MetadataTable(ABC):
    """A metadata table. The columns of ``schema`` have the names and types of Java's."""

    schema: pa.Schema

    @abstractmethod
    def batches(self, selection: MetadataSelection) -> Iterator[pa.RecordBatch]:
        """The selected rows and columns, in batches. A batch may be empty."""


class MetadataScan:
    """Some rows and columns of a metadata table. Each call reads them again; creating the scan reads nothing.

    Any library that reads an Arrow stream accepts a scan: ``polars.from_arrow``, DuckDB, ``pandas``.
    """

    def __init__(
        self,
        table: MetadataTable,
        row_filter: BooleanExpression | str,
        selected_fields: str | tuple[str, ...],
        case_sensitive: bool,
    ) -> None:
        self._table = table
        self._given = (row_filter, case_sensitive)
        self._selection = MetadataSelection(table.schema, row_filter, selected_fields, case_sensitive)

    def __repr__(self) -> str:
        return f"MetadataScan({', '.join(self.schema.names)})"

    @property
    def schema(self) -> pa.Schema:
        """The columns that the scan gives."""
        return self._selection.schema

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of batches, in memory that does not depend on the number of rows.

        Raises ``InvalidMetadata`` when it reaches a damaged manifest or manifest list.
        """
        return pa.RecordBatchReader.from_batches(self.schema, self._batches(self._selection))

    def to_arrow(self) -> pa.Table:
        """The rows as one table."""
        return self.to_arrow_batch_reader().read_all()

    def count(self) -> int:
        """The number of rows. Reads only the columns of the filter, or one column without a filter."""
        row_filter, case_sensitive = self._given
        name = (self._selection.tested.names or self._table.schema.names)[0]
        only = MetadataSelection(self._table.schema, row_filter, (name,), case_sensitive)
        return sum(batch.num_rows for batch in self._batches(only))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The rows for another library, by Arrow's stream interface."""
        return self.to_arrow_batch_reader().__arrow_c_stream__(requested_schema)

    def _batches(self, selection: MetadataSelection) -> Iterator[pa.RecordBatch]:
        if isinstance(selection.row_filter, AlwaysFalse):  # the types of the columns rule out any match
            return iter(())
        return (batch for batch in self._table.batches(selection) if batch.num_rows)
