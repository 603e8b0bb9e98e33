"""Calls that are given up after some seconds: hdfs-native waits for a silent name node for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final, Generic, TypeVar

from icefield.toolkit import reset_after_fork

T = TypeVar("T")

_MOST_IDLE: Final = 16


class CallTimeout(Exception):
    """A call did not return in time; it may still take effect."""


class _TimedCall(Generic[T]):
    """A call, and its result or error."""

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


_Inbox = SimpleQueue[_TimedCall[Any] | None]
_IDLE: Final[list[_Inbox]] = []
"""Of threads that wait for a call. They do not hold up the end of the process, and no fork has them."""

reset_after_fork(_IDLE.clear)


def within(seconds: float, action: Callable[[], T]) -> T:
    """Run ``action`` on another thread, and return its result or raise its error.

    Raises ``CallTimeout`` if the call does not return in time. Its thread gets no other call, and ends when it returns.
    """
    call = _TimedCall(action)
    try:
        inbox = _IDLE.pop()
    except IndexError:
        inbox = SimpleQueue()
        threading.Thread(target=_work, args=(inbox,), name="icefield-hdfs", daemon=True).start()
    inbox.put(call)
    ended = False
    try:
        if not (ended := call.ends_within(seconds)):
            raise CallTimeout
    finally:
        if ended and len(_IDLE) < _MOST_IDLE:
            _IDLE.append(inbox)
        else:  # the thread ends
            inbox.put(None)
    return call.result()


def _work(inbox: _Inbox) -> None:
    while (call := inbox.get()) is not None:
        call.make()
        del call
