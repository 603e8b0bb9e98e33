"""The tasks of a changelog scan, and the context for reading them. Both are immutable and can be pickled."""

from __future__ import annotations

from dataclasses import dataclass

from icefield.scan.tasks import FileScanTask, ScanContext
from icefield.scan.temporary_batches import BUFFER_BYTES
from icefield.schema import Schema


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A data file with rows that a snapshot changed.

    ``before``: the file with its deletes in the parent; None if the parent does not have the file. ``after``: the file
    with its deletes in the snapshot; None if the snapshot removed it. With both, only deletes changed. ``ordinal``: the
    number of earlier snapshots of the scan that changed rows. ``snapshot_id``: the snapshot that made the change.
    """

    before: FileScanTask | None
    after: FileScanTask | None
    ordinal: int
    snapshot_id: int

    @property
    def task(self) -> FileScanTask:
        """The file with the deletes of the latest snapshot that has it."""
        task = self.before if self.after is None else self.after
        assert task is not None
        return task


@dataclass(frozen=True, slots=True)
class ChangelogScanTask:
    """Changed files that are read together.

    ``is_matched``: whether the deleted rows of one file may equal the inserted rows of another, so that rows must be
    compared. Otherwise rows are returned as they are read.
    """

    files: tuple[ChangedFile, ...]
    is_matched: bool = False


@dataclass(frozen=True, slots=True)
class ChangelogContext:
    """The context that all tasks of a changelog scan share.

    ``scan``: the context for reading files; its projection has the result columns, except for ``changes``, the columns
    that state the change. ``matched``: the columns to read if rows are compared: the table's columns, then metadata
    columns. ``compared``: the indexes of the ``matched`` columns that are equal in equal rows. ``keys``: the ids of the
    columns that identify a row; empty if updates are not computed. ``net``: whether changes of several snapshots are
    matched with each other. ``held_bytes``: the size of the rows to compare in memory; larger ones go to temporary
    files.
    """

    scan: ScanContext
    changes: Schema
    matched: Schema
    compared: tuple[int, ...]
    keys: tuple[int, ...] = ()
    net: bool = False
    held_bytes: int = BUFFER_BYTES
