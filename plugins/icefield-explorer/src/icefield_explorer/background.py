"""Costly work for pages, done in the background: a page waits a moment for it, and else shows that it is under way."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from icefield.toolkit import reset_after_fork

_AT_ONCE: Final = 4
_MANY_SLOW: Final = 32
"""Slow works beside which others begin one at a time: the slow ones may be at work, too."""

_MOST_SLOW: Final = 256
"""Slow works beside which no other one begins: a thread cannot be ended. There is one for each subject."""

_MOST_KEPT: Final = 64
_MOST_WAITING: Final = 64
_MOST_OF_ONE: Final = 8
"""Works of one subject that run or wait."""

_SLOW: Final = 10.0
"""Seconds after which a work is slow. Slow works have limits of their own."""

_FRESH: Final = 5.0
"""Seconds for which a result that is not kept waits for the page that asked for it."""


@dataclass(eq=False)
class _Work:
    subject: Hashable
    began: float | None = None
    ended: float = 0.0
    future: Future[Any] = field(default_factory=Future)

    def is_stale(self) -> bool:
        return self.future.done() and time.monotonic() - self.ended > _FRESH


class BackgroundResults:
    """Results by key; the oldest go first. A key states everything that its result depends on.

    Works of one subject, such as a table, run one after the other: a slow table holds up no other one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: OrderedDict[Hashable, _Work] = OrderedDict()
        self._open: dict[_Work, Callable[[], Any]] = {}

    def get(self, subject: Hashable, key: Hashable, work: Callable[[], Any], wait: float, *, keep: bool = True) -> Any:
        """The result of work, or None if it is not there after ``wait`` seconds; the work never returns None.

        Raises the error of the work, which is done again for the next page. Without ``keep``, a result is given once.
        """
        with self._lock:
            found = self._found.get((subject, key))
            if found is None or (not keep and found.is_stale()):
                of_subject = sum(each.subject == subject for each in self._open)
                slow = self._slow()
                others = sum(each.subject not in slow for each in self._open)
                if others >= _MOST_WAITING or of_subject >= _MOST_OF_ONE:
                    return None
                found = self._found[subject, key] = _Work(subject)
                self._open[found] = work
            self._found.move_to_end((subject, key))
            self._start()
            done = [each for each, one in self._found.items() if one.future.done() and one is not found]
            for old in done[: max(0, len(self._found) - _MOST_KEPT)]:
                del self._found[old]
        if not wait_for([found.future], timeout=wait).done:
            return None
        if not keep or found.future.exception() is not None:
            with self._lock:
                if self._found.get((subject, key)) is found:
                    del self._found[subject, key]
        return found.future.result()

    def _start(self) -> None:
        """Start the works that may begin now. The caller holds the lock."""
        running = {each.subject for each in self._open if each.began is not None}
        slow = len(self._slow())
        at_once = _AT_ONCE if slow < _MANY_SLOW else 1
        for each, do in self._open.items():
            if each.began is None and each.subject not in running:
                if len(running) - slow >= at_once or slow >= _MOST_SLOW:
                    return
                # A daemon: long work does not keep the process from ending.
                threading.Thread(target=self._do, args=(each, do), name="icefield-explorer", daemon=True).start()
                each.began = time.monotonic()
                running.add(each.subject)

    def _slow(self) -> set[Hashable]:
        """The subjects with a slow work. Their works count apart: storage that does not answer holds up no other."""
        late = time.monotonic() - _SLOW
        return {each.subject for each in self._open if each.began is not None and each.began <= late}

    def _do(self, work: _Work, do: Callable[[], Any]) -> None:
        result, failure = None, None
        try:
            result = do()
        except BaseException as error:
            failure = error
        work.ended = time.monotonic()
        with self._lock:
            del self._open[work]
            with suppress(RuntimeError):  # there is no thread now: the next page starts the next work
                self._start()
        if failure is None:
            work.future.set_result(result)
        else:
            work.future.set_exception(failure)


RESULTS = BackgroundResults()
"""The results of this process."""

LOADS = BackgroundResults()
"""The tables and views that this process is loading: they do not wait for results."""


def _begin_again() -> None:
    global RESULTS, LOADS
    RESULTS, LOADS = BackgroundResults(), BackgroundResults()


reset_after_fork(_begin_again)
