"""Deletes whole files: named files, and files in which all rows match a filter."""

from __future__ import annotations

from typing import Self

from icefield.expressions import AlwaysFalse, BooleanExpression, Or, as_expression
from icefield.manifest.data_file import DataFile
from icefield.manifest.manifest_file import ManifestContent
from icefield.metadata.snapshots import Operation
from icefield.transaction.action import ActionContext
from icefield.transaction.branch_head import Head
from icefield.transaction.filtering import merged_masks, whole_files
from icefield.transaction.matching import NamedFiles
from icefield.transaction.snapshot_producer import FileChanges, SnapshotProducer


class DeleteFiles(SnapshotProducer):
    """Remove files. Named files must still be live; a filter is evaluated anew on each base."""

    def _prepare(self) -> None:
        self._named = NamedFiles()
        self._filter: BooleanExpression = AlwaysFalse()
        self._case_sensitive = True

    def delete_file(self, *files: DataFile | str) -> Self:
        """Remove files, by path or as files of a scan plan (which saves reading manifests of other partitions)."""
        for file in files:
            self._named.add(file)
        return self

    def delete_by_filter(self, row_filter: str | BooleanExpression, *, case_sensitive: bool = True) -> Self:
        """Remove the files in which all rows match.

        Raises ``ValidationFailed`` on commit when some rows of a file match and others do not: ``Table.delete``
        rewrites such files.
        """
        self._filter = Or(self._filter, as_expression(row_filter))
        self._case_sensitive = case_sensitive
        return self

    def find(self, head: Head, context: ActionContext) -> FileChanges:
        """The files to remove from this base."""
        found = self._named.find(head, (ManifestContent.DATA,))
        self._named.require_all(head, found, "cannot delete files")
        matching = whole_files(head, self._filter, self._case_sensitive)
        return FileChanges(removed=merged_masks(found, matching))

    def operation(self, changes: FileChanges) -> Operation:
        """Files are removed and none added."""
        return Operation.DELETE
