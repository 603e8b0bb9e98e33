"""The transit engine of HashiCorp Vault, and of OpenBao."""

from __future__ import annotations

import base64
import binascii
import re
from pathlib import Path
from typing import Any, Final

from icefield.abc import GeneratedKey, MasterKey
from icefield.errors import AccessDenied, DecryptionFailed, IcefieldError, InvalidArgument, KeyUnavailable, StorageError

from icefield_encryption.remote_key_service import RemoteKeyService, checked_length, sdk_of

with sdk_of("vault"):
    import hvac
    from hvac import exceptions

URL: Final = "encryption.vault.url"
TOKEN: Final = "encryption.vault.token"
TOKEN_FILE: Final = "encryption.vault.token-file"
MOUNT: Final = "encryption.vault.mount"
NAMESPACE: Final = "encryption.vault.namespace"
AUTHORITIES: Final = "encryption.vault.ca-file"

_NAME: Final = re.compile(r"\w[\w.-]{0,254}", re.ASCII)
_MOUNT: Final = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*", re.ASCII)
_PASSES: Final = (
    exceptions.BadGateway,
    exceptions.InternalServerError,
    exceptions.RateLimitExceeded,
    exceptions.VaultDown,
    exceptions.VaultNotInitialized,
)


class VaultTransit(RemoteKeyService):
    """The key service ``vault``. The id of a master key is its name in the transit engine.

    Properties: ``encryption.vault.url``, ``encryption.vault.token`` or ``encryption.vault.token-file`` (read anew for
    each request, so that an agent may renew it), ``encryption.vault.mount`` (``transit``),
    ``encryption.vault.namespace`` and ``encryption.vault.ca-file``. The token needs ``update`` on ``encrypt/<key>``,
    ``decrypt/<key>`` and ``datakey/plaintext/<key>``, and ``read`` on ``keys/<key>``.
    """

    packages = ("hvac", "requests", "urllib3")

    def wrap(self, key: bytes, key_id: str) -> bytes:
        """Encrypt a key with the latest version. The bytes are Vault's text, ``vault:v1:…``."""
        self.master_key(key_id)  # Vault would make a key with a mistyped name
        plaintext = base64.b64encode(key).decode()
        answer = self._asked(key_id, "encrypt_data", key, plaintext=plaintext)
        return _text(answer, "ciphertext").encode()

    def unwrap(self, wrapped: bytes, key_id: str) -> bytes:
        """Decrypt a key with the version that its text names."""
        answer = self._asked(key_id, "decrypt_data", ciphertext=wrapped.decode("ascii", "replace"))
        return checked_length(_decoded(_text(answer, "plaintext")), "Vault")

    def generate(self, key_id: str, length: int) -> GeneratedKey | None:
        """Make a key in the engine; None for a length that it does not make."""
        if length not in (16, 32):
            return None
        answer = self._asked(key_id, "generate_data_key", key_type="plaintext", bits=length * 8)
        key = checked_length(_decoded(_text(answer, "plaintext")), "Vault")
        return GeneratedKey(key, _text(answer, "ciphertext").encode())

    def master_key(self, key_id: str) -> MasterKey:
        """The name, and the number of the latest version."""
        version = self._asked(key_id, "read_key").get("data", {}).get("latest_version")
        return MasterKey(key_id, None if version is None else str(version))

    def _asked(self, key_id: str, method: str, secret: bytes = b"", **given: Any) -> dict[str, Any]:
        name, mount = _checked(key_id), self.properties.get(MOUNT, "transit")
        if not _MOUNT.fullmatch(mount):
            raise InvalidArgument(f"{MOUNT} is the path of a transit engine, such as transit, not '{mount}'")

        def request(client: hvac.Client) -> Any:
            client.token = self._token()
            return getattr(client.secrets.transit, method)(name=name, mount_point=mount, **given)

        answer = self.ask(key_id, request, secret)
        if not isinstance(answer, dict):  # a redirection, which would carry the token to another host
            raise StorageError(f"the answer is none of Vault's: {URL} may name a standby, or a proxy before Vault")
        return answer

    def connect(self) -> Any:
        """Make a client of hvac. It follows no redirection, which could carry the token elsewhere."""
        return hvac.Client(
            self.required(URL, "https://vault.example.com:8200"),
            namespace=self.properties.get(NAMESPACE),
            verify=self.properties.get(AUTHORITIES, True),
            timeout=(self.connect_seconds, self.seconds),
            allow_redirects=False,
        )

    def _token(self) -> str:
        if path := self.properties.get(TOKEN_FILE):
            try:
                return Path(path).read_text(encoding="utf-8").strip()
            except (OSError, ValueError):
                raise AccessDenied(f"{TOKEN_FILE}: '{path}' cannot be read") from None
        return self.required(TOKEN, f"a token, or else {TOKEN_FILE}, the path of a file with one")

    def meaning(self, error: Exception, key_id: str) -> IcefieldError:
        """The meaning of an error by its class and its words."""
        said = "; ".join(str(each) for each in getattr(error, "errors", None) or [type(error).__name__])
        words = f"Vault refuses a request for the master key '{key_id}': {said}"
        if isinstance(error, exceptions.InvalidPath) or "key not found" in said:
            return KeyUnavailable(f"Vault has no master key '{key_id}': {said}", key_id=key_id)
        if isinstance(error, (exceptions.Forbidden, exceptions.Unauthorized)):
            return AccessDenied(f"{words}; look at the policies of the token")
        if isinstance(error, exceptions.InvalidRequest):
            if "ciphertext" in said or "message authentication failed" in said:
                return DecryptionFailed(f"the master key '{key_id}' of Vault does not open a key: {said}")
            return AccessDenied(words) if "disallowed" in said else InvalidArgument(words)
        if isinstance(error, _PASSES) or not isinstance(error, exceptions.VaultError):
            return self.down(said)
        return StorageError(words)


def _checked(key_id: str) -> str:
    """The name is a part of a path, and may come from a table: it names a key and nothing else."""
    if not _NAME.fullmatch(key_id):
        raise KeyUnavailable(
            f"'{key_id}' is no master key of Vault: its name has letters, digits, '_', '.' and '-'", key_id=key_id
        )
    return key_id


def _text(answer: dict[str, Any], name: str) -> str:
    found = (answer.get("data") or {}).get(name)
    if not isinstance(found, str):
        raise StorageError(f"the answer of Vault holds no {name}; look at {URL} and at proxies before it")
    return found


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise DecryptionFailed("the answer of Vault holds no key") from None
