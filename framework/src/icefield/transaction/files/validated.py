"""The base of changes of files that are validated against the commits since a snapshot was read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from icefield.errors import InvalidArgument
from icefield.manifest import DataFile
from icefield.transaction.conflicts import ConflictRange, Conflicts
from icefield.transaction.files.append import AddedFiles
from icefield.transaction.head.branch_head import Head
from icefield.transaction.snapshots.snapshot_producer import SnapshotProducer


class ValidatedChange(SnapshotProducer):
    """A change of files that is made from a named snapshot."""

    def _prepare(self) -> None:
        self._since: ConflictRange | None = None
        self._no_data = False
        self._no_deletes = False

    def validate_from_snapshot(self, snapshot_id: int | None) -> Self:
        """Name the snapshot that was read; None is the table before its first."""
        self._since = ConflictRange(snapshot_id)
        return self

    def _validating(self, head: Head) -> Conflicts | None:
        """The conflicts to look for; None if no validation was requested. Raises ``InvalidArgument``."""
        if not (self._no_data or self._no_deletes):
            return None
        if self._since is None:
            raise InvalidArgument("name the snapshot that was read with validate_from_snapshot")
        return Conflicts(head, self._since)


class ValidatedOverwrite(ValidatedChange):
    """A change that replaces files by others."""

    def _prepare(self) -> None:
        super()._prepare()
        self._added = AddedFiles()

    def add_file(self, *files: DataFile) -> Self:
        """Add data files."""
        self._added.add(files)
        return self

    def add_fresh(self, files: Iterable[DataFile]) -> Self:
        """Add data files under names that the caller drew at random, which need not be looked for in the table."""
        self._added.add(files, fresh=True)
        return self

    def _is_filled(self) -> bool:
        return bool(self._added.files())

    def validate_no_conflicting_data(self) -> Self:
        """Fail when files that concern the change were added meanwhile."""
        self._no_data = True
        return self

    def validate_no_conflicting_deletes(self) -> Self:
        """Fail when rows that the change concerns, or rows of a file that it removes, were deleted meanwhile."""
        self._no_deletes = True
        return self
