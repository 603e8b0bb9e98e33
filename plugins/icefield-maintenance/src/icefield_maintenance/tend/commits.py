"""A listener that notes the tables with new commits, so that they are maintained soon afterwards."""

from __future__ import annotations

from threading import Condition

from icefield import hookimpl
from icefield.abc import CommitMade, Event


class CommittedTables:
    """The tables of commits that this process has made: a plugin, and at the same time their collection.

    Open a catalog with ``plugins=Plugins.installed(extra=[committed])``, and call ``take`` in a loop.
    """

    def __init__(self) -> None:
        self._names: set[tuple[str, ...]] = set()
        self._changed = Condition()

    @hookimpl
    def icefield_events(self, event: Event) -> None:
        """Note the table of a commit that made a snapshot."""
        if isinstance(event, CommitMade) and event.snapshot_id is not None and event.operation != "replace":
            with self._changed:
                self._names.add(event.table)
                self._changed.notify_all()

    def take(self, seconds: float = 0.0) -> list[tuple[str, ...]]:
        """The tables with commits since the last call, sorted; waits up to so many seconds for the first."""
        with self._changed:
            self._changed.wait_for(lambda: self._names, seconds)
            found, self._names = self._names, set()
        return sorted(found)
