"""The updates of table metadata: one frozen value a step, applied together by ``apply_updates``."""

from icefield.metadata.updates.apply import MetadataBuilder, apply_updates
from icefield.metadata.updates.base import LAST_ADDED, TableDrafts, TableUpdate
from icefield.metadata.updates.chosen import choose_schema, choose_sort_order, choose_spec
from icefield.metadata.updates.creation import created_by, creation_updates
from icefield.metadata.updates.encryption import AddEncryptionKey, RemoveEncryptionKey
from icefield.metadata.updates.partitioning import AddPartitionSpec, RemovePartitionSpecs, SetDefaultSpec
from icefield.metadata.updates.refs import RemoveSnapshotRef, SetSnapshotRef
from icefield.metadata.updates.schemas import AddSchema, RemoveSchemas, SetCurrentSchema
from icefield.metadata.updates.shown import not_shown
from icefield.metadata.updates.snapshots import AddSnapshot, RemoveSnapshots
from icefield.metadata.updates.sorting import AddSortOrder, SetDefaultSortOrder
from icefield.metadata.updates.statistics import (
    RemovePartitionStatistics,
    RemoveStatistics,
    SetPartitionStatistics,
    SetStatistics,
)
from icefield.metadata.updates.table import (
    AssignUUID,
    RemoveProperties,
    SetLocation,
    SetProperties,
    UpgradeFormatVersion,
)

__all__ = [
    "LAST_ADDED",
    "AddEncryptionKey",
    "AddPartitionSpec",
    "AddSchema",
    "AddSnapshot",
    "AddSortOrder",
    "AssignUUID",
    "MetadataBuilder",
    "RemoveEncryptionKey",
    "RemovePartitionSpecs",
    "RemovePartitionStatistics",
    "RemoveProperties",
    "RemoveSchemas",
    "RemoveSnapshotRef",
    "RemoveSnapshots",
    "RemoveStatistics",
    "SetCurrentSchema",
    "SetDefaultSortOrder",
    "SetDefaultSpec",
    "SetLocation",
    "SetPartitionStatistics",
    "SetProperties",
    "SetSnapshotRef",
    "SetStatistics",
    "TableDrafts",
    "TableUpdate",
    "UpgradeFormatVersion",
    "apply_updates",
    "choose_schema",
    "choose_sort_order",
    "choose_spec",
    "created_by",
    "creation_updates",
    "not_shown",
]
