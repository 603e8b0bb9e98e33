"""Requests that carry an idempotency key are done once: another with the same key gets the same answer."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from uuid import UUID

from icefield.errors import InvalidArgument

from icefield_rest_server.answers import Answer, Refused

_MOST = 10_000


@dataclass(slots=True)
class _Entry:
    """A request under way, or its answer."""

    asked: str
    until: float
    done: threading.Event = field(default_factory=threading.Event)
    answer: Answer | None = None


class IdempotencyKeys:
    """Answers by key, for some time; those of requests that failed for a passing reason are not kept."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
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
        return entry.answer

    def end(self, who: str, key: str, answer: Answer) -> None:
        """Keep an answer, unless it says that the server failed."""
        with self._lock:
            entry = self._entries.get((who, key))
            if entry is None:
                return
            if answer.status < 500:
                entry.answer = answer
            else:
                del self._entries[who, key]
        entry.done.set()

    def _drop_old(self) -> None:
        now = time.monotonic()
        while self._entries:
            key, entry = next(iter(self._entries.items()))
            if entry.until > now and len(self._entries) < _MOST:
                return
            del self._entries[key]
