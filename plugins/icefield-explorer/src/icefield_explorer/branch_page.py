"""The page about branches and tags: their snapshots, and how long expiry keeps them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from icefield.errors import InvalidArgument
from icefield.metadata import (
    LONG_MAX,
    MAIN_BRANCH,
    MAX_REF_AGE_MS,
    MAX_SNAPSHOT_AGE_MS,
    MIN_SNAPSHOTS_TO_KEEP,
    Property,
    Snapshot,
    SnapshotRef,
    get_int,
)
from icefield_report.formats import count
from icefield_rest_server import Answer, PageRequest

from icefield_explorer.rendering import span
from icefield_explorer.visits import MOST_NAME, TableVisit

_EACH: Final = 100
"""Branches and tags in a page."""


@dataclass(frozen=True, slots=True)
class ListedRef:
    """A branch or tag of the list. ``age`` says how long it is kept, and the others which snapshots it keeps."""

    name: str
    ref: SnapshotRef
    snapshot: Snapshot | None
    age: str
    least: str
    snapshot_age: str

    @property
    def is_named(self) -> bool:
        """Whether an address can name it."""
        return len(self.name) <= MOST_NAME


def branches(request: PageRequest) -> Answer:
    """The page with all branches and tags, and their retention."""
    visit = TableVisit.of(request, "branches")
    first, every = visit.number("first"), visit.refs()
    entries = [_listed(visit, name) for name in every[first : first + _EACH]]
    return visit.page("branches.html", entries=entries, first=first, each=_EACH, count=len(every))


def _listed(visit: TableVisit, name: str) -> ListedRef:
    ref = visit.table.refs()[name]
    age = "always" if name == MAIN_BRANCH else _kept(visit, ref.max_ref_age_ms, MAX_REF_AGE_MS)
    least = snapshot_age = ""
    if ref.is_branch:
        least = _kept(visit, ref.min_snapshots_to_keep, MIN_SNAPSHOTS_TO_KEEP)
        snapshot_age = _kept(visit, ref.max_snapshot_age_ms, MAX_SNAPSHOT_AGE_MS)
    return ListedRef(name, ref, visit.table.snapshot_by_id(ref.snapshot_id), age, least, snapshot_age)


def _kept(visit: TableVisit, stated: int | None, default: Property) -> str:
    """A number of a branch or tag in words; without one, that of the table."""
    number = stated
    if number is None:
        try:
            number = get_int(visit.table.properties, default)
        except InvalidArgument as error:
            visit.faults[error.message] = None
            return "unknown"
    words = count(number) if default is MIN_SNAPSHOTS_TO_KEEP else "always" if number == LONG_MAX else span(number)
    return words if stated is not None else f"{words} (default)"
