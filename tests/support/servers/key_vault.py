"""Azure Key Vault on loopback, in this process and with TLS, as its API documentation describes it."""

from __future__ import annotations

import base64
import re
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from certificates import Certified, certified
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from key_service_doubles import Answer, KeyServiceDouble

TOKEN = "planted-token-of-azure"
_TARGET = re.compile(r"/keys/([0-9A-Za-z-]+)(?:/([0-9a-f]{32}|versions|))?(?:/(wrapkey|unwrapkey))?/?\?.*", re.ASCII)
_PADDING = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None)
_CREATED = 1_700_000_000


@dataclass
class RsaKeyDouble:
    """A master key: the private key of each version by its id, the last one last."""

    versions: dict[str, rsa.RSAPrivateKey] = field(default_factory=dict)
    enabled: bool = True
    allowed: bool = True

    def rotate(self) -> None:
        self.versions[uuid4().hex] = rsa.generate_private_key(65537, 2048)


class KeyVault(KeyServiceDouble):
    """A vault with master keys by name."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        super().__init__(tls)
        self.keys: dict[str, RsaKeyDouble] = {}

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: dict[str, Any]) -> Answer:
        host = headers["Host"]
        if headers.get("Authorization") != f"Bearer {TOKEN}":
            # The SDK sends a token to hosts below the domain of the challenge: 127.0.0.1 is taken to be below 0.0.1.
            challenge = f'Bearer authorization="https://{host}/kit", resource="https://{host.partition(".")[2]}"'
            return 401, {"headers": {"WWW-Authenticate": challenge}, **_error("Unauthorized", "a token is needed")}
        found = _TARGET.fullmatch(target)
        if found is None or found[1] not in self.keys:
            return 404, _error("KeyNotFound", f"A key with (name/id) {target} was not found in this key vault.")
        name, version, action = found.groups()
        key = self.keys[name]
        if not key.allowed:
            return 403, _error("Forbidden", "The user, group or application does not have keys permission on key vault")
        address = f"https://{host}/keys/{name}"
        if version == "versions":
            return 200, {
                "value": [
                    {"kid": f"{address}/{each}", "attributes": _attributes(key, number)}
                    for number, each in enumerate(key.versions)
                ],
                "nextLink": None,
            }
        version = version or [*key.versions][-1]
        if version not in key.versions:
            return 404, _error("KeyNotFound", "no such version")
        if not action:
            number = [*key.versions].index(version)
            return 200, {
                "key": _public(f"{address}/{version}", key.versions[version]),
                "attributes": _attributes(key, number),
            }
        if not key.enabled:
            return 403, _error("Forbidden", f"Operation {action} is not allowed on a disabled key.")
        value = base64.urlsafe_b64decode(body["value"] + "==")
        try:
            private = key.versions[version]
            made = (
                private.decrypt(value, _PADDING)
                if action == "unwrapkey"
                else private.public_key().encrypt(value, _PADDING)
            )
        except ValueError:
            return 400, _error("BadParameter", "The parameter is incorrect.")
        return 200, {"kid": f"{address}/{version}", "value": _encoded(made)}


def _error(code: str, said: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": said}}


def _attributes(key: RsaKeyDouble, number: int) -> dict[str, Any]:
    return {"enabled": key.enabled, "created": _CREATED + number, "updated": _CREATED + number}


def _public(kid: str, key: rsa.RSAPrivateKey) -> dict[str, Any]:
    numbers = key.public_key().public_numbers()
    n, e = (_encoded(each.to_bytes((each.bit_length() + 7) // 8, "big")) for each in (numbers.n, numbers.e))
    return {"kid": kid, "kty": "RSA", "key_ops": ["wrapKey", "unwrapKey"], "n": n, "e": e}


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@cache
def _private(name: str) -> rsa.RSAPrivateKey:
    """The key of a name; keys take long to make."""
    return rsa.generate_private_key(65537, 2048)


@pytest.fixture(scope="session")
def certificate_of_vault(tmp_path_factory: pytest.TempPathFactory) -> Certified:
    """The certificate of the vault, which is its own authority."""
    folder: Path = tmp_path_factory.mktemp("vault")
    return certified(folder, "vault")


@pytest.fixture
def tls_of_vault(certificate_of_vault: Certified, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A context of servers that clients of this process trust."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", certificate_of_vault.certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate_of_vault.certificate, certificate_of_vault.key)
    return context


@pytest.fixture
def key_vault(tls_of_vault: ssl.SSLContext) -> Iterator[KeyVault]:
    """A vault with the keys ``orders`` and ``others``, and two that may not be used: ``forbidden``, ``disabled``."""
    with KeyVault(tls_of_vault) as server:
        server.keys = {
            name: RsaKeyDouble({uuid4().hex: _private(name)}, allowed=name != "forbidden", enabled=name != "disabled")
            for name in ("orders", "others", "forbidden", "disabled")
        }
        yield server
