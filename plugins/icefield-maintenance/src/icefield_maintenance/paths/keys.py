"""Keys of the copy of an encrypted table: each written file has a new key.

A plain file of an encrypted table stays plain. The key of a manifest list keeps its id, so that every version of the
copy finds it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from icefield.abc import FileKey
from icefield.metadata import EncryptedKey, TableMetadata
from icefield.storage import FileIO

from icefield_maintenance.paths.prefixes import Prefixes
from icefield_maintenance.table_stats import key_metadata_at


@dataclass(slots=True)
class CopiedKeys:
    """The file IO of a table for written files, and the new keys of its manifest lists."""

    io: FileIO
    metadata: TableMetadata
    new: dict[str, EncryptedKey] = field(default_factory=dict)
    _plain: FileIO = field(init=False)

    def __post_init__(self) -> None:
        self._plain = self.io.relative_to(self.io.base)
        self._plain.key_length = None

    def writing(self, key: object) -> FileIO:
        """The file IO that writes the copy of a file: encrypted, unless the file has no ``key``."""
        return self._plain if key is None else self.io

    def store(self, key: FileKey, key_id: str) -> None:
        """Wrap the key of a manifest list under the id of the list's key in the table."""
        *made, self.new[key_id] = self.io.encryption.store_key(self.metadata, key, key_id)
        self.metadata = replace(self.metadata, encryption_keys=self.metadata.encryption_keys.extended(made))

    def put_into(self, document: dict[str, Any], prefixes: Prefixes) -> None:
        """Put the new keys of manifest lists, and the new ids of keys of statistics, into the JSON of a version."""
        keys, held = {}, document.get("encryption-keys") or ()
        for each in held:
            key_id = each["key-id"]
            new = self.new.get(key_id)
            if new is not None:
                parent = self.metadata.encryption_keys.find(new.encrypted_by_id)
                keys[new.encrypted_by_id] = msgspec.to_builtins(parent)
                each = msgspec.to_builtins(new)
            elif prefixes.has(key_id):
                each = {**each, "key-id": prefixes.moved(key_id, "the file of a key:")}
            keys[each["key-id"]] = each
        if held:
            document["encryption-keys"] = list(keys.values())
        for file in document.get("statistics") or ():
            if file.get("key-metadata") == key_metadata_at(file["statistics-path"]):
                file["key-metadata"] = key_metadata_at(prefixes.moved(file["statistics-path"], "file"))
