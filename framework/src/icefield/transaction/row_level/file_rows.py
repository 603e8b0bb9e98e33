"""Reads the rows of one file for an operation on rows: no column chunk more often than memory forces it to."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

import numpy as np
import pyarrow as pa

from icefield.errors import UnsupportedFeature
from icefield.expressions import AlwaysTrue, BooleanExpression
from icefield.metadata.properties import COPY_ON_WRITE, Property
from icefield.scan import FileScanTask
from icefield.schema import Schema
from icefield.schema.row_lineage import with_lineage
from icefield.transaction.head.branch_head import Head
from icefield.transaction.row_level.edits import NO_ROWS, EditResult, Ints, RowEdit
from icefield.transaction.row_level.head_deletes import HeadDeletes, keeps_lineage
from icefield.types.reserved import POS, ROW_ID
from icefield.types.values import distinct

AHEAD_BYTES: Final = 32 << 20
"""Bytes of rows that are held until a row is found that changes; above it the file is read again from its start."""

SUCCESSOR_BYTES: Final = 64 << 20
"""Bytes of updated rows that one operation holds until it writes them; above it their files are read again."""


@dataclass(slots=True)
class Tally:
    """The results for a file so far."""

    met: Ints = field(default_factory=lambda: NO_ROWS)
    deleted: int = 0
    updated: int = 0

    def add(self, edited: EditResult) -> None:
        """Count a batch."""
        self.deleted += len(edited.gone) - len(edited.updated)
        self.updated += len(edited.updated)
        if len(edited.met):
            self.met = distinct(self.met, edited.met)


class Allowance:
    """The number of bytes that may still be held, shared by all threads."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._lock = Lock()

    def take(self, size: int) -> bool:
        """Reserve bytes; False if so many may not be held."""
        with self._lock:
            if size > self._left:
                return False
            self._left -= size
            return True


class FileRows:
    """The rows of a file that an edit may concern."""

    def __init__(self, head: Head, deletes: HeadDeletes, task: FileScanTask, edit: RowEdit) -> None:
        self._head, self._deletes, self._task, self._edit = head, deletes, task, edit
        self._schema = head.metadata.schema()
        self._lineage = keeps_lineage(task)

    def may_change(self) -> tuple[bool, Ints]:
        """Whether a row may change, from the columns of the key; no more rows are read than needed.

        Also the operation's own rows with a counterpart in the rows read so far (all rows if no row may change).
        """
        edit, met = self._edit, NO_ROWS
        assert edit.keys is not None
        for batch in self._read(self._schema.select_ids(edit.keys), edit.row_filter):
            met = distinct(met, edit.met(batch))
            if edit.may_change(met):
                return True, met
        return False, met

    def deciding(self, mode: Property | None) -> Iterator[tuple[EditResult, Ints]]:
        """The edits of the rows, from the deciding columns, and the positions of removed rows.

        ``mode`` names the property that asks for positions; without it there are none.
        """
        narrow = self._schema.select_ids(self._edit.deciding)
        columns = narrow if mode is None else self._with_positions(narrow, mode)
        for batch in self._read(columns, self._edit.row_filter):
            edited = self._edit.found(batch)
            yield edited, NO_ROWS if mode is None else _positions(batch, edited)

    def marked(self, mode: Property) -> Iterator[tuple[EditResult, Ints, pa.RecordBatch | None]]:
        """The edits of the rows, the positions of removed rows, and the new versions of updated rows, in one read."""
        for batch in self._read(self._with_positions(self._columns, mode), self._edit.row_filter):
            edited = self._edit.edited(batch.select(range(len(self._schema))))
            yield edited, _positions(batch, edited), self._continued(batch, edited)

    def successors(self) -> Iterator[pa.RecordBatch]:
        """The new versions of updated rows."""
        for batch, edited in self._edited(self._edit.row_filter):
            rows = self._continued(batch, edited)
            if rows is not None:
                yield rows

    def rewritten(self) -> Iterator[pa.RecordBatch]:
        """All rows of the rewritten file."""
        yield from self._after(self._edited(AlwaysTrue()))

    def rewritten_once(self, tally: Tally) -> Iterator[pa.RecordBatch] | None:
        """All rows of the rewritten file, counted in ``tally`` as they are read; None if no row changes.

        The rows before the first changed row are held, so that the file is read once.
        """
        held: deque[tuple[pa.RecordBatch, EditResult]] | None = deque()
        size = 0
        rows = self._edited(AlwaysTrue())
        for batch, edited in rows:
            tally.add(edited)
            if held is not None:
                held.append((batch, edited))
            if len(edited.gone):
                break
            size += batch.nbytes
            if size > AHEAD_BYTES:
                held = None
        else:
            return None
        if held is None:
            tally.met, tally.deleted, tally.updated = NO_ROWS, 0, 0
            return self._after(_counted(self._edited(AlwaysTrue()), tally))
        return self._after(_drained(held, _counted(rows, tally)))

    @property
    def _columns(self) -> Schema:
        return with_lineage(self._schema) if self._lineage else self._schema

    def _edited(self, row_filter: BooleanExpression) -> Iterator[tuple[pa.RecordBatch, EditResult]]:
        for batch in self._read(self._columns, row_filter):
            yield batch, self._edit.edited(batch.select(range(len(self._schema))))

    def _after(self, rows: Iterator[tuple[pa.RecordBatch, EditResult]]) -> Iterator[pa.RecordBatch]:
        for batch, edited in rows:
            continued = self._continued(batch, edited)
            yield _without(batch, edited.gone)
            if continued is not None:
                yield continued

    def _continued(self, batch: pa.RecordBatch, edited: EditResult) -> pa.RecordBatch | None:
        """The new versions of updated rows. They keep their row ids; a last change of null means this commit."""
        rows = edited.rows
        if rows is None or not rows.num_rows:
            return None
        if self._lineage:
            ids = batch.column(ROW_ID.name).take(pa.array(edited.updated))
            rows = rows.append_column(pa.field(ROW_ID.name, pa.int64()), ids)
        return rows

    def _read(self, columns: Schema, row_filter: BooleanExpression) -> Iterator[pa.RecordBatch]:
        filtered = FileScanTask(
            self._task.file,
            residual=row_filter,
            delete_files=self._task.delete_files,
            data_sequence_number=self._task.data_sequence_number,
        )
        return self._deletes.reader(columns).read(filtered)

    def _with_positions(self, columns: Schema, mode: Property) -> Schema:
        """Some columns, followed by the rows' positions in their file."""
        if self._schema.has_field(POS.name):
            raise UnsupportedFeature(
                f"the table has a column '{POS.name}', the name of the positions by which rows are marked as deleted; "
                f"rename it, or set the table property '{mode.name}' to '{COPY_ON_WRITE}'",
                field_id=self._schema.find_field(POS.name).field_id,
            )
        return Schema(*columns.fields, POS)


def _positions(batch: pa.RecordBatch, edited: EditResult) -> Ints:
    positions: Ints = batch.column(batch.num_columns - 1).to_numpy()[edited.gone]
    return positions


def _without(batch: pa.RecordBatch, gone: Ints) -> pa.RecordBatch:
    if not len(gone):
        return batch
    stays = np.ones(batch.num_rows, bool)
    stays[gone] = False
    return batch.filter(pa.array(stays))


def _counted(
    rows: Iterator[tuple[pa.RecordBatch, EditResult]], tally: Tally
) -> Iterator[tuple[pa.RecordBatch, EditResult]]:
    for batch, edited in rows:
        tally.add(edited)
        yield batch, edited


def _drained(
    held: deque[tuple[pa.RecordBatch, EditResult]], rest: Iterator[tuple[pa.RecordBatch, EditResult]]
) -> Iterator[tuple[pa.RecordBatch, EditResult]]:
    """The held batches, each released as it is given, and then the rest."""
    while held:
        yield held.popleft()
    yield from rest
