"""A right key service in plain HTTP over the transit engine of Vault: broken ones are made of it."""

from __future__ import annotations

import base64
import http.client
import json
import re
from typing import Any

from icefield.abc import GeneratedKey, KeyService, MasterKey
from icefield.errors import AccessDenied, DecryptionFailed, IcefieldError, KeyUnavailable, StorageError

_NAME = re.compile(r"\w[\w-]*", re.ASCII)


class RightKeyService(KeyService):
    """Each request has a connection of its own, and is made once."""

    def wrap(self, key: bytes, key_id: str) -> bytes:
        self.master_key(key_id)
        return self.encrypted(key, key_id)

    def encrypted(self, key: bytes, key_id: str) -> bytes:
        text = base64.b64encode(key).decode()
        return str(self.ask("POST", "encrypt", key_id, {"plaintext": text})["ciphertext"]).encode()

    def unwrap(self, wrapped: bytes, key_id: str) -> bytes:
        given = {"ciphertext": wrapped.decode("ascii", "replace")}
        return base64.b64decode(self.ask("POST", "decrypt", key_id, given)["plaintext"])

    def generate(self, key_id: str, length: int) -> GeneratedKey | None:
        made = self.ask("POST", "datakey/plaintext", key_id, {"bits": 8 * length})
        return GeneratedKey(base64.b64decode(made["plaintext"]), str(made["ciphertext"]).encode())

    def master_key(self, key_id: str) -> MasterKey:
        return MasterKey(key_id, str(self.ask("GET", "keys", key_id, None)["latest_version"]))

    def checked(self, key_id: str) -> str:
        """The id as a part of a path."""
        if not _NAME.fullmatch(key_id):
            raise KeyUnavailable("this id is no name of a master key", key_id=key_id)
        return key_id

    def path(self, action: str, key_id: str) -> str:
        return f"/v1/transit/{action}/{self.checked(key_id)}"

    def ask(self, method: str, action: str, key_id: str, body: dict[str, Any] | None) -> dict[str, Any]:
        path = self.path(action, key_id)
        try:
            status, said = self.sent(method, path, body)
        except (OSError, http.client.HTTPException) as error:
            raise self.outage(error) from None
        if status == 200:
            found: dict[str, Any] = said["data"]
            return found
        raise self.refusal(status, key_id, " ".join(said.get("errors", [])))

    def sent(self, method: str, path: str, body: dict[str, Any] | None) -> tuple[int, dict[str, Any]]:
        connection = http.client.HTTPConnection("127.0.0.1", int(self.properties["port"]), timeout=self.seconds())
        try:
            headers = {"X-Vault-Token": self.properties["token"]}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"{}")
        finally:
            connection.close()

    def seconds(self) -> float | None:
        return float(self.properties.get("seconds", "10"))

    def outage(self, error: Exception) -> IcefieldError:
        return StorageError(f"the service does not answer: {type(error).__name__}", retryable=True)

    def refusal(self, status: int, key_id: str, said: str) -> IcefieldError:
        if status == 403:
            return AccessDenied(f"the master key '{key_id}' may not be used")
        if status == 404 or "not found" in said:
            return KeyUnavailable(f"there is no master key '{key_id}'", key_id=key_id)
        if status == 400:
            return DecryptionFailed(f"the master key '{key_id}' opens no such key")
        return StorageError(f"the service fails with status {status}", retryable=True)
