"""The listener that shows the progress of operations: one bar at a time."""

from __future__ import annotations

from collections.abc import Mapping
from threading import RLock, get_ident
from typing import Final

from icefield.abc import (
    Event,
    OperationEvent,
    OperationFailed,
    OperationFinished,
    OperationProgress,
    OperationStarted,
)
from icefield.toolkit import PROGRESS, is_true, reset_after_fork

from icefield_progress.bars import ProgressBar, current_bar
from icefield_progress.places import is_interactive

_IDLE_SECONDS: Final = 10.0
_MOST_RUNNING: Final = 1_000
_IGNORED: Final = frozenset({"plan-scan"})
"""Operations that go on while their thread does other work."""


class BarListener:
    """Opens a bar at the first progress of an operation, and ends it with the operation.

    Progress outside of an operation has a bar of its own, which ends when everything is done. If the bar of a command
    is open, it shows the progress of all threads. The bar of a call shows the progress of its own thread; a call of
    another thread gets a bar after it has ended.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start anew, as in a forked process."""
        self._lock = RLock()  # a finalizer may tell an event while the lock is held
        self._running: dict[str, tuple[int, OperationEvent]] = {}
        self._bar: ProgressBar | None = None
        self._end: str | tuple[object, ...] = ""

    def hear(self, event: Event, properties: Mapping[str, str]) -> None:
        """Hear an event; ``properties`` are those of the catalog for this plugin: ``show``."""
        if isinstance(event, OperationStarted):
            if event.operation not in _IGNORED and len(self._running) < _MOST_RUNNING:
                self._running[event.id] = get_ident(), event
        elif isinstance(event, OperationFinished | OperationFailed):
            self._running.pop(event.id, None)
            self._close(event.id)
        elif isinstance(event, OperationProgress):
            with self._lock:
                bar = current_bar() or self._opened(event, properties)
                is_of_a_call = bar is self._bar
            if bar is not None and (bar.thread == get_ident() or (not is_of_a_call and PROGRESS.get() in (None, True))):
                bar.reach(event.step, event.done, event.total)
                if event.done == event.total:
                    self._close((event.operation, event.table))

    def _opened(self, event: OperationProgress, properties: Mapping[str, str]) -> ProgressBar | None:
        asked = PROGRESS.get()
        if asked is None:
            asked = is_true(properties, "show", is_interactive())
        if asked is not True or event.done == event.total:  # nothing is left to wait for
            return None
        outer = [each for thread, each in list(self._running.values()) if thread == get_ident()][:1]
        title = event.operation if not outer or outer[0].operation == "commit" else outer[0].operation
        name = f"{title} {'.'.join(event.table)}".rstrip()
        self._end = outer[0].id if outer else (event.operation, event.table)
        self._bar = ProgressBar(name, shown=True, idle_seconds=None if outer else _IDLE_SECONDS).__enter__()
        return self._bar

    def _close(self, end: str | tuple[object, ...]) -> None:
        with self._lock:
            if self._bar is None or end != self._end:
                return
            bar, self._bar = self._bar, None
        bar.close()


_LISTENER: Final = BarListener()
reset_after_fork(_LISTENER.forget)
hear = _LISTENER.hear
