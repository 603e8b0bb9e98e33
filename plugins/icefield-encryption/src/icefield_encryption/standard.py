"""The standard encryption of tables: keys of manifest lists below key-encryption keys below a master key.

A table's metadata holds its encryption keys. A key-encryption key is wrapped by the master key (``encrypted-by-id`` is
the table's ``encryption.key-id``) and has the time of its making. It encrypts the key metadata of manifest lists, and
of files of statistics, by AES GCM, with that time as additional data, so that nobody can prolong its life. The key of
a file of statistics has the file's location as its id. Spec: "Encryption Keys".
"""

from __future__ import annotations

import base64
import binascii
import os
import time
from collections.abc import Callable
from threading import Lock
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from icefield.abc import FileKey, InputFile, KeyService, OutputStream, TableEncryption, TableMetadata
from icefield.errors import DecryptionFailed, InvalidMetadata, StorageError
from icefield.metadata import EncryptedKey

from icefield_encryption import key_metadata
from icefield_encryption.streams import DecryptingFile, EncryptingStream, stored_size

KEY_TIMESTAMP: Final = "KEY_TIMESTAMP"
"""Property of a key-encryption key: when it was made, in milliseconds since 1970-01-01 UTC."""

KEY_LIFE_MS: Final = 730 * 24 * 3600 * 1000
"""How long a key-encryption key encrypts new keys: two years, after NIST SP 800-57, part 1, section 5.3.6.7.b."""

_NONCE, _TAG, _AAD_PREFIX = 12, 16, 16
_KEPT_KEYS: Final = 1000


class StandardEncryption(TableEncryption):
    """The encryption ``standard``."""

    def __init__(self, key_service: Callable[[], KeyService]) -> None:
        super().__init__(key_service)
        self._unwrapped: dict[tuple[bytes, str], tuple[float, bytes]] = {}
        self._lock = Lock()

    def new_key(self, length: int) -> FileKey:
        return FileKey(os.urandom(length), os.urandom(_AAD_PREFIX))

    def key_metadata(self, key: FileKey) -> bytes:
        return key_metadata.encode(key)

    def key_of(self, data: bytes, location: str) -> FileKey:
        return key_metadata.decode(data, location)

    def stored_size(self, size: int) -> int:
        return stored_size(size)

    def decrypting(self, source: InputFile, key: FileKey, location: str) -> InputFile:
        return DecryptingFile(source, key, location)

    def encrypting(self, sink: OutputStream, key: FileKey) -> OutputStream:
        return EncryptingStream(sink, key)

    def stored_key(self, metadata: TableMetadata, key_id: str) -> FileKey:
        held = metadata.encryption_keys.find(key_id)
        if held is None:
            raise _missing(metadata, key_id)
        parent = None if held.encrypted_by_id is None else metadata.encryption_keys.find(held.encrypted_by_id)
        if parent is None:
            raise _missing(metadata, held.encrypted_by_id or key_id)
        data = _decoded(metadata, held)
        try:
            plain = AESGCM(self._key(metadata, parent)).decrypt(data[:_NONCE], data[_NONCE:], _stamp(metadata, parent))
        except (InvalidTag, ValueError):
            raise DecryptionFailed(
                f"table {metadata.location}: the encryption key '{parent.key_id}' does not open the key '{key_id}'; "
                "one of the two was changed",
                location=metadata.location,
            ) from None
        return key_metadata.decode(plain, metadata.location)

    def store_key(self, metadata: TableMetadata, key: FileKey, key_id: str | None = None) -> tuple[EncryptedKey, ...]:
        parent = usable_key(metadata)
        made: tuple[EncryptedKey, ...] = ()
        if parent is None:
            parent = self.new_key_encryption_key(metadata)
            made = (parent,)
        nonce = os.urandom(_NONCE)
        cipher = AESGCM(self._key(metadata, parent))
        data = nonce + cipher.encrypt(nonce, key_metadata.encode(key), _stamp(metadata, parent))
        return (*made, EncryptedKey(key_id or _new_id(), _text(data), parent.key_id))

    def new_key_encryption_key(self, metadata: TableMetadata) -> EncryptedKey:
        """A new key-encryption key, wrapped by the master key of the table."""
        service, master, length = self.key_service(), _master_id(metadata), _key_length(metadata)
        made = service.generate(master, length)
        key, wrapped = made if made is not None else (key := os.urandom(length), service.wrap(key, master))
        _check_wrapped(service, key, wrapped, master)
        found = EncryptedKey(_new_id(), _text(wrapped), master, {KEY_TIMESTAMP: str(now_ms())})
        self._remember(wrapped, master, key, service.key_life_seconds)
        return found

    def wrapped_anew(self, metadata: TableMetadata, key: EncryptedKey) -> EncryptedKey:
        """A key-encryption key, wrapped by the present version of the master key."""
        plain, master = self._key(metadata, key), _master_id(metadata)
        service = self.key_service()
        wrapped = service.wrap(plain, master)
        _check_wrapped(service, plain, wrapped, master)
        return EncryptedKey(key.key_id, _text(wrapped), master, dict(key.properties))

    def _key(self, metadata: TableMetadata, parent: EncryptedKey) -> bytes:
        """A key-encryption key, unwrapped, for as long as its service allows."""
        wrapped, master = _decoded(metadata, parent), _master_id(metadata)
        if parent.encrypted_by_id != master:  # the metadata must not choose other master keys
            raise DecryptionFailed(
                f"table {metadata.location}: the master key '{master}' has not wrapped the key '{parent.key_id}'",
                location=metadata.location,
            )
        with self._lock:
            until, key = self._unwrapped.get((wrapped, master), (0.0, b""))
        if time.monotonic() < until:
            return key
        service = self.key_service()
        key = service.unwrap(wrapped, master)
        self._remember(wrapped, master, key, service.key_life_seconds)
        return key

    def _remember(self, wrapped: bytes, master: str, key: bytes, seconds: float) -> None:
        with self._lock:
            if len(self._unwrapped) >= _KEPT_KEYS:
                self._unwrapped.clear()
            self._unwrapped[wrapped, master] = time.monotonic() + seconds, key


def now_ms() -> int:
    """The present time, in milliseconds."""
    return time.time_ns() // 1_000_000


def is_key_encryption_key(key: EncryptedKey) -> bool:
    """Whether a key encrypts other keys of the table."""
    return KEY_TIMESTAMP in key.properties


def usable_key(metadata: TableMetadata) -> EncryptedKey | None:
    """The newest key-encryption key of the table's master key that may still encrypt new keys."""
    master, oldest = _master_id(metadata), now_ms() - KEY_LIFE_MS
    found = [
        (made, key)
        for key in metadata.encryption_keys
        if key.encrypted_by_id == master and is_key_encryption_key(key) and (made := _made_ms(metadata, key)) > oldest
    ]
    return max(found, key=lambda each: each[0])[1] if found else None


def _check_wrapped(service: KeyService, key: bytes, wrapped: bytes, master: str) -> None:
    """Have the service open what it wrapped: a key that was damaged on its way would lose every file below it."""
    if service.unwrap(wrapped, master) != key:
        raise StorageError(f"the key service {service!r} does not give back a key that it wrapped; nothing was changed")


def _made_ms(metadata: TableMetadata, key: EncryptedKey) -> int:
    stamp = key.properties.get(KEY_TIMESTAMP, "")
    if not (stamp.isascii() and stamp.isdecimal() and len(stamp) < 20):
        raise InvalidMetadata(
            f"table {metadata.location}: the encryption key '{key.key_id}' does not state when it was made",
            location=metadata.location,
        )
    return int(stamp)


def _stamp(metadata: TableMetadata, key: EncryptedKey) -> bytes:
    _made_ms(metadata, key)
    return key.properties[KEY_TIMESTAMP].encode()


def _master_id(metadata: TableMetadata) -> str:
    found = metadata.properties.get("encryption.key-id")
    if not found:
        raise InvalidMetadata(
            f"table {metadata.location} is encrypted, and its property encryption.key-id is missing",
            location=metadata.location,
        )
    return found


def _key_length(metadata: TableMetadata) -> int:
    return int(metadata.properties.get("encryption.data-key-length", "16"))


def _decoded(metadata: TableMetadata, key: EncryptedKey) -> bytes:
    try:
        return base64.b64decode(key.encrypted_key_metadata, validate=True)
    except (binascii.Error, ValueError):
        raise DecryptionFailed(
            f"table {metadata.location}: the encryption key '{key.key_id}' is damaged", location=metadata.location
        ) from None


def _missing(metadata: TableMetadata, key_id: str) -> DecryptionFailed:
    return DecryptionFailed(
        f"table {metadata.location} has no encryption key '{key_id}', which one of its files needs",
        location=metadata.location,
    )


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _new_id() -> str:
    return _text(os.urandom(16))
