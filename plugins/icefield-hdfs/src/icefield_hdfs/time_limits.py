"""Calls that are given up after some seconds: hdfs-native waits for a silent name node for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_MOST_IDLE = 16


class GaveUp(Exception):
    """A call did not come back in time; it may still be done."""


class _Call(Generic[T]):
    """A call, and what became of it."""

    def __init__(self, action: Callable[[], T]) -> None:
        self._action = action
        self._ended = threading.Event()
        self._result: Any = None
        self._error: BaseException | None = None

    def make(self) -> None:
        try:
            self._result = self._action()
        except BaseException as error:
            self._error = error
        self._ended.set()

    def ends_within(self, seconds: float) -> bool:
        return self._ended.wait(seconds)

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        found: T = self._result
        return found


class TimeLimit:
    """Makes calls on threads of its own, and leaves behind those that do not come back within ``seconds``.

    The threads do not hold up the end of the process.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._idle: list[SimpleQueue[_Call[Any] | None]] = []  # of threads that wait for a call

    def run(self, action: Callable[[], T]) -> T:
        """What ``action`` returns or raises; ``GaveUp`` when it is not back in time."""
        call = _Call(action)
        try:
            inbox = self._idle.pop()
        except IndexError:
            inbox = SimpleQueue()
            threading.Thread(target=_work, args=(inbox,), name="icefield-hdfs", daemon=True).start()
        inbox.put(call)
        if not call.ends_within(self._seconds):
            raise GaveUp  # its thread gets no other call
        self._release(inbox)
        return call.result()

    def _release(self, inbox: SimpleQueue[_Call[Any] | None]) -> None:
        if len(self._idle) < _MOST_IDLE:
            self._idle.append(inbox)
        else:
            inbox.put(None)

    def __del__(self) -> None:
        for inbox in getattr(self, "_idle", ()):
            inbox.put(None)


def _work(inbox: SimpleQueue[_Call[Any] | None]) -> None:
    while (call := inbox.get()) is not None:
        call.make()
        del call
