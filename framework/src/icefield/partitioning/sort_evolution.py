"""Changing the order that a table's files should be sorted in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from icefield.partitioning.sort_order import (
    INITIAL_ORDER_ID,
    UNSORTED,
    NullOrder,
    SortDirection,
    SortField,
    SortOrder,
    validate_order,
)
from icefield.partitioning.transforms import Transform
from icefield.schema import Schema
from icefield.schema.schema import FieldName


class SortOrderUpdate:
    """Collects the keys of a new sort order, in order; ``result`` returns the sort order. Changes nothing itself.

    ``orders`` are all sort orders of the table. An update without keys leads to the unsorted order. Methods raise
    ``InvalidSchema`` or ``InvalidArgument`` for an invalid key.
    """

    def __init__(self, orders: Iterable[SortOrder], schema: Schema, *, case_sensitive: bool = True) -> None:
        self._orders = tuple(orders)
        self._schema = schema
        self._case_sensitive = case_sensitive
        self._fields: list[SortField] = []

    def asc(
        self,
        source_column_name: FieldName | int,
        transform: str | Transform = "identity",
        null_order: NullOrder | str | None = None,
    ) -> Self:
        """Add a key, smallest values first; nulls first by default."""
        return self._add(source_column_name, transform, SortDirection.ASC, null_order)

    def desc(
        self,
        source_column_name: FieldName | int,
        transform: str | Transform = "identity",
        null_order: NullOrder | str | None = None,
    ) -> Self:
        """Add a key, greatest values first; nulls last by default."""
        return self._add(source_column_name, transform, SortDirection.DESC, null_order)

    def _add(
        self,
        source: FieldName | int,
        transform: str | Transform,
        direction: SortDirection,
        null_order: NullOrder | str | None,
    ) -> Self:
        column = self._schema.find_field(source, self._case_sensitive)
        field = SortField(column.field_id, transform, direction, null_order)  # type: ignore[arg-type]
        validate_order(SortOrder(field), self._schema)
        self._fields.append(field)
        return self

    def result(self) -> SortOrder:
        """The order: an identical one of the table's own, else a new one with the next id; the first has id 1."""
        if not self._fields:
            return UNSORTED
        candidate = SortOrder(*self._fields)
        for order in self._orders:
            if order.same_as(candidate):
                return order
        highest = max((order.order_id for order in self._orders), default=0)
        return SortOrder(*self._fields, order_id=max(highest + 1, INITIAL_ORDER_ID))
