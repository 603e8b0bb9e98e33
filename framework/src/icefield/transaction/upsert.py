"""Upserts: rows whose key is in the table replace what is there, the others are added.

A join of whole columns, pruned by the bounds of the keys; never a filter with a literal for each key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import InvalidArgument
from icefield.expressions import AlwaysFalse, BooleanExpression, BoundPredicate, Op, conjunction
from icefield.manifest.data_file import DataFile
from icefield.metadata.properties import MERGE_MODE
from icefield.metadata.refs import MAIN_BRANCH
from icefield.metadata.snapshots import Operation
from icefield.scan import FileScanTask, ScanContext
from icefield.scan.reading import read_task
from icefield.schema import Schema
from icefield.schema.row_lineage import with_lineage
from icefield.transaction.action import Action, ActionContext
from icefield.transaction.branch_head import Head
from icefield.transaction.file_rewriter import DeletesOfHead, check_copies_on_write, file_key, keeps_lineage
from icefield.transaction.filtering import RowFilter
from icefield.transaction.key_join import Keys, differing
from icefield.transaction.matching import Mask
from icefield.transaction.overwrite import operation_of
from icefield.transaction.rows import conformed
from icefield.transaction.snapshot_producer import FileChanges, SnapshotProducer
from icefield.types.reserved import ROW_ID
from icefield.types.values import from_arrow_scalar
from icefield.writing.context import WriteContext
from icefield.writing.data_writer import pieces_of, write_batches, write_conformed


@dataclass(slots=True)
class UpsertResult:
    """How many rows an upsert changed and added; of one that is staged in a transaction, once that commits."""

    rows_updated: int = 0
    rows_inserted: int = 0


@dataclass(frozen=True, slots=True)
class _Merged:
    """What became of one file: which given rows met a row of it, how many of its rows changed, and its successors."""

    met: np.ndarray[Any, Any]
    updated: int = 0
    files: tuple[DataFile, ...] = ()


class UpsertRows(SnapshotProducer):
    """Replace the rows that have the key of a given row and differ from it, and add the given rows with new keys.

    Evaluated anew on each base, so rows that were committed meanwhile are met too. A null in a key equals nothing.
    """

    def __init__(
        self,
        stage: Callable[[Action], None],
        schema: Schema,
        rows: pa.Table,
        keys: Sequence[str],
        *,
        update: bool = True,
        insert: bool = True,
        branch: str | None = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(stage, branch=branch, snapshot_properties=snapshot_properties)
        self._schema = schema
        self._rows = conformed(schema, rows)
        self._keys = Keys(self._rows, keys)
        self._keys.refuse_duplicates()
        self._others = [name for name in self._rows.column_names if name not in self._keys.names]
        self._update, self._insert = update, insert
        self._merged: dict[Any, _Merged] = {}
        self._inserted: dict[bytes, list[DataFile]] = {}
        self._uuid = str(uuid4())
        self.result = UpsertResult()

    def find(self, head: Head, context: ActionContext) -> FileChanges:
        """The files to merge with the given rows on this base, and those with new rows."""
        removed: dict[int, Mask] = {}
        added: list[DataFile] = []
        met = np.zeros(len(self._rows), bool)
        updated = 0
        row_filter = RowFilter(head, self._range(head.metadata.schema()))
        self._deletes = deletes = DeletesOfHead(head)
        for matches in row_filter.matches():
            candidates = matches.some | matches.whole
            gone = np.zeros(len(candidates), bool)
            tasks = deletes.tasks(matches.entries.filter(candidates))
            for position, task in zip(np.flatnonzero(candidates).tolist(), tasks, strict=True):
                merged = self._merge(head, task, row_filter.bound, context)
                met[merged.met] = True
                if merged.updated:
                    gone[position] = True
                    updated += merged.updated
                    added += merged.files
            if gone.any():
                removed[matches.position] = gone
        new = self._insert_rows(head, ~met, context) if self._insert else []
        added += new
        self._retire({file.file_path for file in added}, context)
        self.result.rows_updated = updated
        self.result.rows_inserted = sum(file.record_count for file in new)
        return FileChanges(added, removed)

    def operation(self, changes: FileChanges) -> Operation:
        """What was done in effect."""
        return operation_of(changes)

    def _range(self, schema: Schema) -> BooleanExpression:
        """The rows between the least and the greatest key, column by column."""
        parts: list[BooleanExpression] = []
        for name in self._keys.names:
            field = schema.find_field(name)
            column = self._keys.table[name]
            bounds = pc.min_max(column) if _is_ordered(column.type) else None
            if column.null_count == len(column):
                return AlwaysFalse()
            if bounds is None:
                continue
            for op, end in ((Op.GT_EQ, "min"), (Op.LT_EQ, "max")):
                value = from_arrow_scalar(field.field_type, bounds[end])
                if value == value:  # NaN bounds nothing
                    parts.append(BoundPredicate(op, field, (field.name,), value))
        return conjunction(parts)

    def _merge(self, head: Head, task: FileScanTask, bound: BooleanExpression, context: ActionContext) -> _Merged:
        key = file_key(head, task)
        if key not in self._merged:
            self._merged[key] = self._merge_file(head, task, bound, context)
        return self._merged[key]

    def _merge_file(self, head: Head, task: FileScanTask, bound: BooleanExpression, context: ActionContext) -> _Merged:
        metadata, scan = head.metadata, self._deletes.scan
        met = self._met(task, scan, bound)
        if not len(met) or not self._update:
            return _Merged(met)
        updated = sum(len(changed) for _, changed, _ in self._compared(task, scan))
        if not updated:
            return _Merged(met)
        check_copies_on_write(head, MERGE_MODE)

        writing = WriteContext.from_metadata(metadata, context.io, operation_id=self._uuid)
        if keeps_lineage(task):
            writing, scan = writing.with_row_lineage(), replace(scan, projection=with_lineage(scan.projection))
        rows = self._new_rows(task, scan)
        files = write_batches(writing, rows, task_id=len(self._merged), note=context.written.add)
        return _Merged(met, updated, tuple(files))

    def _new_rows(self, task: FileScanTask, scan: ScanContext) -> Iterator[pa.RecordBatch]:
        """What a file's rows become; a row that changes keeps its id, and its last change is this commit."""
        for batch, changed, given in self._compared(task, scan):
            kept = np.ones(batch.num_rows, bool)
            kept[changed] = False
            yield batch.filter(pa.array(kept))
            taken = self._rows.take(pa.array(given))
            if keeps_lineage(task):
                taken = taken.append_column(ROW_ID.name, batch[ROW_ID.name].take(pa.array(changed)))
            yield from taken.to_batches()

    def _met(self, task: FileScanTask, scan: ScanContext, bound: BooleanExpression) -> np.ndarray[Any, Any]:
        """The given rows whose keys the file has; only its key columns are read."""
        narrow = replace(scan, projection=scan.schema.select(*self._keys.names))
        filtered = FileScanTask(task.file, residual=bound, delete_files=task.delete_files)
        found = [self._keys.join(batch)[1] for batch in read_task(filtered, narrow, self._deletes.store)]
        return np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)

    def _compared(
        self, task: FileScanTask, scan: ScanContext
    ) -> Iterator[tuple[pa.RecordBatch, np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
        """Each batch of the file, with its rows that change and the given rows that take their places."""
        for batch in read_task(task, scan, self._deletes.store):
            here, given = self._keys.join(batch)
            others = [name for name in self._others if name in batch.schema.names]
            changes = differing(batch.select(others), here, self._rows.select(others), given)
            yield batch, here[changes], given[changes]

    def _insert_rows(self, head: Head, mask: Mask, context: ActionContext) -> list[DataFile]:
        if not mask.any():
            return []
        key = mask.tobytes()
        if key not in self._inserted:
            writing = WriteContext.from_metadata(head.metadata, context.io, operation_id=self._uuid)
            new, task_id = self._rows.filter(pa.array(mask)), 50_000 + len(self._inserted)
            # A schema that another commit has changed meanwhile asks for more than the rows were brought under.
            write = write_conformed if writing.schema == self._schema else write_batches
            self._inserted[key] = write(writing, pieces_of(new), task_id=task_id, note=context.written.add)
        return self._inserted[key]

    def _retire(self, used: set[str], context: ActionContext) -> None:
        files = [file for merged in self._merged.values() for file in merged.files]
        files += [file for inserted in self._inserted.values() for file in inserted]
        for file in files:
            note = context.written.add if file.file_path in used else context.written.retire
            note(file.file_path)


def key_names(schema: Schema, given: Sequence[str] | None, case_sensitive: bool) -> list[str]:
    """The columns that tell rows apart: those named, else the identifier fields. Raises ``InvalidArgument``."""
    names = list(given) if given is not None else sorted(schema.identifier_field_names())
    if not names:
        raise InvalidArgument("name the columns that tell rows apart: join_cols, or the schema's identifier fields")
    fields = [schema.find_field(name, case_sensitive) for name in names]
    for name, field in zip(names, fields, strict=True):
        if schema.parent_of(field.field_id) is not None or not field.field_type.is_primitive:
            raise InvalidArgument(f"'{name}' cannot tell rows apart: only top-level columns of primitive types can")
    return [field.name for field in fields]


def _is_ordered(kind: pa.DataType) -> bool:
    return not (pa.types.is_null(kind) or pa.types.is_fixed_size_binary(kind))
