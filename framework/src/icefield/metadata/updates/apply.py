"""Applying updates: one change, checked as a whole; also the first metadata of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from uuid import uuid4

from icefield.errors import CommitFailed, InvalidArgument, UnsupportedFeature
from icefield.metadata.codecs import PARTITION_SPECS, SCHEMAS, SNAPSHOT_LOG, SORT_ORDERS
from icefield.metadata.decode import SUPPORTED_FORMAT_VERSIONS
from icefield.metadata.entries import SnapshotLogEntry
from icefield.metadata.json_array import JsonArray
from icefield.metadata.properties import ENCRYPTION_KEY_ID, FORMAT_VERSION, FrozenDict, check_properties
from icefield.metadata.table_metadata import TableMetadata
from icefield.metadata.timestamps import now_ms as current_ms
from icefield.metadata.updates import definitions
from icefield.metadata.updates.base import LAST_ADDED, TableDrafts, TableUpdate
from icefield.metadata.updates.table import (
    AddEncryptionKey,
    AssignUUID,
    RemoveEncryptionKey,
    SetLocation,
    SetProperties,
    UpgradeFormatVersion,
)
from icefield.metadata.validation import (
    check_defaults_fit,
    check_encryption,
    check_location,
    check_names_differ,
    check_spec,
    parsed_uuid,
)
from icefield.partitioning import UNPARTITIONED, UNSORTED, PartitionSpec, SortOrder
from icefield.partitioning.sort_order import order_for_new_table, validate_order
from icefield.partitioning.spec import PARTITION_FIELD_ID_START, spec_for_new_table
from icefield.schema import Schema, assign_fresh_ids, check_schema

_NONE = -1
_DEFAULT_VERSION = int(FORMAT_VERSION.default or 2)


class MetadataBuilder:
    """A change of a base by updates in one or several steps; each update is applied once.

    ``now_ms`` is the time of the change in ms; a change that adds a snapshot has the snapshot's time instead. The time
    never runs backwards. If the current snapshot changes, the snapshot log gets a single entry, however many steps
    there are.
    """

    def __init__(self, base: TableMetadata, *, now_ms: int | None = None) -> None:
        self._change = TableDrafts(base=base, timestamp_ms=base.next_timestamp_ms(now_ms))
        self._result = base

    def apply(self, updates: Iterable[TableUpdate]) -> TableMetadata:
        """The metadata after all updates so far; the base object itself if they change nothing.

        The cost depends on the number of additions, not on the size of the metadata. Raises ``InvalidArgument``,
        ``InvalidSchema`` or ``UnsupportedFeature``, and ``CommitFailed`` where a needed encryption key is gone.
        """
        before = self._result
        result, keys = before, []
        for update in updates:
            result = update.apply(result, self._change)
            if isinstance(update, AddEncryptionKey | RemoveEncryptionKey):
                keys.append(update)
        self._result = self._change.settled(result)
        if keys:
            _check_keys(self._result, keys)
        base = self._change.base
        if self._result is base:
            return base
        if self._result is not before:
            check_defaults_fit(base, self._result)
            check_names_differ(self._result, base)
        return _logged(self._result, self._change)


def apply_updates(
    metadata: TableMetadata, updates: Iterable[TableUpdate], *, now_ms: int | None = None
) -> TableMetadata:
    """The metadata after a change in a single step: see ``MetadataBuilder``."""
    return MetadataBuilder(metadata, now_ms=now_ms).apply(updates)


def new_table_metadata(
    schema: Schema,
    spec: PartitionSpec = UNPARTITIONED,
    sort_order: SortOrder = UNSORTED,
    location: str = "",
    properties: Mapping[str, str] | None = None,
    format_version: int | None = None,
    table_uuid: str | None = None,
    *,
    now_ms: int | None = None,
) -> TableMetadata:
    """The metadata of a new, empty table.

    Column ids are assigned afresh, from 1. The sources of the spec and the sort order are ids of ``schema`` and are
    replaced by the new ids. The format version is ``format_version``, else the property of that name, which is not
    stored, else 2. Raises ``InvalidArgument``, ``InvalidSchema`` or ``UnsupportedFeature``.
    """
    stored = check_properties(properties or {})
    version = _format_version(format_version, stored.pop(FORMAT_VERSION.name, None))
    check_encryption(stored, version)
    fresh, ids = assign_fresh_ids(schema.with_schema_id(0))
    check_schema(fresh, version)
    first_spec = spec_for_new_table(spec, ids)
    check_spec(first_spec, fresh, version)
    first_order = order_for_new_table(sort_order, ids)
    validate_order(first_order, fresh)
    return TableMetadata(
        format_version=version,
        table_uuid=str(uuid4()) if table_uuid is None else parsed_uuid(table_uuid),
        location=check_location(location),
        last_updated_ms=current_ms() if now_ms is None else now_ms,
        last_column_id=fresh.highest_field_id,
        schemas=JsonArray.of(SCHEMAS, [fresh]),
        current_schema_id=fresh.schema_id,
        partition_specs=JsonArray.of(PARTITION_SPECS, [first_spec]),
        default_spec_id=first_spec.spec_id,
        last_partition_id=first_spec.last_assigned_field_id,
        sort_orders=JsonArray.of(SORT_ORDERS, [first_order]),
        default_sort_order_id=first_order.order_id,
        properties=FrozenDict(stored),
    )


def _check_keys(metadata: TableMetadata, changes: Iterable[AddEncryptionKey | RemoveEncryptionKey]) -> None:
    """Raise ``CommitFailed`` if a concurrent commit removed a key that is needed, or needs a key that is removed."""
    master, known = metadata.properties.get(ENCRYPTION_KEY_ID.name), metadata.encryption_keys
    needed: set[str | None] = set()
    gone = {change.key_id for change in changes if isinstance(change, RemoveEncryptionKey)}
    gone = {key_id for key_id in gone if not known.has(key_id)}
    if gone:
        files = (each.statistics_path for each in metadata.statistics_files)
        lists = (each.key_id for each in metadata.snapshots)
        needed = {*files, *lists, *(key.encrypted_by_id for key in known)} & gone
    added = {change.encryption_key.encrypted_by_id for change in changes if isinstance(change, AddEncryptionKey)}
    if master is not None:
        needed |= {key_id for key_id in added - {master, None} if not known.has(key_id or "")}
    if needed:
        raise CommitFailed(f"table {metadata.location} has no encryption key '{needed.pop()}', which is still needed")


def _format_version(given: int | None, stated: str | None) -> int:
    asked = {version for version in (given, None if stated is None else int(stated)) if version is not None}
    if len(asked) > 1:
        raise InvalidArgument(f"format version {given} and the property 'format-version' {stated} disagree")
    version = asked.pop() if asked else _DEFAULT_VERSION
    if not isinstance(version, int) or isinstance(version, bool) or version < SUPPORTED_FORMAT_VERSIONS[0]:
        raise InvalidArgument(f"{version!r} is no format version; versions 1 to 3 are supported")
    if version > SUPPORTED_FORMAT_VERSIONS[-1]:
        raise UnsupportedFeature(f"format version {version} is not supported; versions 1 to 3 are")
    return version


def creation_updates(metadata: TableMetadata) -> tuple[TableUpdate, ...]:
    """The updates that lead from nothing to the metadata of a new table, which has no snapshot yet."""
    uuid: tuple[TableUpdate, ...] = () if metadata.table_uuid is None else (AssignUUID(metadata.table_uuid),)
    properties: tuple[TableUpdate, ...] = (SetProperties(metadata.properties),) if metadata.properties else ()
    return (
        *uuid,
        UpgradeFormatVersion(metadata.format_version),
        SetLocation(metadata.location),
        definitions.AddSchema(metadata.schema(), metadata.last_column_id),
        definitions.SetCurrentSchema(LAST_ADDED),
        definitions.AddPartitionSpec(metadata.spec()),
        definitions.SetDefaultSpec(LAST_ADDED),
        definitions.AddSortOrder(metadata.sort_order()),
        definitions.SetDefaultSortOrder(LAST_ADDED),
        *properties,
    )


def created_by(updates: Iterable[TableUpdate], *, now_ms: int | None = None) -> TableMetadata:
    """The metadata of a new table from updates alone, such as the updates of ``creation_updates`` and an append.

    ``now_ms`` is the time of the change in ms. Raises ``InvalidArgument`` if the updates leave out required metadata.
    """
    steps = tuple(updates)
    stated = [step.format_version for step in steps if isinstance(step, UpgradeFormatVersion)]
    version = min([*stated, SUPPORTED_FORMAT_VERSIONS[-1]]) if stated else _DEFAULT_VERSION
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
    change = TableDrafts(base=nothing, timestamp_ms=nothing.next_timestamp_ms(now_ms))
    made = nothing
    for step in steps:
        made = step.apply(made, change)
    made = change.settled(made)
    lacks = {
        "a location": not made.location,
        "a current schema": made.current_schema_id == _NONE,
        "a default partition spec": made.default_spec_id == _NONE,
        "a default sort order": made.default_sort_order_id == _NONE,
    }
    if missing := [what for what, lacking in lacks.items() if lacking]:
        raise InvalidArgument(f"the updates that create a table leave out {', '.join(missing)}")
    check_names_differ(made)
    return replace(_logged(made, change), table_uuid=made.table_uuid or str(uuid4()))


def _logged(result: TableMetadata, change: TableDrafts) -> TableMetadata:
    log, current = result.snapshot_log, result.current_snapshot_id
    if current is not None and current != change.base.current_snapshot_id:
        log = log.extended([SnapshotLogEntry(change.timestamp_ms, current)])
    elif current is None and change.base.current_snapshot_id is not None:
        log = JsonArray(SNAPSHOT_LOG)  # its last entry would say that the former snapshot is still the current one
    return replace(result, snapshot_log=log, last_updated_ms=change.timestamp_ms)
