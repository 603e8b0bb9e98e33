"""The base class of two changes that are made at the same time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar

from icefield.abc import (
    CatalogAbility,
    CatalogBackend,
    Committed,
    Conflict,
    NamespaceName,
    Page,
    TableName,
    ViewCatalog,
)
from icefield.errors import CommitFailed, NoSuchNamespace
from icefield.metadata import TableMetadata

if TYPE_CHECKING:
    from icefield_testing.catalogs.racing import RaceChecks

Said = Exception | None
"""The error of a change; None if the change reported success."""


class Pair(ABC):
    """Two changes in one namespace, and the check of the state that they leave."""

    needs: ClassVar[frozenset[CatalogAbility]] = frozenset()
    views: ClassVar[bool] = False
    needs_conditions: ClassVar[bool] = False
    """Whether the store must change or delete a namespace under a condition."""

    def __init__(self, checks: RaceChecks, backend: CatalogBackend, space: NamespaceName) -> None:
        self.checks, self.backend, self.space = checks, backend, space
        self.one, self.two = (*space, "one"), (*space, "two")
        self.free, self.another = (*space, "free"), (*space, "another")

    @classmethod
    def is_for(cls, backend: CatalogBackend) -> bool:
        """Whether the catalog can make both changes."""
        return backend.abilities >= cls.needs and (isinstance(backend, ViewCatalog) or not cls.views)

    def prepare(self) -> None:
        """Make the state before the changes."""
        self.backend.create_namespace(self.space, {"old": "1"})

    def open(self, through: CatalogBackend) -> None:
        """Prepare the first change, up to the change itself, on the backend ``through``."""
        self.through = through

    @abstractmethod
    def first(self) -> None: ...

    @abstractmethod
    def rival(self) -> None: ...

    @abstractmethod
    def judge(self, first: Said, rival: Said) -> None:
        """Check the state that is left."""

    # -- helpers

    def tables(self, *names: TableName) -> dict[TableName, str]:
        """The uuids of the tables that load by these names. Fails if one is not listed."""
        found = {name: self.checks._metadata_or_none(self.backend, name) for name in names}
        there = {name: str(metadata.table_uuid) for name, metadata in found.items() if metadata is not None}
        self.check_listed("table", there, self.backend.list_tables)
        return there

    def views_of(self, *names: TableName) -> dict[TableName, str]:
        """The uuids of the views that load by these names. Fails if one is not listed."""
        assert isinstance(self.backend, ViewCatalog)
        found = {name: self.backend.load_view(name) for name in names}
        there = {name: str(view.metadata.view_uuid) for name, view in found.items() if view is not None}
        self.check_listed("view", there, self.backend.list_views)
        return there

    def check_listed(
        self, kind: str, there: Mapping[TableName, str], list_all: Callable[[NamespaceName], Page[TableName]]
    ) -> None:
        """Fail if a name that loads is in a namespace that is gone, or is not listed."""
        if not there:
            return
        try:
            listed = list_all(self.space).items
        except NoSuchNamespace as error:
            gone = f"{', '.join(map(dotted, there))} is a {kind} in a namespace that is gone"
            raise AssertionError(gone) from error
        hidden = [dotted(name) for name in there if name not in listed]
        assert not hidden, f"{', '.join(hidden)} loads and is not listed"

    def new_table(self, table: TableName) -> tuple[Committed, TableMetadata]:
        """Create a table. Returns the result of the strategy, and the metadata."""
        proposal = self.checks._table_creation(self.backend, table)
        made = self.backend.strategy(table, proposal.metadata.location).commit(None, proposal)
        assert isinstance(made, Committed), "nobody else was there"
        return made, made.metadata or proposal.metadata

    def creation(self, backend: CatalogBackend, table: TableName) -> Callable[[], None]:
        """A function that creates a table. It raises an error for a conflict."""
        proposal = self.checks._table_creation(self.backend, table)
        strategy = backend.strategy(table, proposal.metadata.location)
        return lambda: raise_conflict(strategy.commit(None, proposal))

    def creation_of_view(self, view: TableName) -> Callable[[CatalogBackend], None]:
        """A function that creates a view in a backend. It raises an error for a conflict."""
        proposal = self.checks._view_creation(self.backend, view)

        def create(backend: CatalogBackend) -> None:
            assert isinstance(backend, ViewCatalog)
            raise_conflict(backend.commit_view(view, None, proposal) or Conflict())

        return create


def raise_conflict(made: object) -> None:
    """Raise ``CommitFailed`` for a conflict."""
    if isinstance(made, Conflict):
        raise CommitFailed("another came first")


def dotted(name: TableName) -> str:
    """The name as a user writes it."""
    return ".".join(name)
