"""Removes whole files: deletes, overwrites by files, and rewrites that change no row."""

from __future__ import annotations

from typing import Final, Self

from icefield.errors import InvalidArgument
from icefield.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression, Or, as_expression
from icefield.manifest import DataFile, DataFileContent, ManifestContent
from icefield.metadata.snapshots import Operation
from icefield.transaction.action import ActionContext
from icefield.transaction.conflicts import Conflicts
from icefield.transaction.files.validated import ValidatedChange, ValidatedOverwrite
from icefield.transaction.head.branch_head import Head, Mask, merged_masks
from icefield.transaction.head.filtering import RowFilter, whole_files
from icefield.transaction.head.matching import NamedFiles
from icefield.transaction.snapshots.snapshot_producer import FileChanges, SnapshotProducer


class _RemovedFiles(SnapshotProducer):
    """A change that removes whole files, by their names or by a filter."""

    def _prepare(self) -> None:
        super()._prepare()
        self._removed = NamedFiles()
        self._filter: BooleanExpression = AlwaysFalse()
        self._case_sensitive = True

    def delete_file(self, *files: DataFile | str) -> Self:
        """Remove files, by path or as files of a scan plan (which saves reading manifests of other partitions)."""
        self._removed.add(*files)
        return self

    def _remove(self, row_filter: str | BooleanExpression, case_sensitive: bool) -> Self:
        self._filter = Or(self._filter, as_expression(row_filter))
        self._case_sensitive = case_sensitive
        return self


class DeleteFiles(_RemovedFiles):
    """Remove files. Named files must still be live; a filter is evaluated anew on each base."""

    def delete_by_filter(self, row_filter: str | BooleanExpression, *, case_sensitive: bool = True) -> Self:
        """Remove the files in which all rows match.

        Raises ``ValidationFailed`` on commit when some rows of a file match and others do not: ``Table.delete``
        rewrites such files.
        """
        return self._remove(row_filter, case_sensitive)

    def _is_filled(self) -> bool:
        return bool(self._removed) or not isinstance(self._filter, AlwaysFalse)

    def find(self, head: Head, context: ActionContext) -> FileChanges:
        """The files to remove from this base."""
        found = self._removed.find(head, (ManifestContent.DATA,))
        self._removed.require_all(head, found, "cannot delete files")
        matching = whole_files(head, self._filter, self._case_sensitive)
        return FileChanges(removed=merged_masks(found, matching))


_ADDED: Final = "or leave out validate_no_conflicting_data, which snapshot isolation does without"
_DELETED: Final = "or leave out validate_no_conflicting_deletes, and bring deleted rows back"


class OverwriteFiles(_RemovedFiles, ValidatedOverwrite):
    """Remove files and add others. Files removed by name must still be live.

    The requested validations determine the isolation level. With both, and a filter that covers the rows that were
    read, the change is serializable; with ``validate_no_conflicting_deletes`` alone it is snapshot isolation. They need
    ``validate_from_snapshot``, which names the snapshot that was read.
    """

    def _prepare(self) -> None:
        super()._prepare()
        self._concern: BooleanExpression | None = None

    def overwrite_by_filter(self, row_filter: str | BooleanExpression, *, case_sensitive: bool = True) -> Self:
        """Remove the files in which all rows match; evaluated anew on each base."""
        return self._remove(row_filter, case_sensitive)

    def conflict_detection_filter(self, row_filter: str | BooleanExpression) -> Self:
        """Set the rows that were read: only commits that may concern them are conflicts. All rows by default."""
        self._concern = as_expression(row_filter)
        return self

    def find(self, head: Head, context: ActionContext) -> FileChanges:
        """The files to exchange on this base."""
        self._added.refuse_live(head)
        named = self._removed.find(head, (ManifestContent.DATA,))
        Conflicts(head, self._since).require_all(self._removed, named, "data files")
        self._validate(head, named)
        matching = whole_files(head, self._filter, self._case_sensitive)
        return FileChanges(self._added.files(), merged_masks(named, matching))

    def _validate(self, head: Head, named: dict[int, Mask]) -> None:
        conflicts, has_filter = self._validating(head), not isinstance(self._filter, AlwaysFalse)
        if conflicts is None:
            return
        whole = self._filter if has_filter else AlwaysTrue()
        concern = RowFilter(head, whole if self._concern is None else self._concern)
        if self._no_data:
            conflicts.no_new_data(concern, _ADDED)
        if self._no_deletes:
            conflicts.no_new_deletes_for(named, remedy=_DELETED)
            if self._concern is not None or has_filter:
                conflicts.no_new_deletes(concern, _DELETED)
                conflicts.no_removed_data(concern, _DELETED)


class RewriteFiles(ValidatedChange):
    """Exchange files for others that hold the same rows. All removed files must still be live.

    ``validate_from_snapshot`` names the snapshot that was read. Later deletes for the removed files make the commit
    fail, since the rewritten files would bring the deleted rows back. Equality deletes are no such conflict when
    ``data_sequence_number`` keeps the rewritten files as old as the replaced files.
    """

    def _prepare(self) -> None:
        super()._prepare()
        self._removed = NamedFiles()
        self._added: dict[str, list[DataFile]] = {}
        self._number: int | None = None

    def delete_file(self, *files: DataFile | str) -> Self:
        """Name files, of data or of deletes, that are replaced."""
        self._removed.add(*files)
        return self

    def add_file(self, *files: DataFile) -> Self:
        """Add files, of data or of deletes, that replace them."""
        for file in files:
            if file.file_path in self._added and not file.is_deletion_vector:
                raise InvalidArgument(f"file {file.file_path} is added twice", location=file.file_path)
            self._added.setdefault(file.file_path, []).append(file)
        return self

    def data_sequence_number(self, number: int) -> Self:
        """Give the new data files the data sequence number of the files that they replace."""
        self._number = number
        return self

    def _is_filled(self) -> bool:
        return bool(self._removed or self._added)

    def find(self, head: Head, context: ActionContext) -> FileChanges:
        """The files to exchange on this base."""
        added = [file for files in self._added.values() for file in files]
        removed = self._removed.find(head)
        self._removed.require_all(head, removed, "cannot rewrite files")
        if self._since is not None:
            Conflicts(head, self._since).no_new_deletes_for(removed, equality=self._number is None)
        if any(file.content is DataFileContent.DATA for file in added) and not removed:
            raise InvalidArgument("a rewrite that removes no file would add rows; append the files instead")
        return FileChanges(added, removed, self._number)

    def operation(self, changes: FileChanges) -> Operation:
        """The rows stay the same."""
        return Operation.REPLACE
