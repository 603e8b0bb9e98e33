"""The base of key services behind a network: a client for each process, retries, and no secret in logs."""

from __future__ import annotations

import base64
import os
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Final

from icefield.abc import KeyService
from icefield.errors import IcefieldError, InvalidArgument, MissingPlugin, StorageError
from icefield.toolkit import Backoff, whole_number, without_credentials, without_debug_log

CONNECT_SECONDS: Final = "encryption.kms.connect-timeout"
SECONDS: Final = "encryption.kms.request-timeout"
RETRIES: Final = "encryption.kms.max-retries"

_WAITS: Final = Backoff(0.05, 2.0)


class RemoteKeyService(KeyService):
    """A key service that a client of an SDK asks. Wrapping twice harms nothing, so every request may be repeated.

    Properties: ``encryption.kms.connect-timeout`` and ``encryption.kms.request-timeout`` in seconds (5 and 10), and
    ``encryption.kms.max-retries`` (3).
    """

    packages: ClassVar[tuple[str, ...]]
    """The packages of the SDK. Their DEBUG messages would show keys and credentials."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(properties)
        self.connect_seconds = whole_number(self.properties, CONNECT_SECONDS, 5, 1)
        self.seconds = whole_number(self.properties, SECONDS, 10, 1)
        self._retries = whole_number(self.properties, RETRIES, 3, 0)
        self._lock = threading.Lock()
        self._made: tuple[int, Any] = (0, None)

    @abstractmethod
    def connect(self) -> Any:
        """Make a client, which threads share and which repeats no request."""

    @abstractmethod
    def meaning(self, error: Exception, key_id: str) -> IcefieldError:
        """The error of the contract for an error of the SDK, with the service's own words if they hold no secret."""

    def ask(self, key_id: str, request: Callable[[Any], Any], secret: bytes = b"") -> Any:
        """The answer to a request about a master key; ``secret`` is the key that the request carries.

        Raises the errors of the contract.
        """
        with without_debug_log(*self.packages):
            waits = iter(_WAITS.waits(self._retries))
            while True:
                try:
                    return request(self._client())
                except IcefieldError:
                    raise
                except Exception as error:  # an SDK raises errors of many libraries
                    failed = self._without_secrets(self.meaning(error, key_id), secret)
                wait = next(waits, None) if isinstance(failed, StorageError) and failed.retryable else None
                if wait is None:
                    raise failed  # without the SDK's error, which may hold the request
                time.sleep(wait)

    def down(self, reason: str) -> StorageError:
        """The error for a service that does not answer, or answers with an error of its own."""
        return StorageError(
            f"the key service {type(self).__name__} does not serve ({reason}); look at its address, and try again",
            retryable=True,
        )

    def required(self, name: str, example: str) -> str:
        """A property that the service cannot do without. Raises ``InvalidArgument``."""
        if value := self.properties.get(name):
            return value
        raise InvalidArgument(f"the key service {type(self).__name__} needs the catalog property {name}, as {example}")

    def _client(self) -> Any:
        with self._lock:
            process, client = self._made
            if process != os.getpid():  # a forked process does not share connections
                client = self.connect()
                self._made = (os.getpid(), client)
            return client

    def _without_secrets(self, error: IcefieldError, secret: bytes) -> IcefieldError:
        text = without_credentials(str(error), self.properties)
        for form in (base64.b64encode(secret).decode(), secret.hex()) if secret else ():
            text = text.replace(form, "…")
        if text == str(error):
            return error
        return type(error)(text, retryable=error.retryable) if isinstance(error, StorageError) else type(error)(text)


@contextmanager
def sdk_of(extra: str) -> Iterator[None]:
    """A context of imports from the SDK that an extra of this distribution brings. Raises ``MissingPlugin``."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingPlugin(
            f"the key service '{extra}' needs {error.name}, which is not installed: "
            f'pip install "icefield-encryption[{extra}]"'
        ) from error


def checked_length(key: Any, service: str) -> bytes:
    """A key that a service gave. Raises ``StorageError`` for an answer that is none."""
    if not isinstance(key, bytes) or len(key) not in (16, 24, 32):
        raise StorageError(f"the answer of the key service {service} holds no key of 16, 24 or 32 bytes")
    return key
