"""Google Cloud KMS on loopback, in this process: its REST interface as the API documentation describes it."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any

import google_crc32c
import pytest
from key_service_doubles import Answer, KeyServiceDouble, MasterKeyDouble

TOKEN = "planted-token-of-google"
RING = "projects/kit/locations/global/keyRings/ring/cryptoKeys"
_TARGET = re.compile(rf"/v1/({RING}/[\w-]+)(:encrypt|:decrypt|)(\?.*)?", re.ASCII)


class GoogleKmsDouble(KeyServiceDouble):
    """A server with master keys by their full names."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: dict[str, MasterKeyDouble] = {}
        self.damaged_answers = 0
        """The number of the next answers whose data changes on the way."""
        self.checks_requests = True

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: dict[str, Any]) -> Answer:
        if headers.get("Authorization") != f"Bearer {TOKEN}":
            return _refused(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.")
        found = _TARGET.fullmatch(target)
        if found is None or found[1] not in self.keys:
            return _refused(404, "NOT_FOUND", f"{target} not found.")
        name, key = found[1], self.keys[found[1]]
        if not key.allowed:
            return _refused(403, "PERMISSION_DENIED", f"Permission 'cloudkms.*' denied on resource '{name}'.")
        version = f"{name}/cryptoKeyVersions/{len(key.versions)}"
        if not found[2]:
            return 200, {"name": name, "purpose": "ENCRYPT_DECRYPT", "primary": {"name": version, "state": "ENABLED"}}
        if not key.enabled:
            return _refused(400, "FAILED_PRECONDITION", f"{version} is not enabled, current state is: DISABLED.")
        if found[2] == ":encrypt":
            plain = base64.b64decode(body["plaintext"])
            if int(body["plaintextCrc32c"]) != google_crc32c.value(plain):
                return _mismatch("plaintext")
            data = len(key.versions).to_bytes(2, "big") + key.encrypt(plain)
            answer = {"name": version, "verifiedPlaintextCrc32c": self.checks_requests}
            return 200, {**answer, **self._checked("ciphertext", data)}
        data = base64.b64decode(body.get("ciphertext", ""))
        if int(body["ciphertextCrc32c"]) != google_crc32c.value(data):
            return _mismatch("ciphertext")
        number = int.from_bytes(data[:2], "big")
        made = key.decrypt(data[2:], number) if 0 < number <= len(key.versions) else None
        if made is None:
            said = "Decryption failed: verify that 'name' refers to the correct CryptoKey."
            return _refused(400, "INVALID_ARGUMENT", said)
        return 200, self._checked("plaintext", made)

    def _checked(self, name: str, data: bytes) -> dict[str, Any]:
        """The data with its checksum, as the interface writes numbers of 64 bits."""
        checksum = str(google_crc32c.value(data))
        if self.damaged_answers:
            self.damaged_answers -= 1
            data = data[:-1] + bytes([data[-1] ^ 1])
        return {name: base64.b64encode(data).decode(), f"{name}Crc32c": checksum}


def _mismatch(name: str) -> Answer:
    said = f"The checksum in field {name}_crc32c did not match the data in field {name}."
    return _refused(400, "INVALID_ARGUMENT", said)


def _refused(code: int, status: str, said: str) -> Answer:
    return code, {"error": {"code": code, "status": status, "message": said}}


@pytest.fixture
def google_kms() -> Iterator[GoogleKmsDouble]:
    """A server with the keys ``orders`` and ``others``, and two that may not be used: ``forbidden``, ``disabled``."""
    with GoogleKmsDouble() as server:
        server.keys = {
            f"{RING}/{name}": MasterKeyDouble(allowed=name != "forbidden", enabled=name != "disabled")
            for name in ("orders", "others", "forbidden", "disabled")
        }
        yield server
