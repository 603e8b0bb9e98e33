"""A keystore in a file of this machine: for development, tests, and tables that stay on one machine.

The file is JSON, and only its owner may read it::

    {"keys": {"orders": {"current": "1", "versions": {"1": "<base64 of 16, 24 or 32 bytes>"}}}}

A wrapped key is the version in UTF-8 after its length in one byte, then a nonce of 12 bytes, the ciphertext, and the
tag of 16 bytes. The additional data of AES GCM is the id of the master key.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from icefield.abc import KeyService, MasterKey
from icefield.errors import AccessDenied, DecryptionFailed, InvalidArgument, KeyUnavailable

PATH: Final = "encryption.local.keystore"
"""Property of a catalog: the path of the file."""

_NONCE, _TAG = 12, 16
_LENGTHS: Final = (16, 24, 32)


class LocalKeystore(KeyService):
    """The key service ``local``. The file is read for each key, so that a removed key is gone at once."""

    def wrap(self, key: bytes, key_id: str) -> bytes:
        """Encrypt a key with the current version of a master key."""
        version, versions = self._master(key_id)
        name, nonce = version.encode(), os.urandom(_NONCE)
        return bytes([len(name)]) + name + nonce + AESGCM(versions[version]).encrypt(nonce, key, key_id.encode())

    def unwrap(self, wrapped: bytes, key_id: str) -> bytes:
        """Decrypt a wrapped key with the version that it names."""
        _, versions = self._master(key_id)
        start = 1 + (wrapped[0] if wrapped else 0)
        version = wrapped[1:start].decode("utf-8", "replace")
        if len(wrapped) < start + _NONCE + _TAG or version not in versions:
            raise DecryptionFailed(f"a key was not wrapped by the master key '{key_id}' of the local keystore")
        nonce = wrapped[start : start + _NONCE]
        try:
            return AESGCM(versions[version]).decrypt(nonce, wrapped[start + _NONCE :], key_id.encode())
        except InvalidTag:
            raise DecryptionFailed(
                f"the master key '{key_id}' of the local keystore does not open a key: it is damaged, or another "
                "master key wrapped it"
            ) from None

    def master_key(self, key_id: str) -> MasterKey:
        """The id, and the current version."""
        return MasterKey(key_id, self._master(key_id)[0])

    def _master(self, key_id: str) -> tuple[str, dict[str, bytes]]:
        """The current version of a master key, and the key of each version."""
        path = self.properties.get(PATH)
        if not path:
            raise InvalidArgument(f"the key service 'local' needs the catalog property {PATH}: the path of its file")
        found = _keys(Path(path)).get(key_id)
        if found is None:
            raise KeyUnavailable(f"the local keystore {path} has no master key '{key_id}'", key_id=key_id)
        return found


def add_key(path: Path, key_id: str, length: int = 32) -> MasterKey:
    """Make a new version of a master key, and the key or the file where there is none; the new version wraps.

    Earlier versions stay, so that keys which they wrapped can be unwrapped. The file is replaced in one step.
    """
    if length not in _LENGTHS:
        raise InvalidArgument(f"a master key has 16, 24 or 32 bytes, not {length!r}")
    if not key_id:
        raise InvalidArgument("a master key needs an id")
    keys = _keys(path) if path.exists() else {}
    _, versions = keys.get(key_id, ("", {}))
    version = str(max((int(each) for each in versions if each.isdecimal()), default=0) + 1)
    keys[key_id] = (version, {**versions, version: os.urandom(length)})
    document = {
        name: {"current": current, "versions": {each: base64.b64encode(key).decode() for each, key in held.items()}}
        for name, (current, held) in keys.items()
    }
    new = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump({"keys": document}, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    return MasterKey(key_id, version)


def _keys(path: Path) -> dict[str, tuple[str, dict[str, bytes]]]:
    """The master keys of a file: for each id the current version, and the key of each version."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise AccessDenied(f"other users may open the local keystore {path}: run chmod 600 {path}")
            document = json.load(file)
        return {name: _versions(name, held) for name, held in document["keys"].items()}
    except FileNotFoundError:
        raise KeyUnavailable(f"there is no local keystore {path}; {PATH} states its path") from None
    except PermissionError as error:
        if isinstance(error, AccessDenied):
            raise
        raise AccessDenied(f"the local keystore {path} cannot be read: {error.strerror}") from None
    except (OSError, ValueError, TypeError, LookupError, AttributeError):  # the message might show a key
        raise InvalidArgument(f"{path} is no local keystore, or is damaged") from None


def _versions(name: str, held: Mapping[str, Any]) -> tuple[str, dict[str, bytes]]:
    try:
        versions = {each: base64.b64decode(key, validate=True) for each, key in held["versions"].items()}
    except binascii.Error:
        raise ValueError(name) from None
    current = held["current"]
    if current not in versions or any(len(key) not in _LENGTHS or not each for each, key in versions.items()):
        raise ValueError(name)
    return current, versions
