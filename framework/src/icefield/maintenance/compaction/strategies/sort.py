"""Sorting by a sort order, the table's or another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from icefield.errors import InvalidArgument
from icefield.maintenance.compaction.strategies.ordering import Ordering, taken
from icefield.metadata import TableMetadata
from icefield.partitioning.sort_order import SortField, SortOrder, sort_indices, validate_order
from icefield.schema import Schema


class Sort(Ordering):
    """Sorts the rows of a group in memory. New files state the order's id where the table has the order."""

    def __init__(self, metadata: TableMetadata, given: SortOrder | Sequence[str] | None) -> None:
        """``given``: a sort order, or columns as ``"name"``, ``"name desc"`` or ``"name desc nulls-first"``."""
        self._schema = metadata.schema()
        if given is None:
            order = metadata.sort_order()
        else:
            order = given if isinstance(given, SortOrder) else order_of_columns(given, self._schema)
        if order.is_unsorted:
            raise InvalidArgument("there is nothing to sort by: the table has no sort order; give sort_order=")
        validate_order(order, self._schema)
        self._order = order
        known = (one.order_id for one in metadata.sort_orders if one.same_as(order))
        self.sort_order_id = next(known, None)

    def rows(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows, sorted; those with equal keys stay as they were."""
        table = pa.Table.from_batches(batches, schema)
        return taken(table, sort_indices(self._order, self._schema, table))


def order_of_columns(columns: Sequence[str], schema: Schema) -> SortOrder:
    """The sort order that strings state. Raises ``InvalidArgument`` for a column that is not there."""
    fields = []
    for column in columns:
        words = column.split()
        if not 1 <= len(words) <= 3:
            raise InvalidArgument(f"a sort key is 'column', 'column desc' or 'column desc nulls-last', not {column!r}")
        source = schema.find_field(words[0])
        direction = words[1] if len(words) > 1 else "asc"
        nulls = words[2] if len(words) > 2 else None
        fields.append(SortField(source.field_id, "identity", direction, nulls))  # type: ignore[arg-type]
    return SortOrder(*fields)
