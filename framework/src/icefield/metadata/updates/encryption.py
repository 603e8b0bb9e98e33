"""Updates of the encryption keys, which are stored and never read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from icefield.errors import InvalidArgument
from icefield.metadata.entries import EncryptedKey
from icefield.metadata.table_metadata import TableMetadata
from icefield.metadata.updates.base import TableDrafts


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

    key_id: str
    action: ClassVar[str] = "remove-encryption-key"

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        if not metadata.encryption_keys.has(self.key_id):
            return metadata
        return replace(metadata, encryption_keys=change.dropped(metadata.encryption_keys, [self.key_id]))
