"""The transit engine of Vault on loopback, in this process, as its API documentation describes it."""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from key_service_doubles import Answer, KeyServiceDouble, MasterKeyDouble

TOKEN = "planted-token-of-vault"
_TARGET = re.compile(r"/v1/transit/(keys|encrypt|decrypt|datakey/plaintext)/([^/?]+)")


class Vault(KeyServiceDouble):
    """A server with master keys by name. As in Vault, ``encrypt`` makes a key that is not there."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: dict[str, MasterKeyDouble] = {}

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: dict[str, Any]) -> Answer:
        found = _TARGET.fullmatch(target)
        if headers.get("X-Vault-Token") != TOKEN or (
            found and found[2] in self.keys and not self.keys[found[2]].allowed
        ):
            return 403, {"errors": ["1 error occurred:\n\t* permission denied\n\n"]}
        if found is None:
            return 404, {"errors": []}
        action, name = found.groups()
        if action == "encrypt":
            self.keys.setdefault(name, MasterKeyDouble())
        if name not in self.keys:
            return (404, {"errors": []}) if method == "GET" else (400, {"errors": ["encryption key not found"]})
        return getattr(self, f"_{action.partition('/')[0]}")(self.keys[name], body)

    def _keys(self, key: MasterKeyDouble, body: dict[str, Any]) -> Answer:
        return 200, {"data": {"type": "aes256-gcm96", "latest_version": len(key.versions)}}

    def _encrypt(self, key: MasterKeyDouble, body: dict[str, Any]) -> Answer:
        return 200, {"data": {"ciphertext": _text(key, base64.b64decode(body["plaintext"]))}}

    def _datakey(self, key: MasterKeyDouble, body: dict[str, Any]) -> Answer:
        made = os.urandom(int(body["bits"]) // 8)
        return 200, {"data": {"plaintext": base64.b64encode(made).decode(), "ciphertext": _text(key, made)}}

    def _decrypt(self, key: MasterKeyDouble, body: dict[str, Any]) -> Answer:
        text = body.get("ciphertext", "")
        if not text:
            return _refused("missing ciphertext to decrypt")
        if not text.startswith("vault:v"):
            return _refused("invalid ciphertext: no prefix")
        version, colon, encoded = text.removeprefix("vault:v").partition(":")
        if not colon:
            return _refused("invalid ciphertext: wrong number of fields")
        if not re.fullmatch(r"\d+", version, re.ASCII):
            return _refused("invalid ciphertext: version number could not be decoded")
        if int(version) > len(key.versions):
            return _refused("invalid ciphertext: version is too new")
        if int(version) < 1:
            return _refused("ciphertext or signature version is disallowed by policy (too old)")
        try:
            data = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            return _refused("invalid ciphertext: could not decode base64")
        made = key.decrypt(data, int(version))
        if made is None:
            return _refused("cipher: message authentication failed")
        return 200, {"data": {"plaintext": base64.b64encode(made).decode()}}


def _text(key: MasterKeyDouble, data: bytes) -> str:
    return f"vault:v{len(key.versions)}:{base64.b64encode(key.encrypt(data)).decode()}"


def _refused(said: str) -> Answer:
    return 400, {"errors": [said]}


@pytest.fixture
def vault() -> Iterator[Vault]:
    """A server with the keys ``orders`` and ``others``, and the key ``forbidden``, which the token may not use."""
    with Vault() as server:
        server.keys = {name: MasterKeyDouble(allowed=name != "forbidden") for name in ("orders", "others", "forbidden")}
        yield server
