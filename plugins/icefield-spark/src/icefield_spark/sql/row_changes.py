"""Changes of rows as one job: executors write new rows and report which rows go; the driver commits.

By merge-on-read the rows that go are marked in delete files, by copy-on-write their files are replaced.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield import Table
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.expressions import AlwaysTrue, BooleanExpression, In
from icefield.metadata import MAIN_BRANCH
from icefield.scan import FileScanTask
from icefield.writing import (
    DataFile,
    DeleteContext,
    DeletedRows,
    WriteContext,
    write_batches,
    write_deletion_vectors,
    write_position_deletes,
)
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark

from icefield_spark.arrow import from_spark_batch
from icefield_spark.ending import whole
from icefield_spark.failures import original
from icefield_spark.sweeping import sweep
from icefield_spark.types import to_spark_schema
from icefield_spark.writing import ENGINE, Paths, spark_write_context

OPERATION, FILE, POSITION = "icefield_operation", "_file", "_pos"
LINEAGE = ("_row_id", "_last_updated_sequence_number")
KEEP, DELETE, UPDATE, INSERT = range(4)

_MESSAGES = "files binary, path string, positions binary"


@dataclass
class Target:
    """The table that a statement changes, and the data files that its plans have read."""

    table: Table
    branch: str
    kind: str
    """``delete``, ``update`` or ``merge``: whose properties count."""
    tasks: dict[str, FileScanTask] = field(default_factory=dict)
    only: frozenset[str] | None = None
    """The data files to which reading is limited; None for all."""

    def __post_init__(self) -> None:
        self.snapshot_id = self.table.metadata.head(self.branch)
        self.marks = self.table.properties.get(f"write.{self.kind}.mode", "copy-on-write") == "merge-on-read"
        if self.marks and self.table.format_version < 2:
            raise UnsupportedFeature("a table of format version 1 has no merge-on-read; upgrade it to 2 or 3")

    @property
    def is_serializable(self) -> bool:
        """Whether rows that others add meanwhile are conflicts."""
        level = self.table.properties.get(f"write.{self.kind}.isolation-level", "serializable")
        return level == "serializable"

    @property
    def lineage(self) -> tuple[str, ...]:
        """The columns by which rows keep their identity."""
        return LINEAGE if self.table.format_version >= 3 else ()

    def columns(self) -> spark.StructType:
        """The table's columns, none of them required: what is null is found out when it is written."""
        made = to_spark_schema(self.table.schema())
        return spark.StructType([spark.StructField(each.name, each.dataType, True) for each in made.fields])

    def reads(self, task: FileScanTask) -> bool:
        """Whether a task of a plan is read; it is noted."""
        path = task.file.file_path
        if self.only is not None and path not in self.only:
            return False
        self.tasks[path] = task
        return True


def changed_schema(target: Target) -> spark.StructType:
    """The columns of a frame of changes."""
    first = [
        spark.StructField(OPERATION, spark.IntegerType()),
        spark.StructField(FILE, spark.StringType()),
        spark.StructField(POSITION, spark.LongType()),
        *(spark.StructField(name, spark.LongType()) for name in target.lineage),
    ]
    return spark.StructType([*first, *target.columns().fields])


def commit_changes(
    session: SparkSession,
    target: Target,
    changes: DataFrame,
    *,
    concern: BooleanExpression | None = None,
    one_source_row: bool = False,
) -> None:
    """Run the job that writes a frame of changes, and commit what it made.

    ``concern`` holds of every row that was read, for the checks of what others committed. With ``one_source_row`` a
    row of the table that comes twice is refused.
    """
    context = spark_write_context(target.table)
    if target.lineage:
        context = context.with_row_lineage()
    with target.table.transaction() as transaction:
        transaction.expect_branch(target.branch)
        files, positions = _run(session, changes.to(changed_schema(target)), context, target, transaction)
        for path, found in positions.items():
            if one_source_row and len(np.unique(found[0])) < len(found[0]):
                raise InvalidArgument(
                    "several rows of the source match one row of the table, so that it is not clear what becomes of "
                    f"it: MERGE takes one (data file {path})",
                    location=path,
                )
        gone = {path: np.unique(found[0][found[1]]) for path, found in positions.items()}
        gone = {path: rows for path, rows in gone.items() if len(rows)}
        update = transaction.update_snapshot(ENGINE, target.branch)
        replaced = target.only or frozenset()
        if not files and not gone and not replaced:
            return
        condition = AlwaysTrue() if concern is None else concern
        if target.marks:
            _mark(update.row_delta(), target, files, gone, condition, transaction)
            return
        action = update.overwrite().add_fresh(*files).delete_file(*replaced)
        action.validate_from_snapshot(target.snapshot_id).conflict_detection_filter(condition)
        action.validate_no_conflicting_deletes()
        if target.is_serializable:
            action.validate_no_conflicting_data()
        action.commit()


def _mark(
    delta: Any,
    target: Target,
    files: list[DataFile],
    gone: Mapping[str, np.ndarray[Any, Any]],
    concern: BooleanExpression,
    transaction: Any,
) -> None:
    """Add rows, and mark others as deleted."""
    table = target.table
    known = {path: target.tasks[path] for path in gone}
    whole = {path for path, rows in gone.items() if len(rows) == known[path].file.record_count}
    marked = {path: rows for path, rows in gone.items() if path not in whole}
    delta.add_fresh_rows(files).validate_from_snapshot(target.snapshot_id)
    delta.remove_rows(*whole)
    context = DeleteContext.from_metadata(table.metadata, table.io)
    note = transaction.context.written.add
    if table.format_version >= 3:
        old = _old_positions(target, marked)
        rows = [
            DeletedRows(known[path].file, np.union1d(found, old.get(path, found))) for path, found in marked.items()
        ]
        delta.add_deletes(*write_deletion_vectors(context, rows, note=note))
        for path in marked:
            replaced = [each for each in known[path].delete_files if each.referenced_data_file == path]
            delta.remove_deletes(*replaced)
    else:
        rows = [DeletedRows(known[path].file, found) for path, found in marked.items()]
        delta.add_deletes(*write_position_deletes(context, rows, note=note))
    delta.conflict_detection_filter(concern).validate_data_files_exist(marked)
    if target.kind != "delete":
        delta.validate_deleted_files().validate_no_conflicting_delete_files()
    if target.is_serializable:
        delta.validate_no_conflicting_data_files()
    delta.commit()


def _old_positions(target: Target, marked: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """The positions that are deleted already in data files that get a new deletion vector."""
    paths = [path for path in marked if target.tasks[path].delete_files]
    if not paths or target.snapshot_id is None:
        return {}
    columns = ("file_path", "pos")
    found = target.table.inspect.scan(
        "position_deletes", target.snapshot_id, row_filter=In("file_path", paths), selected_fields=columns
    ).to_arrow()
    return {
        path: np.asarray(found.filter(pc.equal(found.column("file_path"), path)).column("pos").combine_chunks())
        for path in paths
    }


class _ChangeWriter:
    """What ``mapInArrow`` runs: rows of changes in; data files, and the positions of rows of the table, out."""

    def __init__(self, context: WriteContext, columns: list[str], keeps: bool, log: Any) -> None:
        self._context = context
        self._columns = columns
        self._keeps = keeps
        self._log = log

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        seen: dict[str, list[tuple[Any, Any]]] = {}
        task = TaskContext.get()
        number, attempt = (0, 0) if task is None else (task.partitionId(), task.taskAttemptId())
        files = write_batches(self._context, self._rows(whole(batches), seen), task_id=number, attempt=attempt)
        if self._log is not None:
            self._log.add([file.file_path for file in files])
        yield _message([pickle.dumps(files)], [None], [None])
        for path, pieces in seen.items():
            positions = np.concatenate([piece[0] for piece in pieces])
            goes = np.concatenate([piece[1] for piece in pieces])
            yield _message([None], [path], [pickle.dumps((positions, goes))])

    def _rows(self, batches: Iterator[pa.RecordBatch], seen: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        """The rows to write; the places of those of the table are noted."""
        for batch in batches:
            operation = np.asarray(batch.column(OPERATION))
            old = operation != INSERT
            if old.any():
                _note(batch.filter(pa.array(old)), operation[old], seen)
            written = (operation == UPDATE) | (operation == INSERT)
            if self._keeps:
                written |= operation == KEEP
            if written.any():
                rows = batch.filter(pa.array(written)).select(self._columns)
                yield from_spark_batch(rows, self._context.schema)

    def __repr__(self) -> str:  # shown in Spark's plan, where no property of the catalog may be
        return "icefield"


def _note(rows: pa.RecordBatch, operation: np.ndarray[Any, Any], seen: dict[str, Any]) -> None:
    paths = rows.column(FILE).dictionary_encode()
    codes, positions = np.asarray(paths.indices), np.asarray(rows.column(POSITION))
    goes = operation != KEEP
    for code, path in enumerate(paths.dictionary.to_pylist()):
        mine = codes == code
        seen.setdefault(path, []).append((positions[mine], goes[mine]))


def _message(files: list[Any], paths: list[Any], positions: list[Any]) -> pa.RecordBatch:
    columns = [pa.array(files, pa.binary()), pa.array(paths, pa.string()), pa.array(positions, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, names=["files", "path", "positions"])


def _run(
    session: SparkSession, changes: DataFrame, context: WriteContext, target: Target, transaction: Any
) -> tuple[list[DataFile], dict[str, tuple[Any, Any]]]:
    """Run the job: the files that it wrote, and by data file the positions that it met and whether they go."""
    spark_context = getattr(session, "_sc", None)  # not there with Spark Connect
    log = None if spark_context is None else spark_context.accumulator([], Paths())
    written = transaction.context.written
    columns = [*target.lineage, *(each.name for each in target.columns().fields)]
    writer = _ChangeWriter(context, columns, not target.marks, log)
    try:
        rows = changes.mapInArrow(writer, _MESSAGES).collect()
    except BaseException as failure:
        sweep(context)
        error = original(failure) if isinstance(failure, PySparkException) else None
        if error is None:
            raise
        raise error from failure
    finally:
        if log is not None:
            written.add(*log.value)
            log.value = []  # PySpark keeps every accumulator
    files = [file for row in rows if row.files is not None for file in pickle.loads(bytes(row.files))]
    written.retire(*written.all())
    written.add(*(file.file_path for file in files))
    pieces: dict[str, list[Any]] = {}
    for row in rows:
        if row.path is not None:
            pieces.setdefault(row.path, []).append(pickle.loads(bytes(row.positions)))
    found = {
        path: (np.concatenate([each[0] for each in held]), np.concatenate([each[1] for each in held]))
        for path, held in pieces.items()
    }
    return files, found


def on_branch(table: Table, ref: str | None, kind: str) -> Target:
    """The table as the target of a statement that names it with a branch, or without one."""
    return Target(table, ref or MAIN_BRANCH, kind)
