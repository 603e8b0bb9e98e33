"""A check of updates against a table's metadata, which tells whether a service made the requested updates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from icefield.metadata import (
    AddEncryptionKey,
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    RemoveEncryptionKey,
    RemovePartitionSpecs,
    RemovePartitionStatistics,
    RemoveProperties,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetPartitionStatistics,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
    TableMetadata,
    TableUpdate,
    UpgradeFormatVersion,
)

FORMAT_VERSION: Final = "format-version"
"""The property that sets the format version when a table is created or changed; it is not stored."""


def not_shown(updates: Iterable[TableUpdate], expected: TableMetadata, found: TableMetadata) -> dict[str, TableUpdate]:
    """The updates without effect in ``found``, each under a description of the missing effect.

    ``expected`` is the metadata after all updates, since a later update may undo an earlier one. Only the parts of
    metadata that the updates change are compared: a service may add anything else. The service itself numbers schemas,
    specs and orders, and chooses the location.
    """
    missing: dict[str, TableUpdate] = {}
    for update in updates:
        wanted, there = _aspects(update, expected), _aspects(update, found)
        missing |= {what: update for what, value in wanted.items() if there[what] != value}
    return missing


def _aspects(update: TableUpdate, table: TableMetadata) -> dict[str, object]:
    """The parts of metadata that an update changes, each under a description, without ids that a service assigns."""
    match update:
        case AddSnapshot(snapshot=added):
            return {f"snapshot {added.snapshot_id}": table.snapshot_by_id(added.snapshot_id) is not None}
        case RemoveSnapshots(snapshot_ids=ids):
            return {f"the removal of snapshot {each}": table.snapshot_by_id(each) is None for each in sorted(ids)}
        case SetSnapshotRef(name=name):
            return {f"branch or tag '{name}'": table.refs.get(name)}
        case RemoveSnapshotRef(name=name):
            return {f"the removal of branch or tag '{name}'": table.refs.get(name)}
        case SetProperties(updates=values):
            return {_property(each): _value(each, table) for each in sorted(values)}
        case RemoveProperties(removals=names):
            return {f"the removal of property '{each}'": each in table.properties for each in sorted(names)}
        case UpgradeFormatVersion(format_version=version):
            return {f"format version {version}": table.format_version}
    return _shape(update, table) or _attached(update, table)


def _property(name: str) -> str:
    return "the format version" if name == FORMAT_VERSION else f"property '{name}'"


def _value(name: str, table: TableMetadata) -> object:
    return table.format_version if name == FORMAT_VERSION else table.properties.get(name)


def _shape(update: TableUpdate, table: TableMetadata) -> dict[str, object]:
    match update:
        case AddSchema(schema=schema):
            return {"the added schema": table.schemas.alike(schema) is not None}
        case SetCurrentSchema():
            return {"the current schema": table.schema()}
        case AddPartitionSpec(spec=spec):
            return {"the added partition spec": table.partition_specs.alike(spec) is not None}
        case SetDefaultSpec():
            return {"the default partition spec": [field.definition for field in table.spec().fields]}
        case AddSortOrder(sort_order=order):
            return {"the added sort order": table.sort_orders.alike(order) is not None}
        case SetDefaultSortOrder():
            return {"the default sort order": table.sort_order().fields}
        case RemoveSchemas(schema_ids=ids):
            return {f"the removal of schema {each}": each in table.schemas.positions for each in sorted(ids)}
        case RemovePartitionSpecs(spec_ids=ids):
            return {f"the removal of spec {each}": each in table.partition_specs.positions for each in sorted(ids)}
    return {}


def _attached(update: TableUpdate, table: TableMetadata) -> dict[str, object]:
    match update:
        case SetStatistics(statistics=file):
            found = table.statistics.find(file.snapshot_id)
            return {f"statistics of snapshot {file.snapshot_id}": found and found.statistics_path}
        case SetPartitionStatistics(partition_statistics=partitions):
            kept = table.partition_statistics.find(partitions.snapshot_id)
            return {f"partition statistics of snapshot {partitions.snapshot_id}": kept and kept.statistics_path}
        case RemoveStatistics(snapshot_id=snapshot_id):
            return {f"the removal of statistics of {snapshot_id}": table.statistics.find(snapshot_id) is None}
        case RemovePartitionStatistics(snapshot_id=snapshot_id):
            gone = table.partition_statistics.find(snapshot_id) is None
            return {f"the removal of partition statistics of {snapshot_id}": gone}
        case AddEncryptionKey(encryption_key=key):
            return {f"encryption key '{key.key_id}'": table.encryption_keys.find(key.key_id) is not None}
        case RemoveEncryptionKey(key_id=key_id):
            return {f"the removal of encryption key '{key_id}'": table.encryption_keys.find(key_id) is None}
    return {}
