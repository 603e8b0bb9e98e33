"""A writer of streams of changes: inserts, updates and deletes become files that one commit adds.

As in Flink's writers, rows are deleted by equality, without reading the table, unless the stream itself wrote them
before. Equality deletes apply to earlier commits alone, so that rows of this stream get position deletes or deletion
vectors. Spec: "Row-level Deletes".
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.abc import Note
from icefield.errors import IcefieldError, InvalidArgument
from icefield.manifest.data_file import DataFile
from icefield.partitioning.tuples import tuple_groups
from icefield.scan.deletes.key_columns import columns_of
from icefield.scan.deletes.keys import hash_keys
from icefield.transaction.change_stream.key_index import KeyIndex
from icefield.transaction.change_stream.kinds import ChangeKind, Kinds
from icefield.types.arrow.equality import plain
from icefield.writing import DeleteContext, DeletedRows, WriteContext, write_deletion_vectors, write_position_deletes
from icefield.writing.conforming import Conforming
from icefield.writing.deletes.equality_files import EqualityColumns, EqualityFiles
from icefield.writing.files import FileSet
from icefield.writing.ordered_writer import OrderedWriter

INDEX_BYTES: Final = 256 << 20
"""The bytes of keys and row places that a writer holds before it is full."""


@dataclass(frozen=True, slots=True)
class ChangedFiles:
    """The files of a writer: for ``RowDelta.add_fresh_rows`` and ``RowDelta.add_deletes``."""

    data_files: list[DataFile]
    delete_files: list[DataFile]

    @property
    def all_files(self) -> list[DataFile]:
        """The data files and the delete files."""
        return [*self.data_files, *self.delete_files]


@dataclass(slots=True)
class _RowConversions:
    """The conversions of incoming rows, resolved once for their schema."""

    incoming: pa.Schema
    keys: Callable[[pa.RecordBatch], pa.RecordBatch]
    rows: Conforming | None = None


class ChangeWriter(AbstractContextManager["ChangeWriter"]):
    """Writes a stream of changes to rows that the columns ``equality_ids`` identify.

    Of the rows with the same key the last one stays. With ``upsert`` an insert or an update replaces any row with its
    key, and rows before an update may be left out. A row to delete then needs no more than its key, which must hold the
    source columns of the partitioning. Without ``upsert`` the stream states the old values of each row that goes.

    Memory is bounded except for the keys of written rows: when ``is_full`` says so, ``close`` the writer, commit its
    files, and go on with another one. On an error ``abandon`` it; as a context manager it does so itself. Used by one
    thread. Raises the errors of ``write_batches`` and ``write_equality_deletes``.
    """

    def __init__(
        self,
        context: WriteContext,
        deletes: DeleteContext,
        equality_ids: Collection[int],
        *,
        upsert: bool = False,
        task_id: int = 0,
        attempt: int = 0,
        note: Note | None = None,
        index_bytes: int = INDEX_BYTES,
    ) -> None:
        self._context = context
        self._deletes = deletes
        self._columns = EqualityColumns(context.schema, context.spec, equality_ids)
        self._upsert = upsert
        self._named = {"task_id": task_id, "attempt": attempt}
        self._note = note
        self._index_bytes = index_bytes
        if upsert and not self._columns.sources <= set(self._columns.ids):
            source = min(self._columns.sources - set(self._columns.ids))
            raise InvalidArgument(
                f"the table is partitioned by '{context.schema.find_column_name(source)}', which is no column of the "
                "key: a row that is replaced may be in another partition. Add it to the key, or give the rows before "
                "an update and write without upsert"
            )
        self._types = [context.schema.find_type(id_) for id_ in self._columns.ids]
        self._rows = OrderedWriter(FileSet(context, task_id, attempt, note))
        self._equality = OrderedWriter(EqualityFiles(deletes, self._columns, task_id, attempt, note))
        self._index = KeyIndex()
        self._shape: _RowConversions | None = None
        self._open = True

    @property
    def is_full(self) -> bool:
        """Whether the keys take as much memory as they may."""
        return self._index.nbytes >= self._index_bytes

    def write(self, batch: pa.RecordBatch, kinds: Kinds | ChangeKind) -> None:
        """Take changes in their order: rows, and a kind for each row or for all.

        Columns are matched by name. Rows that go need the columns of the key and the source columns of the
        partitioning; their other columns may hold anything.
        """
        self._check_open()
        codes = np.full(batch.num_rows, kinds, np.int8) if isinstance(kinds, ChangeKind) else np.asarray(kinds, np.int8)
        if len(codes) != batch.num_rows:
            raise InvalidArgument(f"{len(codes)} operations for {batch.num_rows} changes")
        shape = self._shape
        if shape is None or not batch.schema.equals(shape.incoming, check_metadata=True):
            shape = self._shape = _RowConversions(batch.schema, self._columns.conforming(batch.schema))
        if self._upsert and not (kept := codes != ChangeKind.UPDATE_BEFORE).all():
            batch, codes = batch.filter(pa.array(kept)), codes[kept]
        if not batch.num_rows:
            return
        keyed = shape.keys(batch)
        columns = [plain(column) for column in columns_of(self._columns.schema, keyed, self._columns.ids)]
        step = _ChangeBatch(columns, codes, self._upsert)
        # The first change of each key stands for the key.
        taken = pa.array(step.firsts)
        keys = [column.take(taken) for column in columns]
        hashes = hash_keys(keys, self._types)
        had = self._index.remove(hashes, keys)
        chosen = step.to_delete(had)
        if len(chosen):
            self._equality.add(keyed.take(pa.array(chosen)))
        rows, groups = step.to_write()
        if len(rows):
            if shape.rows is None:
                shape.rows = Conforming(self._context.schema, batch.schema)
            whole = len(rows) == batch.num_rows
            written = self._rows.add(shape.rows.apply(batch if whole else batch.take(pa.array(rows))))
            some = pa.array(groups)
            self._index.add(hashes[groups], [key.take(some) for key in keys], written)

    def close(self) -> ChangedFiles:
        """Complete the files, and describe them for a commit. An error deletes all files."""
        self._check_open()
        try:
            data, deletes = self._rows.close(), self._equality.close()
            own = [DeletedRows(file, positions) for file, positions in self._rows.found(self._index.gone())]
            write = write_position_deletes if self._deletes.format_version < 3 else write_deletion_vectors
            made = ChangedFiles(data, [*deletes, *write(self._deletes, own, note=self._note, **self._named)])
        except BaseException:
            self.abandon()
            raise
        self._open = False
        return made

    def abandon(self) -> None:
        """Abandon the changes, and delete every file."""
        self._open = False
        for writer in (self._rows, self._equality):
            # The caller must see the error that led here.
            with suppress(IcefieldError, OSError):
                writer.abandon()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._open:
            self.abandon()

    def _check_open(self) -> None:
        if not self._open:
            raise InvalidArgument("this writer of changes has ended; begin a new one")


class _ChangeBatch:
    """The changes of one batch, grouped by key; each numbered group keeps the order of its changes."""

    def __init__(self, columns: list[pa.Array], codes: Kinds, upsert: bool) -> None:
        names = [str(number) for number in range(len(columns))]
        self._groups, self.firsts = tuple_groups(pa.StructArray.from_arrays(columns, names))
        self._order = np.argsort(self._groups, kind="stable")
        self._codes = codes
        self._begins = np.searchsorted(self._groups[self._order], np.arange(len(self.firsts)))
        self._upsert = upsert

    def to_delete(self, had: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """The rows to delete by equality; ``had`` marks the keys that had a row of this stream before.

        A row that goes, and that the stream has not written, was in the table. With ``upsert`` the table may also have
        a row that an insert replaces.
        """
        ordered = self._codes[self._order]
        goes = np.ones(len(ordered), bool) if self._upsert else _is_removal(ordered)
        # The stream has a row with the key of a change if the previous change of this key wrote one.
        written = np.concatenate(([False], ~_is_removal(ordered[:-1])))
        written[self._begins] = had
        chosen: npt.NDArray[np.int64] = np.sort(self._order[goes & ~written])
        return chosen

    def to_write(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The rows to write, ascending, and the group of each: the last row of each key, unless it goes."""
        ends = np.append(self._begins[1:], len(self._order)) - 1
        last = self._order[ends]
        groups = np.flatnonzero(~_is_removal(self._codes[last]))
        order = np.argsort(last[groups], kind="stable")
        return last[groups][order], groups[order]


def _is_removal(codes: Kinds) -> npt.NDArray[np.bool_]:
    removal: npt.NDArray[np.bool_] = (codes == ChangeKind.DELETE) | (codes == ChangeKind.UPDATE_BEFORE)
    return removal
