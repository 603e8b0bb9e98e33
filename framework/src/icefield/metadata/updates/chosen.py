"""The updates that give a table another current schema, default spec or default sort order.

An object that the table has already is named by its id. Adding it again would add nothing, and a service that reads -1
as the last addition, as Java does, would then refuse -1. A new object is sent under the id that it gets.
"""

from __future__ import annotations

from icefield.metadata.table_metadata import TableMetadata
from icefield.metadata.updates.base import LAST_ADDED, TableUpdate
from icefield.metadata.updates.partitioning import AddPartitionSpec, SetDefaultSpec
from icefield.metadata.updates.schemas import AddSchema, SetCurrentSchema
from icefield.metadata.updates.sorting import AddSortOrder, SetDefaultSortOrder
from icefield.partitioning import PartitionSpec, SortOrder
from icefield.schema import Schema


def choose_schema(metadata: TableMetadata, schema: Schema, last_column_id: int) -> tuple[TableUpdate, ...]:
    """The updates that make a schema with final field ids current; none if it is current already."""
    if schema == metadata.schema():
        return ()
    known = AddSchema(schema).known_to(metadata)
    if known is not None:
        return (SetCurrentSchema(known.schema_id),)
    added = schema.with_schema_id(AddSchema.next_id(metadata))
    return AddSchema(added, last_column_id), SetCurrentSchema(LAST_ADDED)


def choose_spec(metadata: TableMetadata, spec: PartitionSpec) -> tuple[TableUpdate, ...]:
    """The updates that make a spec with final field ids the default; none if it is the default already."""
    if spec.compatible_with(metadata.spec()):
        return ()
    known = AddPartitionSpec(spec).known_to(metadata)
    if known is not None:
        return (SetDefaultSpec(known.spec_id),)
    added = PartitionSpec(*spec.fields, spec_id=AddPartitionSpec.next_id(metadata))
    return AddPartitionSpec(added), SetDefaultSpec(LAST_ADDED)


def choose_sort_order(metadata: TableMetadata, order: SortOrder) -> tuple[TableUpdate, ...]:
    """The updates that make a sort order the default; none if it is the default already."""
    if order.same_as(metadata.sort_order()):
        return ()
    adding = AddSortOrder(order)
    known = adding.known_to(metadata)
    if known is not None:
        return (SetDefaultSortOrder(known.order_id),)
    added = SortOrder(*order.fields, order_id=adding.next_id(metadata))
    return AddSortOrder(added), SetDefaultSortOrder(LAST_ADDED)
