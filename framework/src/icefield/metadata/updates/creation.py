"""The updates that make a new table of nothing, as the REST catalog protocol wants a creation to be written."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from uuid import uuid4

from icefield.errors import InvalidArgument
from icefield.metadata.codecs import PARTITION_SPECS, SCHEMAS, SORT_ORDERS
from icefield.metadata.decode import SUPPORTED_FORMAT_VERSIONS
from icefield.metadata.entries import SnapshotLogEntry
from icefield.metadata.json_array import JsonArray
from icefield.metadata.properties import FORMAT_VERSION
from icefield.metadata.table_metadata import TableMetadata
from icefield.metadata.updates.base import LAST_ADDED, TableDrafts, TableUpdate
from icefield.metadata.updates.partitioning import AddPartitionSpec, SetDefaultSpec
from icefield.metadata.updates.schemas import AddSchema, SetCurrentSchema
from icefield.metadata.updates.sorting import AddSortOrder, SetDefaultSortOrder
from icefield.metadata.updates.table import AssignUUID, SetLocation, SetProperties, UpgradeFormatVersion
from icefield.metadata.validation import check_names_differ
from icefield.partitioning.spec import PARTITION_FIELD_ID_START

_NONE = -1


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


def created_by(updates: Iterable[TableUpdate], *, now_ms: int | None = None) -> TableMetadata:
    """The metadata of a new table from updates alone, such as the updates of ``creation_updates`` and an append.

    ``now_ms`` is the time of the change in ms. Raises ``InvalidArgument`` if the updates leave out required metadata.
    """
    steps = tuple(updates)
    stated = [step.format_version for step in steps if isinstance(step, UpgradeFormatVersion)]
    version = min([*stated, SUPPORTED_FORMAT_VERSIONS[-1]]) if stated else int(FORMAT_VERSION.default or 2)
    now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    nothing = TableMetadata(
        format_version=max(version, SUPPORTED_FORMAT_VERSIONS[0]),
        table_uuid=None,
        location="",
        last_updated_ms=0,
        last_column_id=0,
        schemas=JsonArray(SCHEMAS),
        current_schema_id=_NONE,
        partition_specs=JsonArray(PARTITION_SPECS),
        default_spec_id=_NONE,
        last_partition_id=PARTITION_FIELD_ID_START - 1,
        sort_orders=JsonArray(SORT_ORDERS),
        default_sort_order_id=_NONE,
    )
    change = TableDrafts(base=nothing, timestamp_ms=now)
    made = nothing
    for step in steps:
        made = step.apply(made, change)
    made = change.settled(made)
    _check_whole(made)
    check_names_differ(made)
    current = made.current_snapshot_id
    log = [] if current is None else [SnapshotLogEntry(change.timestamp_ms, current)]
    return replace(
        made,
        table_uuid=made.table_uuid or str(uuid4()),
        snapshot_log=made.snapshot_log.extended(log),
        last_updated_ms=change.timestamp_ms,
    )


def _check_whole(made: TableMetadata) -> None:
    lacks = {
        "a location": not made.location,
        "a current schema": made.current_schema_id == _NONE,
        "a default partition spec": made.default_spec_id == _NONE,
        "a default sort order": made.default_sort_order_id == _NONE,
    }
    if missing := [what for what, lacking in lacks.items() if lacking]:
        raise InvalidArgument(f"the updates that create a table leave out {', '.join(missing)}")
