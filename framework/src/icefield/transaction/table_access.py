"""The access to a table for plugins that work below it, such as maintenance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from icefield.abc import CommitStrategy, WorkRunner
from icefield.errors import FileMissing
from icefield.metadata import TableMetadata
from icefield.storage import FileIO
from icefield.transaction.transaction import Transaction

T = TypeVar("T")

VERSIONS: Final = 10
"""The number of versions that may expire, one after another, while they are read."""


@dataclass(frozen=True, slots=True)
class TableAccess:
    """A version of a table, the newest when the work began, its metadata file, and a way to begin a change."""

    metadata: TableMetadata
    io: FileIO
    begin: Callable[[], Transaction[Any]]
    metadata_location: str | None = None
    newest: Callable[[], tuple[TableMetadata, str]] | None = None
    """Loads the current version, with the location of its metadata file; later changes begin there.

    None if nothing can be changed.
    """

    name: tuple[str, ...] = ()
    strategy: CommitStrategy | None = None
    """The table's strategy, which knows other tables in the same folders. None if nothing can be changed."""

    runner: WorkRunner | None = None
    """Does the work; with None this process does it, in the way that suits each kind of work."""

    def reading(
        self, metadata: TableMetadata, location: str | None, read: Callable[[TableMetadata, str | None], T]
    ) -> T:
        """The result of ``read`` for a version; for a newer one if that version expires while it is read."""
        for _ in range(VERSIONS):
            try:
                return read(metadata, location)
            except FileMissing:
                newest = None if self.newest is None else self.newest()
                if newest is None or newest[1] == location:
                    raise
                metadata, location = newest
        return read(metadata, location)

    def reading_version(self, read: Callable[[TableMetadata], T]) -> T:
        """The result of ``read`` for this version, or for a newer one; see ``reading``."""
        return self.reading(self.metadata, self.metadata_location, lambda metadata, _: read(metadata))
