"""Costly work for pages, done in the background: a page waits a moment for it, and else shows that it is under way."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from typing import Any, Final

from icefield.toolkit import reset_after_fork
from icefield_rest_server import Refused

_THREADS: Final = 4
_MOST_KEPT: Final = 64
_MOST_WAITING: Final = 16


class BackgroundResults:
    """Results by key; the oldest go first. A key states everything that its result depends on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns = threading.BoundedSemaphore(_THREADS)
        self._found: OrderedDict[Hashable, Future[Any]] = OrderedDict()

    def get(self, key: Hashable, work: Callable[[], Any], wait: float) -> Any:
        """The result of work, or None if it is under way after ``wait`` seconds; the work never returns None.

        Raises the error of the work, which is done again for the next page, and ``Refused`` if too much is waiting.
        """
        with self._lock:
            future = self._found.get(key)
            if future is None:
                if sum(not each.done() for each in self._found.values()) >= _MOST_WAITING:
                    message = "the explorer is busy with other tables; load the page again later"
                    raise Refused(503, "ServiceUnavailableException", message, {"Retry-After": "5"})
                future = self._found[key] = Future()
                # A daemon: long work does not keep the process from ending.
                threading.Thread(target=self._do, args=(future, work), name="icefield-explorer", daemon=True).start()
            self._found.move_to_end(key)
            done = [each for each, one in self._found.items() if one.done() and each != key]
            for old in done[: max(0, len(self._found) - _MOST_KEPT)]:
                del self._found[old]
        if not wait_for([future], timeout=wait).done:
            return None
        if future.exception() is not None:
            with self._lock:
                self._found.pop(key, None)
        return future.result()

    def _do(self, future: Future[Any], work: Callable[[], Any]) -> None:
        with self._turns:
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)


RESULTS = BackgroundResults()
"""The results of this process."""


def _begin_again() -> None:
    global RESULTS
    RESULTS = BackgroundResults()


reset_after_fork(_begin_again)
