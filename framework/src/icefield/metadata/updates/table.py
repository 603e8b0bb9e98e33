"""Updates of the table itself: identity, format version, location, properties, encryption keys."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar
from uuid import uuid4

import msgspec

from icefield.base.limits import NameText, ValueText
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.metadata.decode import SUPPORTED_FORMAT_VERSIONS
from icefield.metadata.entries import EncryptedKey, Int
from icefield.metadata.json_array import DAMAGE
from icefield.metadata.properties import (
    ENCRYPTION_KEY_ID,
    FORMAT_VERSION,
    FrozenDict,
    check_properties,
)
from icefield.metadata.snapshots import Operation
from icefield.metadata.table_metadata import TableMetadata
from icefield.metadata.updates.base import Drafts, TableDrafts
from icefield.metadata.validation import check_encryption, check_location, parsed_uuid
from icefield.metadata.views import ViewMetadata

Located = TypeVar("Located", TableMetadata, ViewMetadata)


@dataclass(frozen=True, slots=True)
class AssignUUID:
    """Give the table its uuid. An existing uuid never changes."""

    uuid: NameText
    action: ClassVar[str] = "assign-uuid"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        uuid = parsed_uuid(self.uuid)
        if metadata.table_uuid is None:
            return replace(metadata, table_uuid=uuid)
        if metadata.table_uuid.lower() != uuid:
            raise InvalidArgument(f"table {metadata.location} has the uuid {metadata.table_uuid}, which cannot change")
        return metadata


@dataclass(frozen=True, slots=True)
class UpgradeFormatVersion:
    """Raise the format version; nothing but metadata is rewritten. Lowering it is refused.

    ``manifest_lists`` are locations by snapshot id, for the snapshots of a v1 table that name their manifests
    themselves, which later versions do not allow.
    """

    format_version: Int
    manifest_lists: Mapping[int, str] = field(default_factory=FrozenDict)
    action: ClassVar[str] = "upgrade-format-version"

    def __post_init__(self) -> None:
        object.__setattr__(self, "manifest_lists", FrozenDict(self.manifest_lists))

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        if self.format_version > SUPPORTED_FORMAT_VERSIONS[-1]:
            raise UnsupportedFeature(f"format version {self.format_version} is not supported; versions 1 to 3 are")
        if self.format_version < metadata.format_version:
            raise InvalidArgument(
                f"table {metadata.location} has format version {metadata.format_version}, which cannot be lowered to "
                f"{self.format_version}"
            )
        if self.format_version == metadata.format_version:
            return metadata
        snapshots = metadata.snapshots
        if metadata.format_version == 1:
            snapshots = snapshots.mapped(lambda string: _upgraded(string, self.manifest_lists))
        return replace(
            metadata,
            format_version=self.format_version,
            table_uuid=metadata.table_uuid or str(uuid4()),
            snapshots=snapshots,
        )


@dataclass(frozen=True, slots=True)
class SetLocation:
    """Move the base location for new files of a table or view. Existing files stay in their location."""

    location: NameText
    action: ClassVar[str] = "set-location"

    def apply(self, metadata: Located, change: Drafts) -> Located:
        location = check_location(self.location)
        return metadata if location == metadata.location else replace(metadata, location=location)


@dataclass(frozen=True, slots=True)
class SetProperties:
    """Set table properties. ``format-version`` among them upgrades the table and is not stored."""

    updates: Mapping[NameText, ValueText]
    action: ClassVar[str] = "set-properties"

    def __post_init__(self) -> None:
        object.__setattr__(self, "updates", FrozenDict(self.updates))

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        updates = check_properties(self.updates)
        version = updates.pop(FORMAT_VERSION.name, None)
        if version is not None:
            metadata = UpgradeFormatVersion(int(version)).apply(metadata, change)
        _check_encryption(metadata, updates)
        if all(metadata.properties.get(name) == value for name, value in updates.items()):
            return metadata
        return replace(metadata, properties=change.updated("properties", metadata.properties, updates))


@dataclass(frozen=True, slots=True)
class RemoveProperties:
    """Remove properties of a table or view; a property that is not set is no error."""

    removals: Collection[NameText]
    action: ClassVar[str] = "remove-properties"

    def __post_init__(self) -> None:
        names = (self.removals,) if isinstance(self.removals, str) else self.removals
        object.__setattr__(self, "removals", frozenset(names))

    def apply(self, metadata: Located, change: Drafts) -> Located:
        if not any(name in metadata.properties for name in self.removals):
            return metadata
        if ENCRYPTION_KEY_ID.name in self.removals and ENCRYPTION_KEY_ID.name in metadata.properties:
            raise InvalidArgument(
                f"the property {ENCRYPTION_KEY_ID.name} of {metadata.location} cannot be removed: new files would be "
                "plain, and the encrypted ones unreadable",
                property=ENCRYPTION_KEY_ID.name,
            )
        return replace(metadata, properties=change.without("properties", metadata.properties, self.removals))


@dataclass(frozen=True, slots=True)
class AddEncryptionKey:
    """Add an encrypted key. Needs format version 3."""

    encryption_key: EncryptedKey
    action: ClassVar[str] = "add-encryption-key"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        if metadata.format_version < 3:
            raise InvalidArgument(f"table {metadata.location} must be upgraded to format version 3 to hold keys")
        known = metadata.encryption_keys.find(self.encryption_key.key_id)
        if known is None:
            return replace(metadata, encryption_keys=change.extended(metadata.encryption_keys, self.encryption_key))
        if known != self.encryption_key:
            raise InvalidArgument(f"the table has another encryption key '{known.key_id}' already")
        return metadata


@dataclass(frozen=True, slots=True)
class RemoveEncryptionKey:
    """Remove an encrypted key; a missing key is no error."""

    key_id: NameText
    action: ClassVar[str] = "remove-encryption-key"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        left = change.dropped(metadata.encryption_keys, [self.key_id])
        return metadata if left is metadata.encryption_keys else replace(metadata, encryption_keys=left)


def _check_encryption(metadata: TableMetadata, updates: Mapping[str, str]) -> None:
    """Refuse another master key, since the keys of the table are wrapped by the first, and versions without keys."""
    given, name = updates.get(ENCRYPTION_KEY_ID.name), ENCRYPTION_KEY_ID.name
    if given is None:
        return
    known = metadata.properties.get(name, given)
    if not given or known != given:
        raise InvalidArgument(
            f"the property {name} of {metadata.location} is '{known}', and cannot become '{given}'", property=name
        )
    check_encryption(updates, metadata.format_version)


def _upgraded(string: bytes, manifest_lists: Mapping[int, str]) -> bytes:
    """A snapshot of a v1 table in a table of a later version.

    It keeps sequence number 0 and all other fields. The number is written out, with the summary and the manifest list
    that later versions require, for strict readers.
    """
    try:
        members: dict[str, Any] = msgspec.json.decode(string, type=dict[str, msgspec.Raw])
    except DAMAGE:  # reported when the element is accessed
        return string
    members.setdefault("sequence-number", 0)
    if "manifest-list" not in members:
        location = manifest_lists.get(int(bytes(members["snapshot-id"])))
        if location is not None:
            members.pop("manifests", None)
            members["manifest-list"] = location
    members.setdefault("summary", {"operation": Operation.OVERWRITE})
    return msgspec.json.encode(members)
