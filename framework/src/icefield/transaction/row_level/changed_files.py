"""Applies an operation on rows to each file, once, however often its action is applied.

By copy-on-write a file is rewritten, with its unchanged rows and the new versions of updated rows. By merge-on-read the
file stays, and the positions of deleted and updated rows are marked as deleted; the new versions of the updated rows of
all files are written together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final
from uuid import uuid4

import numpy as np
import pyarrow as pa

from icefield.abc import OperationProgress
from icefield.base.concurrency import map_ahead, read_ahead
from icefield.errors import UnsupportedFeature
from icefield.manifest import DataFile, ManifestEntries
from icefield.metadata.properties import COPY_ON_WRITE, Property, get_str
from icefield.scan import FileScanTask
from icefield.scan.deletes.positions import NONE, Positions
from icefield.schema import Schema
from icefield.transaction.action import ActionContext
from icefield.transaction.head.branch_head import Head, Mask
from icefield.transaction.row_level.edits import NO_ROWS, Ints, RowEdit
from icefield.transaction.row_level.file_rows import SUCCESSOR_BYTES, Allowance, FileRows, Tally
from icefield.transaction.row_level.head_deletes import HeadDeletes, file_key, keeps_lineage
from icefield.types.values import distinct
from icefield.writing.context import BUFFER_BYTES, WriteContext
from icefield.writing.data_writer import pieces_of, write_batches, write_conformed
from icefield.writing.files import FileSet

_MOST_AT_ONCE: Final = 4
"""The number of files that are changed at once: each takes the memory of its batches and of its new files."""

_FEW_ROWS: Final = 16_384
"""The most rows of a file that is read whole at once: to open it again would take longer."""

_MANY: Final = 64
"""An operation is expected to change a file that has at most so many rows for each own row of the operation."""


@dataclass(frozen=True, slots=True)
class FileResult:
    """The result of an operation for a file.

    ``met``: the operation's own rows with a counterpart in the file. ``deleted`` and ``updated`` count the file's rows.
    ``files`` replace the file. ``positions`` are to be marked as deleted if the file stays, and None if it is removed.
    ``marked``: by merge-on-read, so that the new versions of updated rows are still to be written; ``successors`` are
    these rows, if they are held in memory.
    """

    key: Any
    task: FileScanTask
    met: Ints = field(default_factory=lambda: NO_ROWS)
    deleted: int = 0
    updated: int = 0
    files: tuple[DataFile, ...] = ()
    positions: Positions | None = None
    marked: bool = False
    successors: tuple[pa.RecordBatch, ...] | None = None

    @property
    def changes(self) -> bool:
        """Whether any row of it changes."""
        return self.deleted + self.updated > 0


class FileResults:
    """The changed files of an operation on rows."""

    def __init__(self) -> None:
        self._made: dict[Any, FileResult] = {}
        self._together: dict[Any, Sequence[DataFile]] = {}
        self._used: set[Any] = set()
        self._held = Allowance(SUCCESSOR_BYTES)
        self._expects: bool | None = None
        self._numbers = count()
        self.uuid = str(uuid4())
        """The marker in the names of this operation's files."""

    def begin(self, head: Head, context: ActionContext, mode: Property) -> None:
        """Begin an attempt on a head; ``mode`` is the table property that says how files are changed."""
        self._head, self._context, self._mode = head, context, mode
        self._marks = get_str(head.metadata.properties, mode).lower() != COPY_ON_WRITE
        self.deletes = HeadDeletes(head)
        self._used.clear()

    def finish(self) -> None:
        """End an attempt: files that it did not use are retired."""
        written = self._context.written
        for made in ({key: one.files for key, one in self._made.items()}, self._together):
            for key, files in made.items():
                note = written.add if key in self._used else written.retire
                note(*(file.file_path for file in files))

    def next_number(self) -> int:
        """A new number for the file names of a writer's next call."""
        return next(self._numbers)

    def once(self, key: Any, write: Callable[[], Sequence[DataFile]]) -> Sequence[DataFile]:
        """Files for rows of several data files, or for new rows: written once for a key, and used again by attempts."""
        self._used.add(key)
        if key not in self._together:
            self._together[key] = write()
        return self._together[key]

    def of(self, entries: ManifestEntries, edit: RowEdit) -> list[FileResult]:
        """The results for files, in their order; several files are read and written at once."""
        tasks = {(file_key(self._head, task), self._marks): task for task in self.deletes.tasks(entries)}
        self._used.update(tasks)
        missing = [key for key in tasks if key not in self._made]
        self._workers = min(len(missing), self._head.io.workers(), _MOST_AT_ONCE)
        # Running jobs are waited for, so that nothing is written after an error was raised.
        made = map_ahead(missing, lambda key: self._make(key, tasks[key], edit), self._workers)
        event = OperationProgress(self._context.name, "rewrite-rows", "files", 0, len(missing))
        self._made.update(zip(missing, self._head.io.listeners.counting(made, event), strict=True))
        return [self._made[key] for key in tasks]

    def successors(self, changed: Sequence[FileResult], edit: RowEdit) -> Sequence[DataFile]:
        """The new versions of updated rows of all files with marked rows, written together into few files."""
        updated = [one for one in changed if one.marked and one.updated]
        if not updated:
            return ()

        def write() -> Sequence[DataFile]:
            rows = read_ahead(updated, lambda one: self._successors(one, edit), self._head.io.workers())
            return self._written(rows, any(keeps_lineage(one.task) for one in updated), 1)

        return self.once(("successors", *(one.key for one in updated)), write)

    def inserted(
        self, mask: Mask, rows: Callable[[], Iterable[pa.Table]], schema: Schema | None = None
    ) -> Sequence[DataFile]:
        """The files with new rows, which ``rows`` returns; no files if ``mask`` chooses no row.

        ``schema`` is the schema that they conform to already.
        """
        if not mask.any():
            return ()
        metadata = self._head.metadata

        def write() -> Sequence[DataFile]:
            writing = WriteContext.from_metadata(metadata, self._context.io, operation_id=self.uuid)
            batches = (batch for table in rows() for batch in pieces_of(table))
            number, note = self.next_number(), self._context.written.add
            if writing.schema == schema:
                return write_conformed(batches, FileSet(writing, number, note=note))
            # Another commit has changed the schema meanwhile: the rows must be conformed again.
            return write_batches(writing, batches, task_id=number, note=note)

        key = ("inserted", np.packbits(mask).tobytes(), metadata.current_schema_id, metadata.default_spec_id)
        return self.once(key, write)

    def _successors(self, changed: FileResult, edit: RowEdit) -> Iterator[pa.RecordBatch]:
        if changed.successors is not None:
            return iter(changed.successors)
        return FileRows(self._head, self.deletes, changed.task, edit).successors()

    def _make(self, key: Any, task: FileScanTask, edit: RowEdit) -> FileResult:
        """Change one file. Most candidates have no row that changes, and reading a column or two shows it."""
        rows = FileRows(self._head, self.deletes, task, edit)
        if edit.keys is None or edit.may_change(NO_ROWS):
            is_small = 0 <= task.file.record_count <= _FEW_ROWS
            is_whole = is_small and self._expects is not False and not self._marks
            changed = self._rewritten_once(key, task, rows) if is_whole else self._decided(key, task, rows)
            self._expects = changed.changes
            return changed
        if not self._is_expected(task, edit):
            may_change, met = rows.may_change()
            self._expects = may_change
            if not may_change:
                return FileResult(key, task, met)
        # A file with a matching key usually changes. If one file changed, the next one may change as well.
        changed = self._marked_once(key, task, rows) if self._marks else self._rewritten_once(key, task, rows)
        self._expects = changed.changes
        return changed

    def _is_expected(self, task: FileScanTask, edit: RowEdit) -> bool:
        """Whether to read a file whole without a look at its keys.

        True for a small file and after a file that changed. For the first file, the number of the operation's rows
        decides, in relation to the rows of the file.
        """
        rows = task.file.record_count
        if not edit.changes_met or rows < 0:
            return False
        return rows <= _FEW_ROWS or (edit.own_rows * _MANY >= rows if self._expects is None else self._expects)

    def _decided(self, key: Any, task: FileScanTask, rows: FileRows) -> FileResult:
        """First find the rows that change, from the deciding columns; then make their new versions."""
        tally, places = Tally(), [NONE]
        for edited, positions in rows.deciding(self._mode if self._marks else None):
            tally.add(edited)
            places.append(positions)
        changed = _changed(key, task, tally)
        if not changed.changes:
            return changed
        if self._marks:
            return self._with_marks(changed, np.concatenate(places))
        return replace(changed, files=self._written(rows.rewritten(), keeps_lineage(task), self._workers))

    def _rewritten_once(self, key: Any, task: FileScanTask, rows: FileRows) -> FileResult:
        tally = Tally()
        after = rows.rewritten_once(tally)
        files = () if after is None else self._written(after, keeps_lineage(task), self._workers)
        return replace(_changed(key, task, tally), files=files)

    def _marked_once(self, key: Any, task: FileScanTask, rows: FileRows) -> FileResult:
        tally, places = Tally(), [NONE]
        successors: list[pa.RecordBatch] | None = []
        for edited, positions, after in rows.marked(self._mode):
            tally.add(edited)
            places.append(positions)
            if after is None or successors is None:
                continue
            if self._held.take(after.nbytes):
                successors.append(after)
            else:
                successors = None
        changed = _changed(key, task, tally)
        if not changed.changes:
            return changed
        marked = self._with_marks(changed, np.concatenate(places))
        return replace(marked, successors=None if successors is None else tuple(successors))

    def _with_marks(self, changed: FileResult, gone: Positions) -> FileResult:
        if self._head.metadata.format_version < 2:
            raise UnsupportedFeature(
                f"the table property '{self._mode.name}' asks for row-level deletes in files of their own "
                f"(merge-on-read), which a table of format version 1 does not have: set it to '{COPY_ON_WRITE}' to let "
                "the files that hold such rows be rewritten, or upgrade the table to version 2. Nothing was changed; "
                "whole files are dropped either way",
                property=self._mode.name,
            )
        return replace(changed, marked=True, positions=self._marked(changed.task, gone))

    def _marked(self, task: FileScanTask, gone: Positions) -> Positions | None:
        """The positions to mark for removed rows; None if no row of the file is left, so that the file is removed.

        A deletion vector also holds the positions that were deleted before.
        """
        file = task.file
        deletes = self.deletes.store.of(task, file)
        older = NONE if deletes is None else deletes.positions
        if file.record_count >= 0:
            older = older[: np.searchsorted(older, file.record_count)]  # position deletes may be beyond the end
        every = distinct(gone, older) if len(older) else gone
        if len(every) == file.record_count:
            return None
        return every if self._head.metadata.format_version >= 3 else gone

    def _written(self, rows: Iterator[pa.RecordBatch], lineage: bool, at_once: int) -> tuple[DataFile, ...]:
        writing = WriteContext.from_metadata(self._head.metadata, self._context.io, operation_id=self.uuid)
        writing = replace(writing, buffer_bytes=BUFFER_BYTES // max(1, at_once))
        if lineage:
            writing = writing.with_row_lineage()
        return tuple(write_batches(writing, rows, task_id=self.next_number(), note=self._context.written.add))


def _changed(key: Any, task: FileScanTask, tally: Tally) -> FileResult:
    return FileResult(key, task, tally.met, tally.deleted, tally.updated)
