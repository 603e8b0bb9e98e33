"""Requests that carry an idempotency key are done once: another with the same key gets the same answer."""

from __future__ import annotations

import threading
import time
import zlib
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from uuid import UUID

from icefield.errors import InvalidArgument

from icefield_rest_server.answers import Answer, Refused

_MOST = 10_000
_MOST_BYTES = 256 * 1024 * 1024
_PACKED_FROM = 4096


@dataclass(slots=True)
class _Entry:
    """A request under way, or its answer."""

    asked: str
    until: float
    done: threading.Event = field(default_factory=threading.Event)
    answer: Answer | None = None
    packed: bool = False

    @property
    def size(self) -> int:
        """The bytes that are kept."""
        return 0 if self.answer is None else len(self.answer.encoded())


class IdempotencyKeys:
    """Answers by key, for some time; those of requests that failed for a passing reason are not kept.

    Bodies are compressed, and the oldest answers go where all of them would take too much memory.
    """

    def __init__(self, seconds: float, most_bytes: int = _MOST_BYTES) -> None:
        self._seconds, self._most_bytes, self._bytes = seconds, most_bytes, 0
        self._entries: OrderedDict[tuple[str, str], _Entry] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, who: str, key: str, asked: str, timeout: float) -> Answer | None:
        """The answer that the key has; None where the request is to be done, and then ``end`` is to be called.

        Raises ``InvalidArgument`` for what is no key, and ``Refused`` where the key was used for another request, or
        where a request with it is still under way after a while.
        """
        try:
            UUID(key)
        except ValueError as error:
            raise InvalidArgument("the header Idempotency-Key must be a UUID") from error
        with self._lock:
            self._drop_old()
            entry = self._entries.get((who, key))
            if entry is None:
                self._entries[who, key] = _Entry(asked, time.monotonic() + self._seconds)
                return None
        if entry.asked != asked:
            raise Refused(400, "BadRequestException", "the idempotency key was used for another request")
        if not entry.done.wait(timeout) or entry.answer is None:
            message = "a request with the same idempotency key is under way, or its outcome is not known"
            raise Refused(503, "ServiceUnavailableException", message, {"Retry-After": "1"})
        found = entry.answer
        return replace(found, body=zlib.decompress(found.body)) if entry.packed else found

    def end(self, who: str, key: str, answer: Answer) -> None:
        """Keep an answer, unless it says that the server failed."""
        body = answer.encoded() if answer.status < 500 else b""
        packed = len(body) >= _PACKED_FROM
        with self._lock:
            entry = self._entries.get((who, key))
            if entry is None:
                return
            if answer.status < 500:
                entry.answer, entry.packed = replace(answer, body=zlib.compress(body, 1) if packed else body), packed
                self._bytes += entry.size
            else:
                del self._entries[who, key]
            self._drop_old()
        entry.done.set()

    def _drop_old(self) -> None:
        now = time.monotonic()
        while self._entries:
            key, entry = next(iter(self._entries.items()))
            if entry.until > now and len(self._entries) < _MOST and self._bytes <= self._most_bytes:
                return
            self._bytes -= entry.size
            del self._entries[key]
