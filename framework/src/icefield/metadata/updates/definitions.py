"""Updates of the schemas, partition specs and sort orders.

``choose_schema``, ``choose_spec`` and ``choose_sort_order`` name an object that the table has already by its id. Adding
it again would add nothing, and a service that reads -1 as the last addition, as Java does, would then refuse -1. A new
object is sent under the id that it gets.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from icefield.errors import InvalidArgument
from icefield.metadata.entries import Int
from icefield.metadata.json_array import JsonArray
from icefield.metadata.table_metadata import TableMetadata
from icefield.metadata.updates.base import LAST_ADDED, LastAdded, TableDrafts, TableUpdate
from icefield.metadata.validation import check_spec
from icefield.partitioning import PartitionSpec, SortOrder
from icefield.partitioning.sort_order import UNSORTED_ORDER_ID, validate_order
from icefield.schema import Schema, check_schema


@dataclass(frozen=True, slots=True)
class AddSchema:
    """Add a schema under the next free id; an identical one is not added again. Its field ids are final.

    ``last_column_id`` may state that higher ids were assigned already.
    """

    schema: Schema
    last_column_id: int | None = None
    action: ClassVar[str] = "add-schema"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        check_schema(self.schema, metadata.format_version, known=metadata.schemas)
        stated = metadata.last_column_id if self.last_column_id is None else self.last_column_id
        if stated < metadata.last_column_id:
            raise InvalidArgument(f"last column id {stated} is below {metadata.last_column_id}, which was given out")
        highest = max(stated, self.schema.highest_field_id)
        known = metadata.schemas.alike(self.schema)
        if known is not None:
            change.schemas.found(known.schema_id)
            return metadata if highest == metadata.last_column_id else replace(metadata, last_column_id=highest)
        added = self.schema.with_schema_id(metadata.schemas.next_id())
        change.schemas.add(added.schema_id)
        return replace(metadata, schemas=change.extended(metadata.schemas, added), last_column_id=highest)


@dataclass(frozen=True, slots=True)
class SetCurrentSchema:
    """Make a schema of the table the current one; -1 means the last schema added."""

    schema_id: Int = LAST_ADDED
    action: ClassVar[str] = "set-current-schema"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        chosen = _chosen(metadata, self.schema_id, change.schemas, metadata.schemas, "schema", "current")
        return metadata if chosen == metadata.current_schema_id else replace(metadata, current_schema_id=chosen)


@dataclass(frozen=True, slots=True)
class RemoveSchemas:
    """Remove schemas that nothing refers to any more; the current one cannot go."""

    schema_ids: Collection[Int]
    action: ClassVar[str] = "remove-schemas"

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema_ids", frozenset(self.schema_ids))

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        if metadata.current_schema_id in self.schema_ids:
            raise InvalidArgument(f"schema {metadata.current_schema_id} is current and cannot be removed")
        left = change.dropped(metadata.schemas, self.schema_ids)
        return metadata if left is metadata.schemas else replace(metadata, schemas=left)


@dataclass(frozen=True, slots=True)
class AddPartitionSpec:
    """Add a spec of the current schema's columns under the next free id; an equivalent one is not added again."""

    spec: PartitionSpec
    action: ClassVar[str] = "add-spec"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        known = metadata.partition_specs.alike(self.spec)
        if known is not None:
            change.specs.found(known.spec_id, after_any=True)
            return metadata
        check_spec(self.spec, _bound_to(metadata, change), metadata.format_version)
        added = PartitionSpec(*self.spec.fields, spec_id=metadata.partition_specs.next_id())
        change.specs.add(added.spec_id)
        return replace(
            metadata,
            partition_specs=change.extended(metadata.partition_specs, added),
            last_partition_id=max(metadata.last_partition_id, added.last_assigned_field_id),
        )


@dataclass(frozen=True, slots=True)
class SetDefaultSpec:
    """Make a spec of the table the default for new files; -1 means the last spec added."""

    spec_id: Int = LAST_ADDED
    action: ClassVar[str] = "set-default-spec"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        specs = metadata.partition_specs
        chosen = _chosen(metadata, self.spec_id, change.specs, specs, "partition spec", "the default")
        return metadata if chosen == metadata.default_spec_id else replace(metadata, default_spec_id=chosen)


@dataclass(frozen=True, slots=True)
class RemovePartitionSpecs:
    """Remove specs that no manifest refers to any more; the default one cannot go."""

    spec_ids: Collection[Int]
    action: ClassVar[str] = "remove-partition-specs"

    def __post_init__(self) -> None:
        object.__setattr__(self, "spec_ids", frozenset(self.spec_ids))

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        if metadata.default_spec_id in self.spec_ids:
            raise InvalidArgument(f"partition spec {metadata.default_spec_id} is the default and cannot be removed")
        left = change.dropped(metadata.partition_specs, self.spec_ids)
        return metadata if left is metadata.partition_specs else replace(metadata, partition_specs=left)


@dataclass(frozen=True, slots=True)
class AddSortOrder:
    """Add a sort order under the next free id, or 0 without fields; an identical one is not added again."""

    sort_order: SortOrder
    action: ClassVar[str] = "add-sort-order"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        known = metadata.sort_orders.alike(self.sort_order)
        if known is not None:
            change.orders.found(known.order_id, after_any=True)
            return metadata
        validate_order(self.sort_order, _bound_to(metadata, change))
        added = _numbered(self.sort_order, metadata)
        change.orders.add(added.order_id)
        return replace(metadata, sort_orders=change.extended(metadata.sort_orders, added))


@dataclass(frozen=True, slots=True)
class SetDefaultSortOrder:
    """Make a sort order of the table the default for writers; -1 means the last sort order added."""

    sort_order_id: Int = LAST_ADDED
    action: ClassVar[str] = "set-default-sort-order"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        orders = metadata.sort_orders
        chosen = _chosen(metadata, self.sort_order_id, change.orders, orders, "sort order", "the default")
        return metadata if chosen == metadata.default_sort_order_id else replace(metadata, default_sort_order_id=chosen)


def choose_schema(metadata: TableMetadata, schema: Schema, last_column_id: int) -> tuple[TableUpdate, ...]:
    """The updates that make a schema with final field ids current; none if it is current already."""
    if schema == metadata.schema():
        return ()
    known = metadata.schemas.alike(schema)
    if known is not None:
        return (SetCurrentSchema(known.schema_id),)
    added = schema.with_schema_id(metadata.schemas.next_id())
    return AddSchema(added, last_column_id), SetCurrentSchema(LAST_ADDED)


def choose_spec(metadata: TableMetadata, spec: PartitionSpec) -> tuple[TableUpdate, ...]:
    """The updates that make a spec with final field ids the default; none if it is the default already."""
    if spec.compatible_with(metadata.spec()):
        return ()
    known = metadata.partition_specs.alike(spec)
    if known is not None:
        return (SetDefaultSpec(known.spec_id),)
    added = PartitionSpec(*spec.fields, spec_id=metadata.partition_specs.next_id())
    return AddPartitionSpec(added), SetDefaultSpec(LAST_ADDED)


def choose_sort_order(metadata: TableMetadata, order: SortOrder) -> tuple[TableUpdate, ...]:
    """The updates that make a sort order the default; none if it is the default already."""
    if order.same_as(metadata.sort_order()):
        return ()
    known = metadata.sort_orders.alike(order)
    if known is not None:
        return (SetDefaultSortOrder(known.order_id),)
    return AddSortOrder(_numbered(order, metadata)), SetDefaultSortOrder(LAST_ADDED)


def _chosen(metadata: TableMetadata, given: int, added: LastAdded, array: JsonArray[Any], what: str, to: str) -> int:
    """The id that an update chooses. Raises ``InvalidArgument`` if the table does not have it."""
    chosen = added.chosen(given)
    if chosen is None:
        raise InvalidArgument(
            f"table {metadata.location}: -1 stands for the {what} that the change added last, and it has added none; "
            "name one that the table has by its id"
        )
    if not array.has(chosen):
        raise InvalidArgument(f"table {metadata.location} has no {what} {given} to make {to}")
    return chosen


def _bound_to(metadata: TableMetadata, change: TableDrafts) -> Schema:
    """The schema that a new spec or sort order is made for: the current one, or the first of a new table."""
    first, current = change.schemas.first, metadata.current_schema_id
    return metadata.schema_by_id(first if current < 0 and first is not None else current)


def _numbered(order: SortOrder, metadata: TableMetadata) -> SortOrder:
    """A sort order under the next free id. 0 is reserved for the order without fields, even if it is not stored."""
    if not order.fields:
        return SortOrder(order_id=UNSORTED_ORDER_ID)
    return SortOrder(*order.fields, order_id=max(metadata.sort_orders.next_id(), UNSORTED_ORDER_ID + 1))
