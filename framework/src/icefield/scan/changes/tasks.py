"""What a plan of changes hands out, and what its tasks are read with. Both are immutable and can be pickled."""

from __future__ import annotations

from dataclasses import dataclass

from icefield.scan.tasks import FileScanTask, ScanContext
from icefield.scan.temporary_batches import HELD_BYTES
from icefield.schema import Schema


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A data file whose rows a snapshot changed.

    ``before``: the file with the deletes that applied to it in the parent, None where it was not in the table;
    ``after``: the same in the snapshot, None where the file is gone. With both, only deletes have changed.
    ``ordinal``: how many snapshots of the scan changed rows before this one. ``snapshot_id``: who made the change.
    """

    before: FileScanTask | None
    after: FileScanTask | None
    ordinal: int
    snapshot_id: int

    @property
    def task(self) -> FileScanTask:
        """The file, as it is in the later snapshot that has it."""
        task = self.before if self.after is None else self.after
        assert task is not None
        return task

    @property
    def may_insert(self) -> bool:
        """Whether rows may be there that were not before."""
        return self.after is not None

    @property
    def may_delete(self) -> bool:
        """Whether rows may be gone."""
        return self.before is not None


@dataclass(frozen=True, slots=True)
class ChangelogScanTask:
    """Changed files that are read together.

    ``is_matched``: whether rows that one of them lost may be those that another one gained, so that they have to be
    compared; otherwise the rows are handed on as they are read.
    """

    files: tuple[ChangedFile, ...]
    is_matched: bool = False


@dataclass(frozen=True, slots=True)
class ChangelogContext:
    """What every task of a scan of changes shares.

    ``scan``: how files are read; its projection holds the columns to give, without those that state the change, which
    are ``changes``. ``matched``: the columns that are read where rows are compared: those of the table, then metadata
    columns. ``compared``: the places of those that must be equal in equal rows. ``keys``: the ids of the columns that
    identify a row; empty where updates are not computed. ``net``: whether changes of several snapshots are matched
    with each other. ``held_bytes``: of rows that are compared in memory; more are put into temporary files.
    """

    scan: ScanContext
    changes: Schema
    matched: Schema
    compared: tuple[int, ...]
    keys: tuple[int, ...] = ()
    net: bool = False
    held_bytes: int = HELD_BYTES
