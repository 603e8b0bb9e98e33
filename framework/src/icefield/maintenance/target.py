"""What upkeep works on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from icefield.abc import WorkRunner
from icefield.metadata import TableMetadata
from icefield.storage import FileIO
from icefield.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Target:
    """One version of a table, where its metadata file is, and how a change of the table begins."""

    metadata: TableMetadata
    io: FileIO
    begin: Callable[[], Transaction[Any]]
    metadata_location: str | None = None
    newest: Callable[[], tuple[TableMetadata, str]] | None = None
    """Loads the version that is current now, with where its metadata file is; changes begin there from then on.

    None where nothing can be changed.
    """

    name: tuple[str, ...] = ()
    runner: WorkRunner | None = None
    """Does the work; None: this process does, as suits each kind."""
