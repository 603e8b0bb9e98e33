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
"""That may expire one after the other while they are read."""


@dataclass(frozen=True, slots=True)
class TableAccess:
    """A version of a table, the newest when the work began, where its metadata file is, and how a change begins."""

    metadata: TableMetadata
    io: FileIO
    begin: Callable[[], Transaction[Any]]
    metadata_location: str | None = None
    newest: Callable[[], tuple[TableMetadata, str]] | None = None
    """Loads the version that is current now, with where its metadata file is; changes begin there from then on.

    None where nothing can be changed.
    """

    name: tuple[str, ...] = ()
    strategy: CommitStrategy | None = None
    """That of the table; it knows of other tables in the same folders. None where nothing can be changed."""

    runner: WorkRunner | None = None
    """Does the work; None: this process does, as suits each kind."""

    def reading(
        self, metadata: TableMetadata, location: str | None, read: Callable[[TableMetadata, str | None], T]
    ) -> T:
        """What ``read`` makes of a version; of a newer one, where others expire that version while it is read."""
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
        """What ``read`` makes of this version, or of a newer one; see ``reading``."""
        return self.reading(self.metadata, self.metadata_location, lambda metadata, _: read(metadata))
