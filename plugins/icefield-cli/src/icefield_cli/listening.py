"""The listener of a command for Icefield's events: commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield import abc, hookimpl

if TYPE_CHECKING:
    from icefield.abc import CommitMade, Event


class Listener:
    """A listener for the events of one command."""

    def __init__(self) -> None:
        self.commits: list[CommitMade] = []
        self._maintenance: str | None = None

    @hookimpl
    def icefield_events(self, event: Event) -> None:
        """See ``icefield.plugins.hookspecs``."""
        if isinstance(event, abc.CommitMade):
            self.commits.append(event)

    def begin(self, operation: str) -> None:
        """Note the change of a table that begins, so that the message for an interrupt can name it."""
        self._maintenance = operation

    def interrupted(self) -> str:
        """Return the message for an interrupt. It counts only commits that the catalog has confirmed."""
        if self._maintenance is None:
            return "interrupted"
        again = f"{self._maintenance} can be run again, and finishes what is left"
        if not self.commits:
            return f"interrupted before a commit was confirmed; {again}"
        made = [f"snapshot {commit.snapshot_id}" for commit in self.commits if commit.snapshot_id is not None]
        return f"interrupted after a commit was made{f' ({made[-1]} is current)' if made else ''}; {again}"
