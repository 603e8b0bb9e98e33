"""Rules of the doctor for encrypted tables."""

from __future__ import annotations

from typing import Final

from icefield.errors import DecryptionFailed, IcefieldError
from icefield_maintenance.doctor import Ledger, Result, Rule, RuleGroup, Subject

from icefield_encryption import key_metadata
from icefield_encryption.standard import is_key_encryption_key
from icefield_encryption.table_keys import needs_rotation, plain_statistics

_SPEC: Final = "Encryption"
KEYS: Final = Rule(
    "encryption-keys",
    _SPEC,
    "restore the metadata from a version that holds the key",
    Result.FAILED,
    no_repair="a lost key cannot be made again",
)
KEY_METADATA: Final = Rule(
    "key-metadata",
    _SPEC,
    "write the rows of the file anew",
    Result.FAILED,
    no_repair="the key of the file is lost",
)
PLAIN_FILES: Final = Rule(
    "plain-files",
    _SPEC,
    "run `icefield encryption rewrite`, which encrypts them, and compute statistics anew",
    Result.WARNING,
    no_repair="the files must be written anew",
)
ROTATION: Final = Rule(
    "key-rotation",
    _SPEC,
    "run `icefield encryption rotate`, or write to the table",
    Result.WARNING,
    no_repair="a person decides when keys change",
)


def examine(subject: Subject, ledger: Ledger) -> None:
    """Look at the keys of an encrypted table, and at the key metadata of its files."""
    metadata = subject.metadata
    for rule in (KEYS, KEY_METADATA, PLAIN_FILES, ROTATION):
        ledger.look_at(rule)
    keys = {key.key_id: key for key in metadata.encryption_keys}
    for key in keys.values():
        if not is_key_encryption_key(key) and key.encrypted_by_id not in keys:
            found = f"the key '{key.key_id}' is encrypted by '{key.encrypted_by_id}', which is missing"
            ledger.breach(KEYS, subject.metadata_location, found)
    for snapshot in metadata.snapshots:
        if snapshot.key_id is not None and snapshot.key_id not in keys:
            found = f"snapshot {snapshot.snapshot_id} needs the key '{snapshot.key_id}', which is missing"
            ledger.breach(KEYS, subject.metadata_location, found)
    if needs_rotation(metadata):
        ledger.breach(ROTATION, subject.metadata_location, "every key-encryption key is older than two years")
    for location in plain_statistics(metadata):
        ledger.breach(PLAIN_FILES, location, "the file of statistics is plain")
    seen: set[str] = set()
    for head in subject.heads():
        if head.key_id is None and head.manifest_list is not None:
            ledger.breach(PLAIN_FILES, head.manifest_list, "the manifest list is plain")
        for manifest in subject.manifests(head):
            if manifest.manifest_path not in seen:
                seen.add(manifest.manifest_path)
                _look(ledger, manifest.manifest_path, manifest.key_metadata)
                try:
                    files = subject.entries(manifest).data_files()
                except IcefieldError:
                    continue  # another rule reports the manifest
                for file in files:
                    _look(ledger, file.file_path, file.key_metadata)


def _look(ledger: Ledger, location: str, data: bytes | None) -> None:
    if data is None:
        ledger.breach(PLAIN_FILES, location, "the file is plain")
        return
    try:
        key_metadata.decode(data, location)
    except DecryptionFailed as error:
        ledger.breach(KEY_METADATA, location, str(error))


RULES: Final = RuleGroup(
    (KEYS, KEY_METADATA, PLAIN_FILES, ROTATION), examine, lambda subject: subject.metadata.is_encrypted
)
