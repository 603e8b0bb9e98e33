"""The base of the checks of a listener: its configuration, its bounds, and the count of its events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from icefield.abc import CommitMade, Event

from icefield_testing.base import Suite


class ListenerChecks(Suite):
    """The configuration and the methods that an author provides."""

    properties: ClassVar[Mapping[str, str]] = {}
    """The configuration: the properties of a catalog after ``events.<name of the plugin>.``."""

    unreachable: ClassVar[Mapping[str, str] | None] = None
    """A configuration with a destination that cannot be reached; None for a listener without a destination."""

    secrets: ClassVar[tuple[str, ...]] = ()
    """The names of the properties that hold credentials."""

    longest_seconds: ClassVar[float] = 0.01
    """The longest time that an operation waits for the listener at an event, in the median."""

    kept_events: ClassVar[int] = 1_000
    """The number of events that the listener may hold in memory after their delivery."""

    end_seconds: ClassVar[float] = 15.0
    """The time that another process of the checks, and the delivery of all events, may take at most."""

    def counted_event(self) -> Event:
        """An event that the listener delivers once, afresh; by default a commit."""
        return CommitMade(("db", "t"), "memory://kit/v1.metadata.json", 1, "append", 1, 0.5, "kit", "a-uuid", 1, {})

    def delivered(self, listener: Any) -> int | None:
        """The number of events that have arrived at the destination; None if it cannot be counted.

        A listener that works in the background ends its work first.
        """
        return None

    def count(self, listener: Any) -> int:
        """The number of events that have arrived; skips the check if they cannot be counted."""
        count = self.delivered(listener)
        if count is None:
            pytest.skip("the events that arrive cannot be counted (`delivered`)")
        return count
