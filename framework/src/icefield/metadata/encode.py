"""Writing table metadata: all fields that a format version requires, and none that it does not define.

Arrays that came from a file are copied as a string; only added elements are encoded.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
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
        return encode_document(_members(metadata), compress=compress)
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"table metadata holds invalid Unicode text: {error}") from error


def encode_document(members: Iterable[_Member], *, compress: bool) -> bytes:
    """The JSON object with these members, gzipped with ``compress``."""
    parts: list[bytes | msgspec.Raw] = []
    for key, string in members:
        parts += (b"," if parts else b"{", _json(key), b":", string)
    data = b"".join([*parts, b"}"])
    return gzip.compress(data, _GZIP_LEVEL, mtime=0) if compress else data


def _members(m: TableMetadata) -> Iterator[_Member]:
    version = m.format_version
    yield "format-version", _json(version)
    if m.table_uuid is not None:
        yield "table-uuid", _json(m.table_uuid)
    yield "location", _json(m.location)
    if version > 1:
        yield "last-sequence-number", _json(m.last_sequence_number)
    yield "last-updated-ms", _json(m.last_updated_ms)
    yield "last-column-id", _json(m.last_column_id)
    if version == 1:
        yield "schema", _json(schema_to_json(m.schema()))
    yield "current-schema-id", _json(m.current_schema_id)
    yield "schemas", m.schemas.raw()
    if version == 1:
        yield "partition-spec", _json(fields_to_json(m.spec()))
    yield from (
        ("default-spec-id", _json(m.default_spec_id)),
        ("partition-specs", m.partition_specs.raw()),
        ("last-partition-id", _json(m.last_partition_id)),
        ("default-sort-order-id", _json(m.default_sort_order_id)),
        ("sort-orders", m.sort_orders.raw()),
        ("properties", _json(m.properties)),
    )
    if m.current_snapshot_id is not None or version > 2:
        yield "current-snapshot-id", _json(m.current_snapshot_id)
    if version > 2 and m.next_row_id is not None:
        yield "next-row-id", _json(m.next_row_id)
    if len(m.encryption_keys):
        yield "encryption-keys", m.encryption_keys.raw()
    # Version 1 does not define refs, but writers store them. Refs other than ``main`` would otherwise be lost.
    if version > 1 or any(name != MAIN_BRANCH for name in m.refs):
        yield "refs", _json(dict(m.refs))
    for array in (m.snapshots, m.statistics, m.partition_statistics, m.snapshot_log, m.metadata_log):
        yield array.name, array.raw()
    yield from m.extra.items()
