"""The base of the checks of a key service: fixtures and methods that an author provides, and helpers."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from ssl import SSLContext
from typing import ClassVar, Final

import pytest
from icefield.abc import KeyService
from icefield.errors import DecryptionFailed

from icefield_testing.base import Suite

LENGTHS: Final = (16, 24, 32)
"""The lengths of keys in bytes, as of AES."""


class KeyServiceChecks(Suite):
    """A group of checks of ``icefield.abc.KeyService``."""

    key_ids: ClassVar[tuple[str, ...]] = ()
    """The ids of two master keys that may be used, for the fixtures ``key_id`` and ``other_key_id``."""

    unknown_key_ids: ClassVar[Sequence[str]] = ("no-such-master-key",)
    """Well-formed ids without a master key."""

    damages: ClassVar[int] = 256
    """The most bits of a wrapped key that a check flips, one at a time; they are spread over the bytes."""

    wraps_alike: ClassVar[bool] = False
    """Whether the algorithm gives equal bytes for equal keys, as the key wrap of RFC 3394 does."""

    credentials: ClassVar[Sequence[Mapping[str, str]]] = ()
    """The ways to give credentials, each as the properties that belong together, such as
    ``({"my.user": "me", "my.password": "{secret}"},)``. A secret takes the place of ``{secret}``."""

    time_out_properties: ClassVar[Mapping[str, str]] = {}
    """Properties with which the service waits a second or so for an answer, and repeats little. Without them, a service
    that never answers is not tried."""

    silence_seconds: ClassVar[float] = 15.0
    """The longest time that a call may take, with ``time_out_properties``, when the service never answers."""

    @pytest.fixture
    def key_service(self) -> KeyService:
        """The key service, with the two master keys ``key_id`` and ``other_key_id``."""
        raise pytest.UsageError("give a fixture `key_service` that returns a key service")

    @pytest.fixture
    def key_id(self) -> str:
        """The id of a master key that may be used."""
        return self._key_id(0, "key_id")

    @pytest.fixture
    def other_key_id(self) -> str:
        """The id of another master key that may be used."""
        return self._key_id(1, "other_key_id")

    @pytest.fixture
    def denied_key_ids(self) -> Collection[str]:
        """The ids of master keys that exist and may not be used: disabled, or forbidden. Without any, skip a check."""
        return ()

    @pytest.fixture
    def rotate(self) -> Callable[[str], object] | None:
        """A function that gives a master key a new version; None if master keys have no versions."""
        return None

    @pytest.fixture
    def service_port(self) -> int | None:
        """The port of the service on the loopback address. None if it is no server: faults are not tried."""
        return None

    @pytest.fixture
    def server_tls(self) -> SSLContext | None:
        """The TLS context of a server that the key service trusts; None if it is reached without TLS."""
        return None

    def key_service_at(self, port: int, key_service: KeyService, properties: Mapping[str, str]) -> KeyService:
        """The same key service with its requests sent to another port, and with further properties."""
        raise pytest.UsageError("give a method `key_service_at`, as there is a `service_port`")

    def _key_id(self, number: int, fixture: str) -> str:
        if len(self.key_ids) <= number:
            raise pytest.UsageError(f"state the ids of two master keys as `key_ids`, or give a fixture `{fixture}`")
        return self.key_ids[number]

    def with_properties(self, key_service: KeyService, properties: Mapping[str, str]) -> KeyService:
        """The same key service with further properties."""
        return type(key_service)({**key_service.properties, **properties})


def new_key(length: int = 32) -> bytes:
    """A random key."""
    return os.urandom(length)


def refuses(unwrap: Callable[[], bytes], what: str) -> bytes | None:
    """The key that came nevertheless; None after ``DecryptionFailed``. Fails for any other error."""
    try:
        return unwrap()
    except DecryptionFailed:
        return None
    except Exception as error:
        raise AssertionError(f"{what} raises {type(error).__name__}, not DecryptionFailed: {error}") from error


def error_of(call: Callable[[], object]) -> Exception | None:
    """The error of a call; None if it raises none."""
    try:
        call()
    except Exception as error:
        return error
    return None


def calls_of(key_service: KeyService, key_id: str, wrapped: bytes) -> dict[str, Callable[[], object]]:
    """A call of each method, by name."""
    return {
        "wrap": lambda: key_service.wrap(new_key(), key_id),
        "unwrap": lambda: key_service.unwrap(wrapped, key_id),
        "generate": lambda: key_service.generate(key_id, 32),
        "master_key": lambda: key_service.master_key(key_id),
    }
