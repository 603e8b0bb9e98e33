"""Requests that carry an idempotency key are done once: another with the same key gets the same answer."""

from __future__ import annotations

import re
import threading
import time
import zlib
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import islice
from typing import Final, Protocol

from icefield.errors import InvalidArgument

from icefield_rest_server.answers import Answer, Refused

MOST_KEYS: Final = 10_000
MOST_BYTES: Final = 256 * 1024 * 1024
_PACKED_FROM: Final = 4096
_UUID: Final = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


class Begun(Enum):
    """The state of a request with a key that has no answer yet."""

    NEW = "new"
    AGAIN = "again"
    """An attempt at the request is over, and its outcome is not known; its process may have died."""


class IdempotencyStore(Protocol):
    """Keeps the answers to requests by their keys, separately for each client.

    Requests with the same key are done one at a time, across all processes of the server.
    """

    def begin(self, who: str, key: str, asked: str, timeout: float) -> Answer | Begun:
        """Return the answer kept for a key, or ``Begun``: the caller then does the request and calls ``end``.

        ``asked`` distinguishes requests. Raises ``InvalidArgument`` for an invalid key, and ``Refused`` where the key
        was used for another request, or where a request with it is still under way after ``timeout`` seconds.
        """

    def end(self, who: str, key: str, answer: Answer | None) -> None:
        """Keep an answer, unless it says that the server failed; None where the outcome is not known."""


def check_key(key: str) -> None:
    """Raise ``InvalidArgument`` unless a key is a UUID in the form of RFC 9562."""
    if not _UUID.fullmatch(key):
        raise InvalidArgument("the header Idempotency-Key must be a UUID, such as 01978a3c-7d7e-7c8f-9a4b-3f6d2c1b0a99")


def other_request() -> Refused:
    """The refusal of a key that was used before, for another request."""
    return Refused(400, "BadRequestException", "the idempotency key was used for another request")


def under_way() -> Refused:
    """The refusal of a request that is being done."""
    message = "a request with the same idempotency key is under way, or its outcome is not known"
    return Refused(503, "ServiceUnavailableException", message, {"Retry-After": "1"})


def packed(answer: Answer) -> tuple[bytes, bool]:
    """The body of an answer in its stored form, and whether it is compressed."""
    body = answer.encoded()
    return (zlib.compress(body, 1), True) if len(body) >= _PACKED_FROM else (body, False)


@dataclass(slots=True)
class _Entry:
    """A request under way, or its answer."""

    asked: str
    until: float
    done: threading.Event = field(default_factory=threading.Event)
    answer: Answer | None = None
    packed: bool = False
    is_unknown: bool = False
    """Whether an attempt is over and its outcome is not known."""

    @property
    def size(self) -> int:
        """The bytes that are kept."""
        return 0 if self.answer is None else len(self.answer.encoded())


class IdempotencyKeys:
    """Answers by key in the memory of one process, for a limited time.

    Bodies are compressed, and the oldest answers are evicted when all of them would take too much memory.
    """

    def __init__(self, seconds: float, most_bytes: int = MOST_BYTES) -> None:
        self._seconds, self._most_bytes, self._bytes = seconds, most_bytes, 0
        self._entries: OrderedDict[tuple[str, str], _Entry] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, who: str, key: str, asked: str, timeout: float) -> Answer | Begun:
        """See ``IdempotencyStore``."""
        check_key(key)
        end = time.monotonic() + timeout
        while True:
            with self._lock:
                self._drop_old()
                entry = self._entries.get((who, key))
                if entry is None:
                    self._entries[who, key] = _Entry(asked, time.monotonic() + self._seconds)
                    return Begun.NEW
                if entry.asked != asked:
                    raise other_request()
                if entry.is_unknown:
                    entry.is_unknown, entry.done = False, threading.Event()
                    return Begun.AGAIN
                done = entry.done
            if not done.wait(max(0.0, end - time.monotonic())):
                raise under_way()
            if (found := entry.answer) is not None:
                return replace(found, body=zlib.decompress(found.body)) if entry.packed else found

    def end(self, who: str, key: str, answer: Answer | None) -> None:
        """See ``IdempotencyStore``."""
        kept = answer if answer is not None and answer.status < 500 else None
        body, is_packed = (b"", False) if kept is None else packed(kept)
        with self._lock:
            entry = self._entries.get((who, key))
            if entry is None:
                return
            if kept is not None:
                entry.answer, entry.packed = replace(kept, body=body), is_packed
                self._bytes += entry.size
            elif answer is None:
                entry.is_unknown = True
            else:
                del self._entries[who, key]
            entry.done.set()  # under the lock: the next attempt has an event of its own
            self._drop_old()

    def _drop_old(self) -> None:
        """Drop entries after their time, and the oldest answers if there are too many, but no request under way."""
        now = time.monotonic()
        while self._entries:
            is_full = len(self._entries) >= MOST_KEYS or self._bytes > self._most_bytes
            entries = self._entries.items() if is_full else islice(self._entries.items(), 1)
            old = next((key for key, each in entries if each.until <= now or (is_full and each.done.is_set())), None)
            if old is None:
                return
            self._bytes -= self._entries.pop(old).size
