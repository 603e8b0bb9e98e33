"""Sorting by a sort order, the table's or another."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from icefield.engine import sort_keys, sort_order_of, validate_order
from icefield.errors import InvalidArgument

from icefield_maintenance.compaction.strategies.external_sort import SortKeys, sorted_rows
from icefield_maintenance.compaction.strategies.ordering import Ordering, OrderingRequest, ReadColumns


class Sort(Ordering):
    """Sorts the rows of a group. New files state the order's id if the order is one of the table's."""

    def __init__(self, request: OrderingRequest) -> None:
        """Raises ``InvalidArgument`` for an order that the table's rows cannot be sorted by."""
        metadata, given = request.metadata, request.sort_order
        self._schema = metadata.schema()
        self._held_bytes = request.held_bytes
        order = metadata.sort_order() if given is None else sort_order_of(given, self._schema)
        if order.is_unsorted:
            raise InvalidArgument("there is nothing to sort by: the table has no sort order; give sort_order=")
        validate_order(order, self._schema)
        self._order = order
        known = (one.order_id for one in metadata.sort_orders if one.same_as(order))
        self.sort_order_id = next(known, None)

    def rows(
        self, batches: Iterator[pa.RecordBatch], schema: pa.Schema, read_columns: ReadColumns
    ) -> Iterator[pa.RecordBatch]:
        """The rows in sorted order. The sort is stable."""
        return sorted_rows(batches, schema, lambda _: self._keys, self._held_bytes)

    def _keys(self, rows: pa.Table) -> SortKeys:
        return SortKeys(*sort_keys(self._order, self._schema, rows, comparable=True))
