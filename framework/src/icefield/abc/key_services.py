"""The contract of a key service, which holds the master keys of encrypted tables.

A master key never leaves its service. The service wraps the key-encryption keys of a table; these encrypt the keys of
manifest lists, and manifest lists and manifests hold the keys of the files below them. So only processes that plan and
commit ask a service. Spec: "Encryption" and Appendix "Encryption keys" of the table specification.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple


class MasterKey(NamedTuple):
    """A master key as its service names it: the full id, and the version that wraps new keys, if there are versions."""

    key_id: str
    version: str | None = None


class GeneratedKey(NamedTuple):
    """A new key from a service: the key itself, and its wrapped form."""

    key: bytes
    wrapped: bytes

    def __repr__(self) -> str:
        return "GeneratedKey(...)"


class KeyService(ABC):
    """Wraps and unwraps keys with the master keys of a key management service. Threads share it.

    An instance is built from the properties of a catalog. It stays in its process: executors get the keys of their
    files, and no access to the service.

    Every method raises ``KeyUnavailable`` for a master key that the service does not have, ``AccessDenied`` for one
    that may not be used, and ``StorageError`` (with ``retryable``) when the service fails. No error holds a key.
    """

    contract: ClassVar[int] = 1
    """The version of this contract. A plugin states the versions that it fulfils in its ``Provider``."""

    key_life_seconds: ClassVar[float] = 3600
    """How long a process may use an unwrapped key before it asks the service again, in seconds.

    So a master key that was disabled stops to open tables after this time.
    """

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self.properties: dict[str, str] = dict(properties or {})

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a key service stays in its process")

    def __repr__(self) -> str:  # properties may hold credentials
        return f"<{type(self).__module__}.{type(self).__qualname__}>"

    @abstractmethod
    def wrap(self, key: bytes, key_id: str) -> bytes:
        """Encrypt a key of 16, 24 or 32 bytes with the present version of a master key."""

    @abstractmethod
    def unwrap(self, wrapped: bytes, key_id: str) -> bytes:
        """Decrypt a result of ``wrap``, by whichever version of the master key made it.

        Raises ``DecryptionFailed`` for bytes that this master key did not wrap.
        """

    def generate(self, key_id: str, length: int) -> GeneratedKey | None:
        """Make a key of ``length`` bytes in the service; None if it makes none, and the caller does."""
        return None

    def master_key(self, key_id: str) -> MasterKey:
        """The master key of an id or alias. Raises ``KeyUnavailable`` if there is none."""
        return MasterKey(key_id)
