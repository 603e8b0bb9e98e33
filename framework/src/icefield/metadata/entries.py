"""The small records of table metadata: log entries, statistics files and encryption keys."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from icefield.base.limits import LocationText, NameText, ValueText
from icefield.base.structs import decodable

Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""A JSON integer that fits 64 bits."""

Int = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
"""A JSON integer that fits 32 bits: ids of fields, schemas, specs and orders."""


class Entry(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True, repr_omit_defaults=True):
    """A JSON record with its attribute names, spelt with dashes, as keys."""


@decodable
class SnapshotLogEntry(Entry, frozen=True, gc=False):
    """Since when (ms) a snapshot was current."""

    timestamp_ms: Long
    snapshot_id: Long


@decodable
class MetadataLogEntry(Entry, frozen=True, gc=False):
    """A former metadata file and when (ms) it was last updated."""

    timestamp_ms: Long
    metadata_file: LocationText


@decodable
class BlobMetadata(Entry, frozen=True):
    """A blob of a statistics file: its type, the snapshot and fields it was computed from."""

    type: NameText
    snapshot_id: Long
    sequence_number: Long
    fields: tuple[Long, ...]
    properties: dict[NameText, ValueText] = msgspec.field(default_factory=dict)


@decodable
class StatisticsFile(Entry, frozen=True):
    """A Puffin file with statistics of a snapshot. Sizes are in bytes."""

    snapshot_id: Long
    statistics_path: LocationText
    file_size_in_bytes: Long
    file_footer_size_in_bytes: Long
    blob_metadata: tuple[BlobMetadata, ...]
    key_metadata: str | None = None


@decodable
class PartitionStatisticsFile(Entry, frozen=True):
    """A file with statistics of each partition of a snapshot. The size is in bytes."""

    snapshot_id: Long
    statistics_path: LocationText
    file_size_in_bytes: Long


@decodable
class EncryptedKey(Entry, frozen=True):
    """An encrypted key of the table; ``encrypted_key_metadata`` is a base64 string."""

    key_id: NameText
    encrypted_key_metadata: str
    encrypted_by_id: str | None = None
    properties: dict[NameText, ValueText] = msgspec.field(default_factory=dict)


def decode_encrypted_key(data: bytes | msgspec.Raw) -> EncryptedKey:
    """Decode a key. The specification's example names the metadata ``key-metadata``, which is accepted too."""
    document: dict[str, Any] = msgspec.json.decode(data, type=dict[str, Any])
    if "encrypted-key-metadata" not in document and "key-metadata" in document:
        document["encrypted-key-metadata"] = document.pop("key-metadata")
    return msgspec.convert(document, EncryptedKey)
