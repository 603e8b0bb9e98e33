"""A queue of events with a thread that sends them."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from typing import Any, Final

_MOST_WAITING: Final = 500
_AT_THE_END: Final = 2.0
"""The seconds that the end of the process waits for events that were not sent."""

_LOG: Final = logging.getLogger(__name__)

Made = Callable[[], Any]


class EventQueue:
    """Events for one destination. Above 500 that wait, new ones are dropped, with one warning until one is sent."""

    def __init__(self, emit: Callable[[Any], Any], thread: str) -> None:
        self._emit = emit
        self._waiting: queue.Queue[Made] = queue.Queue(_MOST_WAITING)
        self._has_warned = False
        threading.Thread(target=self._run, name=thread, daemon=True).start()

    def put(self, made: Made) -> None:
        """Queue an event that ``made`` makes in the thread of the queue. Never waits."""
        try:
            self._waiting.put_nowait(made)
        except queue.Full:
            self._warn("more than %d events wait", _MOST_WAITING)

    def flush(self) -> bool:
        """Wait until all events are sent, for two seconds at most. Return whether they are."""
        done = self._waiting.all_tasks_done
        with done:
            return done.wait_for(lambda: not self._waiting.unfinished_tasks, _AT_THE_END)

    def _run(self) -> None:
        while True:
            made = self._waiting.get()
            try:
                self._emit(made())
                self._has_warned = False
            except Exception as error:
                self._warn("%s", type(error).__name__)
            finally:
                del made  # it holds an event, which holds a schema and a filter
                self._waiting.task_done()

    def _warn(self, why: str, *given: object) -> None:
        if not self._has_warned:
            self._has_warned = True
            _LOG.warning("events of OpenLineage were dropped: " + why, *given)
