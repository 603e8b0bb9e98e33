"""The base class of changes of a catalog that the kit tries with faults."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, ClassVar

from icefield.abc import CatalogBackend, NamespaceName, TableName
from icefield.commit import current_of

if TYPE_CHECKING:
    from icefield_testing.catalogs.faults import FaultChecks


class Attempt(ABC):
    """A change in one namespace that is made repeatedly, each time with another fault."""

    commits: ClassVar[bool] = False
    """Whether the change is a commit: an error other than ``CommitStateUnknown`` then says that it was not made."""

    def __init__(self, checks: FaultChecks, backend: CatalogBackend) -> None:
        self.checks, self.backend = checks, backend
        self._numbers = count()

    @classmethod
    def is_for(cls, backend: CatalogBackend) -> bool:
        """Whether the catalog can make the change."""
        return True

    def begin(self, space: NamespaceName) -> None:
        """Make the state before the change, in a new namespace."""
        self.space, self.name, self.other = space, (*space, "t"), (*space, "u")
        self.prepare()

    def choose_name(self) -> None:
        """Choose a new name for the next table, since files of a dropped table may be in the way."""
        self.name = (*self.space, f"t{next(self._numbers)}")

    def prepare(self) -> None:
        """Make the state before the change."""
        self.backend.create_namespace(self.space, {})

    def open(self, through: CatalogBackend) -> None:
        """Prepare the change, up to the change itself. The fault does not strike the requests made here."""
        self.through = through

    @abstractmethod
    def act(self) -> object:
        """Make the change through the service."""

    @abstractmethod
    def is_done(self) -> bool | None:
        """Whether the change happened; None if only a part of it did."""

    @abstractmethod
    def undo(self) -> object:
        """Return to the state before the change, as a later writer."""

    def names_are(self, before: set[TableName], after: set[TableName]) -> bool | None:
        """Whether the names are ``after``; None if they are not ``before`` either, or if one does not load."""
        listed = {*self.listed()}
        if listed not in (before, after) or listed != {*filter(self.loads, (self.name, self.other))}:
            return None
        return listed == after

    def listed(self) -> Sequence[TableName]:
        """The listed names of the kind that the change is about: tables, unless a subclass says otherwise."""
        return self.backend.list_tables(self.space).items

    def loads(self, name: TableName) -> bool:
        """Whether a name of that kind loads."""
        return current_of(self.backend.strategy(name)) is not None
