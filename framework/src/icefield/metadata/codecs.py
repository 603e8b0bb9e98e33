"""How the elements of each array of table metadata are read and written."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Final, TypeVar

import msgspec

from icefield.base.limits import NameText
from icefield.base.structs import decodable
from icefield.metadata.entries import (
    EncryptedKey,
    Entry,
    Int,
    Long,
    MetadataLogEntry,
    PartitionStatisticsFile,
    SnapshotLogEntry,
    StatisticsFile,
    decode_encrypted_key,
)
from icefield.metadata.json_array import ItemCodec, register
from icefield.metadata.snapshots import Snapshot, decode_snapshot
from icefield.partitioning import PartitionSpec, SortOrder
from icefield.partitioning.sort_order import sort_order_from_json, sort_order_to_json
from icefield.partitioning.spec import spec_from_json, spec_to_json
from icefield.schema import Schema, schema_from_json, schema_to_json

T = TypeVar("T")

_encode = msgspec.json.encode
_decode = msgspec.json.decode


@decodable
class SnapshotKey(Entry, frozen=True, gc=False):
    """The light record of a snapshot: the fields that are read without decoding the rest."""

    snapshot_id: Long
    timestamp_ms: Long
    sequence_number: Long | None = None
    parent_snapshot_id: Long | None = None
    key_id: Any = None


@decodable
class _SchemaKey(Entry, frozen=True, gc=False):
    schema_id: Int | None = None


@decodable
class _SpecFieldKey(Entry, frozen=True, gc=False):
    field_id: Int | None = None


@decodable
class _SpecKey(Entry, frozen=True):
    spec_id: Int
    fields: list[_SpecFieldKey]


@decodable
class _OrderKey(Entry, frozen=True, gc=False):
    order_id: Int


@decodable
class _SnapshotFileKey(Entry, frozen=True, gc=False):
    snapshot_id: Long | None = None


@decodable
class _EncryptionKeyKey(Entry, frozen=True, gc=False):
    key_id: NameText
    encrypted_key_metadata: str | None = None


def _files_of_snapshots(name: str, kind: type[T]) -> ItemCodec[T]:
    decode = msgspec.json.Decoder(kind).decode
    key = attrgetter("snapshot_id")
    return register(ItemCodec(name, _SnapshotFileKey, key, encode=_encode, decode=decode, unique=False))


SCHEMAS: Final[ItemCodec[Schema]] = register(
    ItemCodec(
        "schemas",
        _SchemaKey,
        attrgetter("schema_id"),
        encode=lambda schema: _encode(schema_to_json(schema)),
        decode=lambda data: schema_from_json(_decode(data)),
        rewrite=lambda key: key.schema_id is None,
        content=lambda schema: schema,  # its id is no part of its equality
    )
)
PARTITION_SPECS: Final[ItemCodec[PartitionSpec]] = register(
    ItemCodec(
        "partition-specs",
        _SpecKey,
        attrgetter("spec_id"),
        encode=lambda spec: _encode(spec_to_json(spec)),
        decode=lambda data: spec_from_json(_decode(data)),
        rewrite=lambda key: any(field.field_id is None for field in key.fields),
        content=attrgetter("definition"),
    )
)
SORT_ORDERS: Final[ItemCodec[SortOrder]] = register(
    ItemCodec(
        "sort-orders",
        _OrderKey,
        attrgetter("order_id"),
        encode=lambda order: _encode(sort_order_to_json(order)),
        decode=lambda data: sort_order_from_json(_decode(data)),
        content=attrgetter("fields"),
    )
)
SNAPSHOTS: Final[ItemCodec[Snapshot]] = register(
    ItemCodec("snapshots", SnapshotKey, attrgetter("snapshot_id"), encode=_encode, decode=decode_snapshot)
)
SNAPSHOT_LOG: Final[ItemCodec[SnapshotLogEntry]] = register(
    ItemCodec("snapshot-log", SnapshotLogEntry, attrgetter("snapshot_id"), encode=_encode, unique=False)
)
METADATA_LOG: Final[ItemCodec[MetadataLogEntry]] = register(
    ItemCodec("metadata-log", MetadataLogEntry, attrgetter("metadata_file"), encode=_encode, unique=False)
)
STATISTICS: Final = _files_of_snapshots("statistics", StatisticsFile)
PARTITION_STATISTICS: Final = _files_of_snapshots("partition-statistics", PartitionStatisticsFile)
ENCRYPTION_KEYS: Final[ItemCodec[EncryptedKey]] = register(
    ItemCodec(
        "encryption-keys",
        _EncryptionKeyKey,
        attrgetter("key_id"),
        encode=_encode,
        decode=decode_encrypted_key,
        rewrite=lambda key: key.encrypted_key_metadata is None,
    )
)
