"""Key services that show or keep keys and credentials, or that threads and forked processes cannot use."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

from icefield.abc import GeneratedKey
from icefield.errors import IcefieldError, InvalidArgument, StorageError

from mutants import Mutant, of
from mutants.key_services.right import RightKeyService

_LOG = logging.getLogger(__name__)


class ShowsItsProperties(RightKeyService):
    """Shows its token in its repr."""

    def __repr__(self) -> str:
        return f"ShowsItsProperties({self.properties})"


class LogsKeys(RightKeyService):
    """Logs each request at DEBUG."""

    def sent(self, method: str, path: str, body: dict[str, Any] | None) -> tuple[int, dict[str, Any]]:
        _LOG.debug("%s %s %s", method, path, body)
        return super().sent(method, path, body)


class RepeatsAnswers(RightKeyService):
    """Repeats the words of the service, which repeats the request."""

    def refusal(self, status: int, key_id: str, said: str) -> IcefieldError:
        return InvalidArgument(f"refused: {said}") if "refused" in said else super().refusal(status, key_id, said)


class NamesTheKeyInAnError(RightKeyService):
    """Says which key it could not wrap."""

    def wrap(self, key: bytes, key_id: str) -> bytes:
        try:
            return super().wrap(key, key_id)
        except IcefieldError as error:
            raise type(error)(f"{error}: {key!r}", **error.data) from None


class CausesShowTokens(RightKeyService):
    """Keeps an error of its client with the headers as the cause of its own."""

    def outage(self, error: Exception) -> IcefieldError:
        made = StorageError("the service does not answer", retryable=True)
        made.__cause__ = ConnectionError(f"X-Vault-Token: {self.properties['token']}")
        return made

    def ask(self, method: str, action: str, key_id: str, body: dict[str, Any] | None) -> dict[str, Any]:
        try:
            status, said = self.sent(method, self.path(action, key_id), body)
        except OSError as error:
            raise self.outage(error)  # noqa: B904 - the fault of this mutant
        if status == 200:
            return dict(said["data"])
        raise self.refusal(status, key_id, " ".join(said.get("errors", [])))


class TravelsWithTasks(RightKeyService):
    """Can be pickled, with its token."""

    def __reduce__(self) -> tuple[Any, ...]:
        return TravelsWithTasks, (self.properties,)


class CachesInItsClass(RightKeyService):
    """All services share the keys that one of them unwrapped."""

    known: ClassVar[dict[tuple[str, bytes], bytes]] = {}

    def unwrap(self, wrapped: bytes, key_id: str) -> bytes:
        if (key_id, wrapped) not in self.known:
            self.known[key_id, wrapped] = super().unwrap(wrapped, key_id)
        return self.known[key_id, wrapped]


class KeepsTheKeyInAnAttribute(RightKeyService):
    """Keeps the wrapped key where another thread changes it."""

    def unwrap(self, wrapped: bytes, key_id: str) -> bytes:
        self.present = wrapped, key_id
        time.sleep(0.01)
        return super().unwrap(*self.present)


class AsksInAThread(RightKeyService):
    """A pool of threads, which no forked process has, makes its requests."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(properties)
        self._pool = ThreadPoolExecutor(1)

    def sent(self, method: str, path: str, body: dict[str, Any] | None) -> tuple[int, dict[str, Any]]:
        return self._pool.submit(super().sent, method, path, body).result(5)


class BelongsToOneProcess(RightKeyService):
    """Refuses to work in a forked process."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(properties)
        self._process = os.getpid()

    def unwrap(self, wrapped: bytes, key_id: str) -> bytes:
        if self._process != os.getpid():
            raise StorageError("the connection belongs to another process")
        return super().unwrap(wrapped, key_id)


class ShowingKey(GeneratedKey):
    """A generated key with the repr of a tuple."""

    def __repr__(self) -> str:
        return f"ShowingKey({self.key!r})"


class ShowsGeneratedKeys(RightKeyService):
    """The repr of its generated keys is that of a tuple."""

    def generate(self, key_id: str, length: int) -> GeneratedKey | None:
        made = super().generate(key_id, length)
        return None if made is None else ShowingKey(*made)


_SHOWN = "test_no_key_and_no_credential_is_shown_said_or_logged"
_FORKED = "test_a_forked_process_uses_the_key_service"

MUTANTS: list[Mutant] = of(
    {
        ShowsItsProperties: (_SHOWN, "is in the repr of the key service"),
        LogsKeys: (_SHOWN, "is in the log of a key service"),
        RepeatsAnswers: (_SHOWN, "is in InvalidArgument of"),
        NamesTheKeyInAnError: (_SHOWN, "the secret of the key as bytes is in"),
        CausesShowTokens: (_SHOWN, "is in ConnectionError of"),
        TravelsWithTasks: ("test_a_key_service_stays_in_its_process", "DID NOT RAISE"),
        CachesInItsClass: (
            "test_a_key_is_not_answered_from_the_memory_of_another_service",
            "another's memory answers",
        ),
        KeepsTheKeyInAnAttribute: ("test_threads_share_a_key_service", "other"),
        AsksInAThread: (_FORKED, "a forked process that uses the key service ended with 1"),
        BelongsToOneProcess: (_FORKED, "a forked process that uses the key service ended with 1"),
        ShowsGeneratedKeys: ("test_a_generated_key_unwraps_to_itself", "the repr of a generated key shows the key"),
    }
)
