"""View metadata: versions of a query, each with one SQL string a dialect. See the view specification, version 1."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Final

import msgspec

from icefield.base.limits import LocationText, NameText, ValueText
from icefield.base.secrets import without_userinfo
from icefield.base.structs import decodable
from icefield.errors import InvalidMetadata, UnsupportedFeature
from icefield.metadata.codecs import SCHEMAS
from icefield.metadata.decode import TopLevelKeys
from icefield.metadata.encode import encode_document
from icefield.metadata.entries import Entry, Int, Long
from icefield.metadata.inflation import inflated
from icefield.metadata.json_array import ItemCodec, JsonArray, register
from icefield.metadata.properties import FrozenDict
from icefield.schema import Schema

VIEW_FORMAT_VERSION: Final = 1
SQL: Final = "sql"
"""The only type of representation in the specification."""


@decodable
class ViewRepresentation(Entry, frozen=True):
    """A query in one dialect. ``type`` is ``sql``; representations of other types stay in the file but are not read."""

    type: NameText
    sql: ValueText | None = None
    dialect: NameText | None = None


@decodable
class ViewVersion(msgspec.Struct, frozen=True, rename="kebab", repr_omit_defaults=True):
    """A version of a view: its query, the schema of its rows, and the default catalog and namespace of its names.

    ``timestamp_ms`` is when it was made, in milliseconds since 1970-01-01 UTC. ``summary`` holds strings, such as the
    engine's name.
    """

    version_id: Int
    timestamp_ms: Long
    schema_id: Int
    summary: dict[NameText, ValueText]
    representations: tuple[ViewRepresentation, ...]
    default_namespace: tuple[NameText, ...]
    default_catalog: NameText | msgspec.UnsetType | None = msgspec.UNSET

    @property
    def sql(self) -> dict[str, str]:
        """The query by dialect."""
        return {
            given.dialect: given.sql
            for given in self.representations
            if given.type == SQL and given.dialect is not None and given.sql is not None
        }

    @property
    def content(self) -> Hashable:
        """Everything but the id and the time."""
        summary, catalog = frozenset(self.summary.items()), self.default_catalog or None
        return self.schema_id, summary, self.representations, self.default_namespace, catalog


@decodable
class ViewHistoryEntry(Entry, frozen=True, gc=False):
    """Since when (ms) a version was current."""

    timestamp_ms: Long
    version_id: Int


@decodable
class _VersionKey(Entry, frozen=True, gc=False):
    version_id: Int


VERSIONS: Final[ItemCodec[ViewVersion]] = register(
    ItemCodec(
        "versions",
        _VersionKey,
        attrgetter("version_id"),
        encode=msgspec.json.encode,
        decode=msgspec.json.Decoder(ViewVersion).decode,
        content=attrgetter("content"),
    )
)
VERSION_LOG: Final[ItemCodec[ViewHistoryEntry]] = register(
    ItemCodec("version-log", ViewHistoryEntry, attrgetter("version_id"), encode=msgspec.json.encode, unique=False)
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ViewMetadata:
    """The state of a view, under the names of the specification's JSON keys.

    ``extra`` holds the top-level keys that this version does not know, as JSON text; they are written back. Changes
    are made with ``icefield.metadata.apply_view_updates``.
    """

    view_uuid: str
    location: str
    schemas: JsonArray[Schema]
    current_version_id: int
    versions: JsonArray[ViewVersion]
    version_log: JsonArray[ViewHistoryEntry] = field(default_factory=lambda: JsonArray(VERSION_LOG))
    properties: Mapping[str, str] = field(default_factory=FrozenDict)
    format_version: int = VIEW_FORMAT_VERSION
    extra: Mapping[str, bytes] = field(default_factory=FrozenDict)

    def current_version(self) -> ViewVersion:
        """The version that readers take. Raises ``InvalidMetadata`` when the view lacks it."""
        version = self.versions.find(self.current_version_id)
        if version is None:
            raise InvalidMetadata(f"view {self.location} has no version {self.current_version_id}")
        return version

    def schema(self) -> Schema:
        """The schema of the rows of the current version. Raises ``InvalidMetadata`` when the view lacks it."""
        return self.schema_of(self.current_version())

    def schema_of(self, version: ViewVersion) -> Schema:
        """The schema of the rows of a version. Raises ``InvalidMetadata`` when the view lacks it."""
        schema = self.schemas.find(version.schema_id)
        if schema is None:
            raise InvalidMetadata(f"view {self.location} has no schema {version.schema_id}", location=self.location)
        return schema

    def __repr__(self) -> str:
        return (
            f"ViewMetadata(view_uuid={self.view_uuid!r}, location={without_userinfo(self.location)!r}, "
            f"current_version_id={self.current_version_id}, versions={len(self.versions)})"
        )


_KNOWN: Final = {each.name.replace("_", "-") for each in fields(ViewMetadata) if each.name != "extra"}


def decode_view_metadata(data: bytes, location: str) -> ViewMetadata:
    """Decode the bytes of a view's metadata file, plain or gzipped; ``location`` names it in errors.

    Raises ``InvalidMetadata`` for a file that is damaged, too large or breaks a rule of the format, and
    ``UnsupportedFeature`` for a format version above 1.
    """
    document = TopLevelKeys(inflated(data, location), location, "view metadata")
    version = document.required("format-version", Long)
    if version > VIEW_FORMAT_VERSION:
        raise UnsupportedFeature(
            f"{location}: view format version {version} is not supported; version 1 is", location=location
        )
    if version < 1:
        raise document.wrong("format-version", f"{version} is no format version of views")
    metadata = ViewMetadata(
        view_uuid=document.required("view-uuid", NameText),
        location=document.required("location", LocationText),
        schemas=document.array("schemas", SCHEMAS, required=True).checked(),
        current_version_id=document.required("current-version-id", Int),
        versions=document.array("versions", VERSIONS, required=True).checked(),
        version_log=document.array("version-log", VERSION_LOG, required=True),
        properties=FrozenDict(document.optional("properties", dict[NameText, ValueText]) or {}),
        extra=document.others(_KNOWN),
    )
    current = metadata.versions.find(metadata.current_version_id)
    if current is None:
        raise InvalidMetadata(
            f"{location}: 'current-version-id' is {metadata.current_version_id}, and no version has that id",
            location=location,
        )
    if not metadata.schemas.has(current.schema_id):
        raise InvalidMetadata(
            f"{location}: the current version names schema {current.schema_id}, which is not there", location=location
        )
    dialects = [(given.dialect or "").lower() for given in current.representations if given.type == SQL]
    if len(set(dialects)) != len(dialects):
        raise InvalidMetadata(f"{location}: the current version has two queries of one dialect", location=location)
    return metadata


def encode_view_metadata(metadata: ViewMetadata, *, compress: bool = False) -> bytes:
    """The bytes of a view's metadata file: UTF-8 JSON, gzipped with ``compress``."""
    json = msgspec.json.encode
    members: list[tuple[str, bytes | msgspec.Raw]] = [
        ("view-uuid", json(metadata.view_uuid)),
        ("format-version", json(metadata.format_version)),
        ("location", json(metadata.location)),
        ("schemas", metadata.schemas.raw()),
        ("current-version-id", json(metadata.current_version_id)),
        ("versions", metadata.versions.raw()),
        ("version-log", metadata.version_log.raw()),
        ("properties", json(dict(metadata.properties))),
        *metadata.extra.items(),
    ]
    return encode_document(members, compress=compress)
