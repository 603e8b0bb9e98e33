"""Changing the order that writers should sort rows in. Files that exist stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from icefield.metadata import TableMetadata
from icefield.metadata.requirements import AssertCurrentSchemaId, AssertDefaultSortOrderId
from icefield.metadata.updates import choose_sort_order
from icefield.partitioning import NullOrder
from icefield.partitioning.sort_evolution import SortOrderUpdate
from icefield.partitioning.transforms import Transform
from icefield.schema.schema import FieldName
from icefield.transaction.action import Action, ActionContext, Changes


class UpdateSortOrder(Action):
    """Replace the sort order, key by key, the most significant first; without keys the table becomes unsorted.

    Fails when another commit changed the schema or the order meanwhile.
    """

    def __init__(self, stage: Callable[[Action], None], base: TableMetadata, case_sensitive: bool = True) -> None:
        super().__init__(stage)
        self._update = SortOrderUpdate(base.sort_orders, base.schema(), case_sensitive=case_sensitive)
        self._requirements = (
            AssertCurrentSchemaId(base.current_schema_id),
            AssertDefaultSortOrderId(base.default_sort_order_id),
        )

    def asc(
        self,
        source_column_name: FieldName,
        transform: str | Transform = "identity",
        null_order: NullOrder | str | None = None,
    ) -> Self:
        """Add a key, smallest values first; nulls first by default."""
        self._update.asc(source_column_name, transform, null_order)
        return self

    def desc(
        self,
        source_column_name: FieldName,
        transform: str | Transform = "identity",
        null_order: NullOrder | str | None = None,
    ) -> Self:
        """Add a key, greatest values first; nulls last by default."""
        self._update.desc(source_column_name, transform, null_order)
        return self

    def apply(self, base: TableMetadata, context: ActionContext) -> Changes:
        """The new default order; an identical order of the table is used again."""
        return Changes(choose_sort_order(base, self._update.apply()), self._requirements)
