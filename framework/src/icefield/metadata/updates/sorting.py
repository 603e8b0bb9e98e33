"""Updates of the sort orders."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from icefield.errors import InvalidArgument
from icefield.metadata.table_metadata import TableMetadata
from icefield.metadata.updates.base import LAST_ADDED, TableDrafts, bound_to, nothing_added
from icefield.partitioning import SortOrder
from icefield.partitioning.sort_order import UNSORTED_ORDER_ID, validate_order


@dataclass(frozen=True, slots=True)
class AddSortOrder:
    """Add a sort order under the next free id, or 0 without fields; an identical one is not added again."""

    sort_order: SortOrder
    action: ClassVar[str] = "add-sort-order"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        known = self.known_to(metadata)
        if known is not None:
            change.orders.found(known.order_id, after_any=True)
            return metadata
        validate_order(self.sort_order, bound_to(metadata, change))
        added = SortOrder(*self.sort_order.fields, order_id=self.next_id(metadata))
        change.orders.add(added.order_id)
        return replace(metadata, sort_orders=change.extended(metadata.sort_orders, added))

    def known_to(self, metadata: TableMetadata) -> SortOrder | None:
        """The identical order that the table has."""
        return metadata.sort_orders.alike(self.sort_order)

    def next_id(self, metadata: TableMetadata) -> int:
        """The id that the order gets as the next one."""
        if not self.sort_order.fields:
            return UNSORTED_ORDER_ID
        # 0 is reserved for the order without fields, even if no such order is stored.
        return max(metadata.sort_orders.next_id(), UNSORTED_ORDER_ID + 1)


@dataclass(frozen=True, slots=True)
class SetDefaultSortOrder:
    """Make a sort order of the table the default for writers; -1 means the last sort order added."""

    sort_order_id: int = LAST_ADDED
    action: ClassVar[str] = "set-default-sort-order"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        chosen = change.orders.chosen(self.sort_order_id)
        if chosen is None:
            raise InvalidArgument(nothing_added("sort order", metadata))
        if not metadata.sort_orders.has(chosen):
            raise InvalidArgument(
                f"table {metadata.location} has no sort order {self.sort_order_id} to make the default"
            )
        return metadata if chosen == metadata.default_sort_order_id else replace(metadata, default_sort_order_id=chosen)
