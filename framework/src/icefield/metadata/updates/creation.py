"""The updates that make a new table of nothing, as the REST catalog protocol wants a creation to be written."""

from __future__ import annotations

from icefield.metadata.table_metadata import TableMetadata
from icefield.metadata.updates.base import LAST_ADDED, TableUpdate
from icefield.metadata.updates.partitioning import AddPartitionSpec, SetDefaultSpec
from icefield.metadata.updates.schemas import AddSchema, SetCurrentSchema
from icefield.metadata.updates.sorting import AddSortOrder, SetDefaultSortOrder
from icefield.metadata.updates.table import AssignUUID, SetLocation, SetProperties, UpgradeFormatVersion


def creation_updates(metadata: TableMetadata) -> tuple[TableUpdate, ...]:
    """The updates that lead from nothing to the metadata of a new table, which has no snapshot yet."""
    uuid: tuple[TableUpdate, ...] = () if metadata.table_uuid is None else (AssignUUID(metadata.table_uuid),)
    properties: tuple[TableUpdate, ...] = (SetProperties(metadata.properties),) if metadata.properties else ()
    return (
        *uuid,
        UpgradeFormatVersion(metadata.format_version),
        SetLocation(metadata.location),
        AddSchema(metadata.schema(), metadata.last_column_id),
        SetCurrentSchema(LAST_ADDED),
        AddPartitionSpec(metadata.spec()),
        SetDefaultSpec(LAST_ADDED),
        AddSortOrder(metadata.sort_order()),
        SetDefaultSortOrder(LAST_ADDED),
        *properties,
    )
