"""A visit of one page about a table: the table, its name, and the key for results about its version."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from icefield import Table
from icefield.errors import IcefieldError, InvalidArgument, NoSuchSnapshot
from icefield.metadata import MAIN_BRANCH, Snapshot
from icefield_report.facts import Facts, facts_of
from icefield_rest_server import Answer, PageRequest, Refused

from icefield_explorer import background
from icefield_explorer.rendering import page

_TABS: Final = (
    ("table", "Overview"),
    ("schema", "Schema"),
    ("snapshots", "Snapshots"),
    ("branches", "Branches"),
    ("files", "Files"),
    ("health", "Health"),
    ("maintenance", "Maintenance"),
    ("plan", "Plan"),
    ("rows", "Rows"),
)

_MOST_CHOICES: Final = 200
"""Branches and tags among which a form gives a choice; the page Branches has all."""

MOST_NAME: Final = 1000
"""Characters of a branch or tag that an address names."""

WAIT: Final = 0.5
"""Seconds that a page waits for all of its results together."""


def loaded(request: PageRequest, name: tuple[str, ...], load: Callable[[tuple[str, ...]], Any]) -> Any:
    """A table or view, by a method of the request's access. A slow storage holds up no page about another one.

    Raises ``Refused`` while it is being loaded, and the errors of ``load``.
    """
    subject, key = (request.access.server, name), (request.access, load.__name__)
    found = background.LOADS.get(subject, key, lambda: load(name), WAIT, keep=False)
    if found is None:
        message = f"{'.'.join(name):.300} is being loaded; this page loads again by itself"
        raise Refused(503, "ServiceUnavailableException", message, {"Refresh": "2"})
    return found


@dataclass
class TableVisit:
    """A table at one version, as the client of a request may see it."""

    request: PageRequest
    table: Table
    tab: str
    until: float = field(default_factory=lambda: time.monotonic() + WAIT)
    is_pending: bool = False
    """Whether a result is under way."""
    faults: dict[str, None] = field(default_factory=dict)
    """The messages of results that failed, each once."""

    @classmethod
    def of(cls, request: PageRequest, tab: str, *, files: bool = False) -> TableVisit:
        """The visit that a request's path names. With ``files``, the client needs the right to plan scans.

        Raises ``Refused``, ``NoSuchTable``.
        """
        name = request.name(1, "table")
        if len(name) < 2:
            raise Refused(404, "NotFoundException", "a table has a namespace")
        table = loaded(request, name, request.access.table)
        if files:
            request.access.check_files(name)
        return cls(request, table, tab)

    @property
    def sees_files(self) -> bool:
        """Whether the client may plan scans, and so see files and their statistics."""
        return self.request.access.allows("planTableScan", self.table.name())

    def asked(self, name: str, most: int = 4000) -> str:
        """A parameter of the query, without blanks around it. Raises ``InvalidArgument`` if it is too long."""
        given = self.request.query.get(name, "").strip()
        if len(given) > most:
            raise InvalidArgument(f"the parameter {name} has more than {most:,} characters")
        return given

    def number(self, name: str, most: int = 1_000_000) -> int:
        """A whole number of the query, from 0 on; 0 without one."""
        given = self.asked(name, 20) or "0"
        if not given.isascii() or not given.isdecimal() or int(given) > most:
            raise InvalidArgument(f"the parameter {name} is a number from 0 to {most:,}")
        return int(given)

    def snapshot(self, given: str) -> Snapshot | None:
        """The snapshot of an id, a branch or a tag; the current one without either. Raises ``NoSuchSnapshot``."""
        if not given:
            return self.table.current_snapshot()
        found = self.table.snapshot_by_name(given)
        if found is None and given.isascii() and given.lstrip("-").isdecimal() and len(given) < 21:
            found = self.table.snapshot_by_id(int(given))
        if found is None:
            raise NoSuchSnapshot(f"the table has no snapshot, branch or tag {given:.100}")
        return found

    def refs(self) -> list[str]:
        """The names of the branches and tags, the main branch first."""
        return sorted(self.table.refs(), key=lambda name: (name != MAIN_BRANCH, name))

    def result(self, what: str, work: Callable[[], Any], *of: Any) -> Any:
        """The result of costly work about this version, or None while it is under way, or if it failed.

        The page says so then, and shows its other parts. ``what`` and ``of`` state what the result depends on.
        """
        metadata = self.table.metadata
        version = (self.table.metadata_location, metadata.table_uuid, metadata.last_updated_ms)
        subject = (self.request.access.server, self.table.name())
        try:
            found = background.RESULTS.get(
                subject, (what, *of, *version), work, max(0.0, self.until - time.monotonic())
            )
        except IcefieldError as error:
            self.faults[error.message] = None
            return None
        self.is_pending |= found is None
        return found

    def facts(self, snapshot_id: int | None = None) -> Facts | None:
        """The numbers of the table, at a snapshot or now, or None while they are being read, or if that failed."""
        found: Facts | None = self.result("facts", lambda: facts_of(self.table, snapshot_id), snapshot_id)
        return found

    def page(self, template: str, **values: Any) -> Answer:
        """The page, with the heading and the tabs of all pages about a table."""
        own: dict[str, Any] = {"name": self.table.name(), "table": self.table, "tab": self.tab, "tabs": _TABS}
        own |= {"pending": self.is_pending, "faults": list(self.faults)}
        own["refs"] = [each for each in self.refs() if len(each) <= MOST_NAME][:_MOST_CHOICES]
        return page(self.request, template, refresh=self.is_pending, **own, **values)
