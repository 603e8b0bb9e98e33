"""Changes how new files are partitioned, and the order that writers should sort rows in.

Files that exist keep their own spec and order.
"""

from __future__ import annotations

from collections.abc import Callable

from icefield.metadata import TableMetadata
from icefield.metadata.requirements import (
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedPartitionId,
)
from icefield.metadata.updates.definitions import choose_sort_order, choose_spec
from icefield.partitioning.sort_evolution import SortOrderUpdate
from icefield.partitioning.spec_evolution import SpecUpdate
from icefield.transaction.action import Action, ActionContext, Changes


class UpdateSpec(Action, SpecUpdate):
    """Add, remove and rename partition fields. Fails when another commit changed the schema or the spec meanwhile."""

    def __init__(self, stage: Callable[[Action], None], base: TableMetadata, case_sensitive: bool = True) -> None:
        super().__init__(stage)
        SpecUpdate.__init__(
            self,
            base.partition_specs,
            base.default_spec_id,
            base.schema(),
            base.last_partition_id,
            base.format_version,
            case_sensitive=case_sensitive,
        )
        self._before = base.spec()
        self._requirements = (
            AssertCurrentSchemaId(base.current_schema_id),
            AssertDefaultSpecId(base.default_spec_id),
            AssertLastAssignedPartitionId(base.last_partition_id),
        )

    def apply(self, base: TableMetadata, context: ActionContext) -> Changes:
        """The new default spec; an equivalent spec of the table is used again."""
        return Changes(choose_spec(base, self.result()), self._requirements)

    def _is_filled(self) -> bool:
        return self.result() != self._before


class UpdateSortOrder(Action, SortOrderUpdate):
    """Replace the sort order, key by key, the most significant first; without keys the table becomes unsorted.

    Fails when another commit changed the schema or the order meanwhile.
    """

    def __init__(self, stage: Callable[[Action], None], base: TableMetadata, case_sensitive: bool = True) -> None:
        super().__init__(stage)
        SortOrderUpdate.__init__(self, base.sort_orders, base.schema(), case_sensitive=case_sensitive)
        self._before = base.sort_order()
        self._requirements = (
            AssertCurrentSchemaId(base.current_schema_id),
            AssertDefaultSortOrderId(base.default_sort_order_id),
        )

    def apply(self, base: TableMetadata, context: ActionContext) -> Changes:
        """The new default order; an identical order of the table is used again."""
        return Changes(choose_sort_order(base, self.result()), self._requirements)

    def _is_filled(self) -> bool:
        return self.result() != self._before
