"""Rewrites files without changing rows: compaction, another format, another location."""

from __future__ import annotations

from typing import Self

from icefield.errors import InvalidArgument
from icefield.manifest.data_file import DataFile, DataFileContent
from icefield.metadata.snapshots import Operation
from icefield.transaction.action import ActionContext
from icefield.transaction.branch_head import Head
from icefield.transaction.conflicts import ConflictRange, no_new_deletes_for
from icefield.transaction.matching import NamedFiles
from icefield.transaction.snapshot_producer import FileChanges, SnapshotProducer


class RewriteFiles(SnapshotProducer):
    """Exchange files for others that hold the same rows. All removed files must still be live.

    ``validate_from_snapshot`` names the snapshot that was read. Later deletes for the removed files make the commit
    fail, since the rewritten files would bring the deleted rows back. Equality deletes are no such conflict when
    ``data_sequence_number`` keeps the rewritten files as old as the replaced files.
    """

    def _prepare(self) -> None:
        self._removed = NamedFiles()
        self._added: dict[str, list[DataFile]] = {}
        self._number: int | None = None
        self._since: ConflictRange | None = None

    def delete_file(self, *files: DataFile | str) -> Self:
        """Name files, of data or of deletes, that are replaced."""
        for file in files:
            self._removed.add(file)
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

    def validate_from_snapshot(self, snapshot_id: int | None) -> Self:
        """Name the snapshot that was read; None is the table before its first."""
        self._since = ConflictRange(snapshot_id)
        return self

    def find(self, head: Head, context: ActionContext) -> FileChanges:
        """The files to exchange on this base."""
        added = [file for files in self._added.values() for file in files]
        removed = self._removed.find(head)
        self._removed.require_all(head, removed, "cannot rewrite files")
        if self._since is not None:
            no_new_deletes_for(head, self._since, removed, equality=self._number is None)
        if any(file.content is DataFileContent.DATA for file in added) and not removed:
            raise InvalidArgument("a rewrite that removes no file would add rows; append the files instead")
        return FileChanges(added, removed, self._number)

    def operation(self, changes: FileChanges) -> Operation:
        """The rows stay the same."""
        return Operation.REPLACE
