"""Reading table metadata: bounded, checked, and no deeper than needed.

The document is split at its top-level keys. Scalars and refs are decoded, arrays are indexed by id, and the presence
of every required key is checked ("Table Metadata Fields" of the table specification). Every fault raises the same
error, which names the location and the key.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import fields
from functools import cache
from typing import Any, Final, TypeVar

import msgspec

from icefield.base.limits import LocationText, NameText, ValueText
from icefield.errors import InvalidMetadata, UnsupportedFeature
from icefield.metadata import codecs
from icefield.metadata.entries import Int, Long
from icefield.metadata.inflation import inflated
from icefield.metadata.integrity import check_metadata
from icefield.metadata.json_array import DAMAGE, ItemCodec, JsonArray
from icefield.metadata.properties import FrozenDict
from icefield.metadata.refs import MAIN_BRANCH, SnapshotRef, branch
from icefield.metadata.snapshots import NO_SNAPSHOT
from icefield.metadata.table_metadata import TableMetadata
from icefield.partitioning.spec import PARTITION_FIELD_ID_START

SUPPORTED_FORMAT_VERSIONS: Final = (1, 2, 3)
_STATED: Final = {each.name.replace("_", "-") for each in fields(TableMetadata) if each.name != "extra"}
_KNOWN: Final = _STATED | {"schema", "partition-spec"}
_UNSORTED: Final = b'[{"order-id":0,"fields":[]}]'

T = TypeVar("T")


def decode_metadata(data: bytes, location: str) -> TableMetadata:
    """Decode the bytes of a metadata file, plain or gzipped; ``location`` names it in errors.

    Raises ``InvalidMetadata`` for a file that is damaged, too large or breaks a rule of the format, and
    ``UnsupportedFeature`` for a format version above 3 and for the metadata of a view.
    """
    document = TopLevelKeys(inflated(data, location), location)
    if document.has("view-uuid"):
        raise UnsupportedFeature(
            f"{location}: this is the metadata of a view, not of a table; views are not supported", location=location
        )
    version = document.required("format-version", Long)
    if version > SUPPORTED_FORMAT_VERSIONS[-1]:
        raise UnsupportedFeature(
            f"{location}: format version {version} is not supported; versions 1 to 3 are",
            location=location,
            format_version=version,
        )
    if version < 1:
        raise document.wrong("format-version", f"{version} is no format version")
    return check_metadata(_metadata(document, version), location)


def _metadata(document: TopLevelKeys, version: int) -> TableMetadata:
    specs = _partition_specs(document, version)
    orders = document.array("sort-orders", codecs.SORT_ORDERS, required=version > 1).checked()
    current = document.optional("current-snapshot-id", Long)
    current = None if current == NO_SNAPSHOT else current
    schemas = _schemas(document, version)
    snapshots = document.array("snapshots", codecs.SNAPSHOTS).checked()
    return TableMetadata(
        format_version=version,
        table_uuid=document.since(2, version, "table-uuid", NameText),
        location=document.required("location", LocationText),
        last_sequence_number=document.required("last-sequence-number", Long) if version > 1 else 0,
        last_updated_ms=document.required("last-updated-ms", Long),
        last_column_id=document.required("last-column-id", Int),
        schemas=schemas,
        current_schema_id=_chosen(document, version, "current-schema-id", "schemas", schemas),
        partition_specs=specs,
        default_spec_id=_chosen(document, version, "default-spec-id", "partition-specs", specs),
        last_partition_id=_last_partition_id(document, version),
        sort_orders=orders if len(orders) else JsonArray(codecs.SORT_ORDERS, _UNSORTED, document.location),
        default_sort_order_id=document.since(2, version, "default-sort-order-id", Int) or 0,
        properties=_properties(document),
        current_snapshot_id=current,
        refs=_refs(document, current),
        snapshots=snapshots,
        statistics=document.array("statistics", codecs.STATISTICS),
        partition_statistics=document.array("partition-statistics", codecs.PARTITION_STATISTICS),
        snapshot_log=document.array("snapshot-log", codecs.SNAPSHOT_LOG),
        metadata_log=document.array("metadata-log", codecs.METADATA_LOG),
        next_row_id=_next_row_id(document, snapshots) if version > 2 else 0,
        encryption_keys=document.array("encryption-keys", codecs.ENCRYPTION_KEYS).checked(),
        extra=document.others(_KNOWN),
    )


def _schemas(document: TopLevelKeys, version: int) -> JsonArray[Any]:
    """All schemas. A v1 file may hold the current one only, under ``schema`` and without an id."""
    if version > 1 or document.has("schemas"):
        return document.array("schemas", codecs.SCHEMAS, required=True).checked()
    return JsonArray(codecs.SCHEMAS, b"[" + bytes(document.raw("schema")) + b"]", document.location).checked()


def _partition_specs(document: TopLevelKeys, version: int) -> JsonArray[Any]:
    """All specs. A v1 file may hold the current one only, as a list of fields under ``partition-spec``."""
    if version > 1 or document.has("partition-specs"):
        return document.array("partition-specs", codecs.PARTITION_SPECS, required=True).checked()
    string = b'[{"spec-id":0,"fields":' + bytes(document.raw("partition-spec")) + b"}]"
    return JsonArray(codecs.PARTITION_SPECS, string, document.location).checked()


def _chosen(document: TopLevelKeys, version: int, key: str, among: str, array: JsonArray[Any]) -> int:
    """The id of the current schema or spec; where a v1 file holds only that one, it needs no id."""
    ids = list(array.positions)
    if version == 1 and not document.has(among):
        return int(ids[0])
    chosen = document.since(2, version, key, Int)
    if chosen is not None:
        return int(chosen)
    return int(ids[0]) if len(ids) == 1 else 0


def _last_partition_id(document: TopLevelKeys, version: int) -> int:
    """The stated id, or the id before the first; a later step raises it to the highest id of all specs."""
    stated = document.since(2, version, "last-partition-id", Int)
    return PARTITION_FIELD_ID_START - 1 if stated is None else int(stated)


def _next_row_id(document: TopLevelKeys, snapshots: JsonArray[Any]) -> int | None:
    """The next row id; if another engine left it out, it is computed from the snapshots if all state their row ids."""
    stated = document.optional("next-row-id", Long)
    if stated is not None:
        return int(stated)
    following = 0
    for snapshot in snapshots:
        if snapshot.first_row_id is None or snapshot.added_rows is None:
            return None
        following = max(following, snapshot.first_row_id + snapshot.added_rows)
    return following


def _properties(document: TopLevelKeys) -> FrozenDict[str, str]:
    properties = document.optional("properties", dict[NameText, ValueText | int | float | bool | None]) or {}
    # Some writers store a bare number or boolean instead of its string.
    return FrozenDict(
        {
            name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
            for name, value in properties.items()
            if value is not None
        }
    )


def _refs(document: TopLevelKeys, current: int | None) -> FrozenDict[str, SnapshotRef]:
    """Branches and tags; a missing ``main`` is added at the current snapshot."""
    refs = document.optional("refs", dict[NameText, SnapshotRef]) or {}
    if MAIN_BRANCH not in refs and current is not None:
        refs[MAIN_BRANCH] = branch(current)
    return FrozenDict(refs)


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


class TopLevelKeys:
    """The top-level keys of a metadata file and the string under each."""

    def __init__(self, data: bytes, location: str, what: str = "table metadata") -> None:
        self.location = location
        try:
            if not data.isascii():
                data.decode("utf-8")  # a string that is skipped is not checked otherwise
            self.members: dict[str, msgspec.Raw] = _decoder(dict[str, msgspec.Raw]).decode(data)
        except DAMAGE as error:
            raise InvalidMetadata(f"{location}: is not {what}: {_reason(error)}", location=location) from error

    def others(self, known: Container[str]) -> FrozenDict[str, bytes]:
        """The members under other keys, as JSON text."""
        return FrozenDict({key: bytes(raw) for key, raw in self.members.items() if key not in known})

    def has(self, key: str) -> bool:
        """Whether a key is there and not null."""
        raw = self.members.get(key)
        return raw is not None and bytes(memoryview(raw)[:4]) != b"null"

    def raw(self, key: str) -> msgspec.Raw:
        """The JSON text under a key that must be there."""
        if not self.has(key):
            raise self.wrong(key, "is required and missing")
        return self.members[key]

    def optional(self, key: str, kind: type[T] | Any) -> Any:
        """The value of a key, or None when it is absent or null."""
        return self._decoded(key, kind) if self.has(key) else None

    def required(self, key: str, kind: type[T] | Any) -> Any:
        """The value of a key that must be there."""
        self.raw(key)
        return self._decoded(key, kind)

    def since(self, first: int, version: int, key: str, kind: type[T] | Any) -> Any:
        """The value of a key that must be there from a format version on, else None when it is absent."""
        return self.required(key, kind) if version >= first else self.optional(key, kind)

    def array(self, key: str, codec: ItemCodec[T], *, required: bool = False) -> JsonArray[T]:
        """The array under a key; an empty one when it is absent and not required."""
        if not required and not self.has(key):
            return JsonArray(codec, location=self.location)
        raw = self.raw(key)
        if bytes(memoryview(raw)[:1]) != b"[":
            raise self.wrong(key, "must be an array")
        return JsonArray(codec, raw, self.location)

    def wrong(self, key: str, why: str) -> InvalidMetadata:
        """The error for a key."""
        return InvalidMetadata(f"{self.location}: '{key}' {why}", location=self.location, key=key)

    def _decoded(self, key: str, kind: Any) -> Any:
        try:
            return _decoder(kind).decode(self.members[key])
        except DAMAGE as error:
            raise self.wrong(key, f"is invalid: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
