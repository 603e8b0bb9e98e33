"""Overwrites by files: removes some and adds others in one step. For engines that write the new files themselves."""

from __future__ import annotations

from typing import Final, Self

from icefield.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression, Or, as_expression
from icefield.manifest.data_file import DataFile, DataFileContent
from icefield.manifest.manifest_file import ManifestContent
from icefield.metadata.snapshots import Operation
from icefield.transaction.action import ActionContext
from icefield.transaction.append import AddedFiles
from icefield.transaction.branch_head import Head
from icefield.transaction.conflicts import (
    no_new_data,
    no_new_deletes,
    no_new_deletes_for,
    no_removed_data,
    require_all,
)
from icefield.transaction.filtering import RowFilter, merged_masks, whole_files
from icefield.transaction.matching import Mask, NamedFiles
from icefield.transaction.snapshot_producer import FileChanges
from icefield.transaction.validated import ValidatedOverwrite

_ADDED: Final = "or leave out validate_no_conflicting_data, which snapshot isolation does without"
_DELETED: Final = "or leave out validate_no_conflicting_deletes, and bring deleted rows back"


class OverwriteFiles(ValidatedOverwrite):
    """Remove files and add others. Files removed by name must still be live.

    The requested validations make the isolation level. With both, and a filter that covers the rows that were read, the
    change is serializable; with ``validate_no_conflicting_deletes`` alone it is snapshot isolation. They need
    ``validate_from_snapshot``, which names the snapshot that was read.
    """

    def _prepare(self) -> None:
        super()._prepare()
        self._added = AddedFiles()
        self._removed = NamedFiles()
        self._filter: BooleanExpression = AlwaysFalse()
        self._case_sensitive = True
        self._concern: BooleanExpression | None = None

    def add_file(self, *files: DataFile) -> Self:
        """Add data files."""
        self._added.add(files)
        return self

    def add_fresh(self, *files: DataFile) -> Self:
        """Add data files under names that the caller drew at random, which need not be looked for in the table."""
        self._added.add(files, fresh=True)
        return self

    def delete_file(self, *files: DataFile | str) -> Self:
        """Remove data files by name."""
        for file in files:
            self._removed.add(file)
        return self

    def overwrite_by_filter(self, row_filter: str | BooleanExpression, *, case_sensitive: bool = True) -> Self:
        """Remove the files in which all rows match; evaluated anew on each base."""
        self._filter = Or(self._filter, as_expression(row_filter))
        self._case_sensitive = case_sensitive
        return self

    def conflict_detection_filter(self, row_filter: str | BooleanExpression) -> Self:
        """Set the rows that were read: only commits that may concern them are conflicts. All rows by default."""
        self._concern = as_expression(row_filter)
        return self

    def find(self, head: Head, context: ActionContext) -> FileChanges:
        """The files to exchange on this base."""
        self._added.refuse_live(head)
        named = self._removed.find(head, (ManifestContent.DATA,))
        require_all(head, self._since, self._removed, named, "data files")
        self._validate(head, named)
        matching = whole_files(head, self._filter, self._case_sensitive)
        return FileChanges(self._added.files(), merged_masks(named, matching))

    def operation(self, changes: FileChanges) -> Operation:
        """The operation that describes the actual effect: removal, addition or both."""
        return operation_of(changes)

    def _validate(self, head: Head, named: dict[int, Mask]) -> None:
        since = self._validated_since()
        if since is None:
            return
        concern = RowFilter(head, self._concern if self._concern is not None else self._whole())
        if self._no_data:
            no_new_data(head, since, concern, _ADDED)
        if self._no_deletes:
            no_new_deletes_for(head, since, named, remedy=_DELETED)
            if self._concern is not None or not isinstance(self._filter, AlwaysFalse):
                no_new_deletes(head, since, concern, _DELETED)
                no_removed_data(head, since, concern, _DELETED)

    def _whole(self) -> BooleanExpression:
        return AlwaysTrue() if isinstance(self._filter, AlwaysFalse) else self._filter


def operation_of(changes: FileChanges) -> Operation:
    """The operation that describes the actual effect of a change of files."""
    data = sum(file.content is DataFileContent.DATA for file in changes.added)
    if not changes.removed and data == len(changes.added):
        return Operation.APPEND
    return Operation.OVERWRITE if data else Operation.DELETE
