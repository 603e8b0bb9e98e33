"""Listeners that are broken in another process, at the end of a process, or when their destination is dead."""

from __future__ import annotations

import atexit
import logging
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from icefield.abc import CommitMade

from mutants import Mutant, of
from mutants.listeners.hearing import _IS_CHECKED, QueuedListener

_DEAD = ":9"


class FileListener(QueuedListener):
    """A right listener: it appends a byte to a file for each commit, and ends its work when the process ends."""

    seconds = 0.0
    last_seconds = 1.0

    def __init__(self, path: str | None = None) -> None:
        super().__init__()
        if path is None:
            descriptor, path = tempfile.mkstemp()
            os.close(descriptor)
            atexit.register(os.unlink, path)
        self.path = path
        atexit.register(self.finish)

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        FileListener.__init__(self, state["path"])

    def finish(self) -> None:
        """Wait for the last events, not longer than ``last_seconds``."""
        deadline = time.monotonic() + self.last_seconds
        while self._queue.unfinished_tasks and time.monotonic() < deadline:
            time.sleep(0.01)

    def deliver(self, event: Any) -> None:
        time.sleep(self.seconds)
        if isinstance(event, CommitMade):
            with open(self.path, "ab") as file:
                file.write(b".")

    def delivered(self) -> int:
        self._queue.join()
        return Path(self.path).stat().st_size


class LosesItsLastEvents(FileListener):
    """Leaves its thread alone at the end of the process."""

    seconds = 0.01
    last_seconds = 0.0


class WaitsForADeadDestination(QueuedListener):
    """Waits at the end of the process for a destination that does not answer."""

    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        if properties.get("url", "").endswith(_DEAD):
            atexit.register(_IS_CHECKED.wait)
        super().take(event, properties)


class DeafAfterAFork(QueuedListener):
    """Hears the process in which it was made, and no other."""

    def __init__(self) -> None:
        super().__init__()
        self.process = os.getpid()

    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        if self.process == os.getpid():
            super().take(event, properties)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.process = os.getpid()


class SetsUpAtItsFirstEvent(QueuedListener):
    """Sets a variable of the environment once for a process, so that a later check does not see a change."""

    is_set: ClassVar[bool] = False

    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        if not self.is_set:
            type(self).is_set = True
            os.environ["MUTANT_ENDPOINT"] = properties.get("url", "")
        super().take(event, properties)


class KeepsEventsForADeadDestination(QueuedListener):
    """Keeps each event until its destination answers."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Any] = []

    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        if properties.get("url", "").endswith(_DEAD):
            self.kept.append(event)
        super().take(event, properties)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.kept = []


class WarnsOfEachEvent(QueuedListener):
    """Warns of each event that its destination does not take."""

    def take(self, event: Any, properties: Mapping[str, str]) -> None:
        if properties.get("url", "").endswith(_DEAD):
            logging.getLogger(__name__).warning("the event was not delivered")
        super().take(event, properties)


_DESTINATION = "test_a_dead_destination_fills_neither_memory_nor_log"

MUTANTS: list[Mutant] = of(
    {
        DeafAfterAFork: (
            "test_events_of_a_forked_process_are_delivered",
            "25 of 25 events of a forked process are lost",
        ),
        SetsUpAtItsFirstEvent: (
            "test_the_first_event_changes_nothing_of_the_process",
            "the first events have changed the environment",
        ),
        WaitsForADeadDestination: (
            "test_the_end_of_a_process_waits_for_no_destination",
            "another process did not end within 12 s",
        ),
        LosesItsLastEvents: (
            "test_the_end_of_a_process_loses_no_event",
            "of 25 events are lost at the end of a process",
        ),
        KeepsEventsForADeadDestination: (_DESTINATION, "1,500 of 1,500 events are held for a dead destination"),
        WarnsOfEachEvent: (_DESTINATION, "1,500 warnings of 1,500 events that could not be delivered"),
    }
)
