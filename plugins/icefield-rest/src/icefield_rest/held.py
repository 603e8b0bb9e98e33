"""Credentials of one process: one thread renews them for all users before they expire."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

from icefield.errors import IcefieldError
from icefield.toolkit import LruCache, reset_after_fork

_MOST_AHEAD: Final = 300.0
"""Seconds before the end at which others are asked for; a quarter of a short life."""

_PAUSE: Final = 10.0
"""Seconds between two requests for the same, where the first brought nothing better."""

_MOST_KEPT: Final = 1_000

Given = Mapping[str, str]
Ask = Callable[[], tuple[Given, float | None]]
"""Asks the service: the properties, and when they end in seconds since 1970."""


class SharedProperties:
    """Properties that end, shared by everything in this process that opens files with them."""

    def __init__(self, given: Given, began: float, ends: float | None) -> None:
        self._unlock()
        reset_after_fork(self._unlock)
        self._early = random.uniform(0.5, 1.0)  # many executors have the same, and do not ask all at once
        self._failed: IcefieldError | None = None
        self._ends: float | None = None
        self._next = 0.0
        self._kept: Any = None
        self._take(given, began, ends)

    def _unlock(self) -> None:
        self._lock = threading.Lock()

    def offer(self, given: Given, began: float, ends: float | None) -> None:
        """Take the properties of an answer if they expire later than the current ones."""
        if ends is not None and self._ends is not None and ends > self._ends:
            with self._lock:
                self._take(given, began, ends)

    def keep(self, what: Any) -> None:
        """Keep a strong reference to an object that others hold weakly: a connection to the service."""
        self._kept = what

    def waits(self) -> bool:
        """Whether ``current`` would wait for an answer."""
        now = time.time()
        return now >= self._next and (self._over(now) or not self._lock.locked())

    def current(self, ask: Ask) -> Given:
        """Return properties that do not expire soon. Raises the error of ``ask`` if there are no valid ones."""
        now = time.time()
        if now < self._next:
            return self._unless_failed(now)
        # While another thread asks, the current properties are used unless they have expired.
        if not self._lock.acquire(blocking=self._over(now)):
            return self._given
        try:
            now = time.time()
            if now < self._next:
                return self._unless_failed(now)
            try:
                given, ends = ask()
            except IcefieldError as error:
                left = (self._ends or now) - now
                self._failed, self._next = error, now + (min(_PAUSE, left / 4) if left > 0 else 1.0)
            else:
                self._take(given, now, ends)
                self._next = max(self._next, now + min(_PAUSE, max(0.0, (ends or now) - now) / 4))
            return self._unless_failed(now)
        finally:
            self._lock.release()

    def _take(self, given: Given, began: float, ends: float | None) -> None:
        ahead = 0.0 if ends is None else min(_MOST_AHEAD, max(0.0, ends - began) / 4) * self._early
        self._given, self._ends, self._failed = dict(given), ends, None
        self._next = float("inf") if ends is None else ends - ahead

    def _unless_failed(self, now: float) -> Given:
        if self._failed is not None and self._over(now):
            raise self._failed
        return self._given

    def _over(self, now: float) -> bool:
        return self._ends is not None and now >= self._ends


_HELD: Final[LruCache[Hashable, SharedProperties]] = LruCache(_MOST_KEPT)


def held_for(key: Hashable, given: Given, began: float, ends: float | None) -> SharedProperties:
    """Return the credentials that this process holds for ``key``: the given ones, unless the held ones expire later."""
    held = _HELD.get_or_make(key, lambda: SharedProperties(given, began, ends))
    held.offer(given, began, ends)
    return held
