"""Updates of the sort orders."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from icefield.errors import InvalidArgument
from icefield.metadata.table_metadata import TableMetadata
from icefield.metadata.updates.base import LAST_ADDED, Change
from icefield.partitioning import SortOrder
from icefield.partitioning.sort_order import UNSORTED_ORDER_ID, validate_order


@dataclass(frozen=True, slots=True)
class AddSortOrder:
    """Add a sort order, under the next free id or that of an identical one; an order without fields has id 0."""

    sort_order: SortOrder
    action: ClassVar[str] = "add-sort-order"

    def apply(self, metadata: TableMetadata, change: Change) -> TableMetadata:
        known = next((order for order in metadata.sort_orders if order.same_as(self.sort_order)), None)
        if known is not None:
            change.last_order_id = known.order_id
            return metadata
        schema_id = metadata.current_schema_id if change.last_schema_id is None else change.last_schema_id
        validate_order(self.sort_order, metadata.schema_by_id(schema_id))
        # 0 is kept for the order without fields, also where no such order is stored.
        highest = max(metadata.sort_orders.positions, default=UNSORTED_ORDER_ID)
        change.last_order_id = max(highest, UNSORTED_ORDER_ID) + 1 if self.sort_order.fields else UNSORTED_ORDER_ID
        added = SortOrder(*self.sort_order.fields, order_id=change.last_order_id)
        return replace(metadata, sort_orders=metadata.sort_orders.extended([added]))


@dataclass(frozen=True, slots=True)
class SetDefaultSortOrder:
    """Make a sort order of the table the one that writers should follow; -1 is the one that was added last."""

    sort_order_id: int = LAST_ADDED
    action: ClassVar[str] = "set-default-sort-order"

    def apply(self, metadata: TableMetadata, change: Change) -> TableMetadata:
        chosen = change.last_order_id if self.sort_order_id == LAST_ADDED else self.sort_order_id
        if chosen is None or chosen not in metadata.sort_orders.positions:
            raise InvalidArgument(
                f"table {metadata.location} has no sort order {self.sort_order_id} to make the default"
            )
        return metadata if chosen == metadata.default_sort_order_id else replace(metadata, default_sort_order_id=chosen)
