"""How the elements of each array of table metadata are read and written."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Final, TypeVar

import msgspec

from icefield.base.limits import NameText
from icefield.base.structs import decodable
from icefield.metadata import entries
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
class SnapshotKey(entries.Entry, frozen=True, gc=False):
    """The light record of a snapshot: the fields that are read without decoding the rest."""

    snapshot_id: entries.Long
    timestamp_ms: entries.Long
    sequence_number: entries.Long | None = None
    parent_snapshot_id: entries.Long | None = None
    key_id: Any = None


@decodable
class _SchemaKey(entries.Entry, frozen=True, gc=False):
    schema_id: entries.Int | None = None


@decodable
class _SpecFieldKey(entries.Entry, frozen=True, gc=False):
    field_id: entries.Int | None = None


@decodable
class _SpecKey(entries.Entry, frozen=True):
    spec_id: entries.Int
    fields: list[_SpecFieldKey]


@decodable
class _OrderKey(entries.Entry, frozen=True, gc=False):
    order_id: entries.Int


@decodable
class _SnapshotFileKey(entries.Entry, frozen=True, gc=False):
    snapshot_id: entries.Long | None = None


@decodable
class _EncryptionKeyKey(entries.Entry, frozen=True, gc=False):
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
SNAPSHOT_LOG: Final[ItemCodec[entries.SnapshotLogEntry]] = register(
    ItemCodec("snapshot-log", entries.SnapshotLogEntry, attrgetter("snapshot_id"), encode=_encode, unique=False)
)
METADATA_LOG: Final[ItemCodec[entries.MetadataLogEntry]] = register(
    ItemCodec("metadata-log", entries.MetadataLogEntry, attrgetter("metadata_file"), encode=_encode, unique=False)
)
STATISTICS: Final = _files_of_snapshots("statistics", entries.StatisticsFile)
PARTITION_STATISTICS: Final = _files_of_snapshots("partition-statistics", entries.PartitionStatisticsFile)
ENCRYPTION_KEYS: Final[ItemCodec[entries.EncryptedKey]] = register(
    ItemCodec(
        "encryption-keys",
        _EncryptionKeyKey,
        attrgetter("key_id"),
        encode=_encode,
        decode=entries.decode_encrypted_key,
        rewrite=lambda key: key.encrypted_key_metadata is None,
    )
)
