"""The result of a write, and the authorship that the summary of its snapshot states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

from icefield.base.notebooks import html_of
from icefield.base.version import __version__
from icefield.puffin import writer_name

AUTHORSHIP: Final = "snapshot-property."
"""Prefix of a catalog's properties that every snapshot states, such as ``snapshot-property.user``."""

ENGINE: Final = "engine-name"
"""Key of a summary: the engine that made the change, as in Java's library."""


@dataclass(slots=True)
class WriteResult:
    """The snapshot of a write, and the numbers of rows and files that it changed.

    A write in a transaction sets it when the transaction commits. ``snapshot_id`` is None if nothing changed.
    ``rows_deleted`` is None for deletes by equality, which read no rows of the table. Files are data and delete files.
    Rows that a delete file of a whole partition deleted earlier count again if their file is removed.
    """

    snapshot_id: int | None = None
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int | None = 0
    files_added: int = 0
    files_removed: int = 0

    _repr_html_ = html_of

    def clear(self) -> None:
        """Forget the results of an earlier attempt."""
        for each in fields(self):
            setattr(self, each.name, each.default)

    def count(self, snapshot_id: int, summary: Mapping[str, str], edited: EditedRows | None) -> None:
        """Add the counts of a snapshot; ``edited`` are known counts of rows."""

        def number(name: str) -> int:
            return int(summary.get(name, 0))

        self.snapshot_id = snapshot_id
        self.files_added += number("added-data-files") + number("added-delete-files")
        self.files_removed += number("deleted-data-files") + number("removed-delete-files")
        added, marked = number("added-records"), number("added-position-deletes")
        gone = number("deleted-records") - number("removed-position-deletes")
        inserted = added if edited is None else edited.inserted
        deleted = None if edited is None else edited.deleted
        if deleted is None:
            deleted = marked + gone - added + inserted
        self.rows_inserted += inserted
        self.rows_updated += 0 if edited is None else edited.updated
        is_known = self.rows_deleted is not None and not number("added-equality-deletes")
        self.rows_deleted = (self.rows_deleted or 0) + deleted if is_known else None


@dataclass(frozen=True, slots=True)
class EditedRows:
    """The numbers of rows that an operation on rows changed; ``deleted`` is None if it removed files unread."""

    inserted: int
    updated: int
    deleted: int | None


def authorship(properties: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The caller's strings of a summary with the engine, the library, and the strings of the catalog's properties."""
    own = {name.removeprefix(AUTHORSHIP): text for name, text in properties.items() if name.startswith(AUTHORSHIP)}
    strings = {"iceberg-version": writer_name(), **own, **given}
    if ENGINE not in strings:
        strings |= {ENGINE: "icefield", "engine-version": __version__}
    return strings
