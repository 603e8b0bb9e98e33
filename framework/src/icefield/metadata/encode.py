"""Writing table metadata: all fields that a format version requires, and none that it does not define.

Arrays that came from a file are copied as a string; only added elements are encoded.
"""

from __future__ import annotations

import gzip
from typing import Final

import msgspec

from icefield.errors import InvalidArgument
from icefield.metadata.refs import MAIN_BRANCH
from icefield.metadata.table_metadata import TableMetadata
from icefield.partitioning.spec import fields_to_json
from icefield.schema import schema_to_json

_GZIP_LEVEL: Final = 6

_Member = tuple[str, bytes | msgspec.Raw]
_json = msgspec.json.encode


def encode_metadata(metadata: TableMetadata, *, compress: bool = False) -> bytes:
    """The bytes of a metadata file: UTF-8 JSON, deterministic, gzipped with ``compress``.

    Keys that a format version does not have are left out and those it requires are written ("Appendix C: Format
    version changes"). Raises ``InvalidArgument`` for a string that is not valid Unicode.
    """
    try:
        members = _members(metadata)
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"table metadata holds invalid Unicode text: {error}") from error
    parts: list[bytes | msgspec.Raw] = []
    for key, string in members:
        parts += (b"," if parts else b"{", _json(key), b":", string)
    parts.append(b"}")
    data = b"".join(parts)
    return gzip.compress(data, _GZIP_LEVEL, mtime=0) if compress else data


def _members(m: TableMetadata) -> list[_Member]:
    return [*_head(m), *_schemas(m), *_partitioning(m), *_state(m), *m.extra.items()]


def _head(m: TableMetadata) -> list[_Member]:
    members: list[_Member] = [("format-version", _json(m.format_version))]
    if m.table_uuid is not None:
        members.append(("table-uuid", _json(m.table_uuid)))
    members.append(("location", _json(m.location)))
    if m.format_version > 1:
        members.append(("last-sequence-number", _json(m.last_sequence_number)))
    members += (("last-updated-ms", _json(m.last_updated_ms)), ("last-column-id", _json(m.last_column_id)))
    return members


def _schemas(m: TableMetadata) -> list[_Member]:
    members: list[_Member] = []
    if m.format_version == 1:
        members.append(("schema", _json(schema_to_json(m.schema()))))
    return [*members, ("current-schema-id", _json(m.current_schema_id)), ("schemas", m.schemas.raw())]


def _partitioning(m: TableMetadata) -> list[_Member]:
    members: list[_Member] = []
    if m.format_version == 1:
        members.append(("partition-spec", _json(fields_to_json(m.spec()))))
    return [
        *members,
        ("default-spec-id", _json(m.default_spec_id)),
        ("partition-specs", m.partition_specs.raw()),
        ("last-partition-id", _json(m.last_partition_id)),
        ("default-sort-order-id", _json(m.default_sort_order_id)),
        ("sort-orders", m.sort_orders.raw()),
    ]


def _state(m: TableMetadata) -> list[_Member]:
    members: list[_Member] = [("properties", _json(m.properties))]
    if m.current_snapshot_id is not None or m.format_version > 2:
        members.append(("current-snapshot-id", _json(m.current_snapshot_id)))
    if m.format_version > 2 and m.next_row_id is not None:
        members.append(("next-row-id", _json(m.next_row_id)))
    if len(m.encryption_keys):
        members.append(("encryption-keys", m.encryption_keys.raw()))
    # Version 1 does not define refs, but writers store them. Refs other than ``main`` would otherwise be lost.
    if m.format_version > 1 or any(name != MAIN_BRANCH for name in m.refs):
        members.append(("refs", _json(dict(m.refs))))
    return [
        *members,
        ("snapshots", m.snapshots.raw()),
        ("statistics", m.statistics.raw()),
        ("partition-statistics", m.partition_statistics.raw()),
        ("snapshot-log", m.snapshot_log.raw()),
        ("metadata-log", m.metadata_log.raw()),
    ]
