"""Tasks of a streaming write, and their messages: files, or the rows themselves if there are few."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import pyarrow as pa
from icefield.errors import InvalidArgument
from icefield.transaction import ChangeKind, ChangeWriter
from icefield.writing import DataFile, DeleteContext, WriteContext, write_batches
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from icefield_spark.arrow import from_spark_batch
from icefield_spark.ending import is_contested, take_back_if_lost, whole
from icefield_spark.streaming.epochs import Epoch
from icefield_spark.writing import APPLICATION, CASE_SENSITIVE

# Local properties of tasks, by which Spark names their query, batch and run.
_QUERY: Final = "sql.streaming.queryId"
_BATCH: Final = "streaming.sql.batchId"
_RUN: Final = "spark.jobGroup.id"

SMALL_TASK_BYTES: Final = 256 << 10
"""Rows of a task up to this size travel to the commit, which writes the rows of all tasks together."""


@dataclass(frozen=True, slots=True, repr=False)
class StreamReport(WriterCommitMessage):
    """The report of a task. ``rows`` and ``keys`` are Arrow streams."""

    epoch: Epoch
    write_id: str
    is_contested: bool
    application: str | None
    files: Sequence[DataFile] = ()
    deletes: Sequence[DataFile] = ()
    rows: bytes = b""
    keys: bytes = b""

    @property
    def paths(self) -> list[str]:
        """Its files."""
        return [file.file_path for file in (*self.files, *self.deletes)]

    def __repr__(self) -> str:
        return "icefield"


@dataclass(frozen=True, slots=True, repr=False)
class StreamTask:
    """The context in which tasks write. ``keys``: the columns by which rows replace others; empty for appends."""

    context: WriteContext
    deletes: DeleteContext | None = None
    keys: tuple[str, ...] = ()
    small_bytes: int = SMALL_TASK_BYTES

    def write(self, batches: Iterator[pa.RecordBatch]) -> StreamReport:
        """Write the rows of a task. On an error, and if its input was cut off, all of its files are deleted."""
        task = TaskContext.get()
        if task is None:
            raise InvalidArgument("a streaming write runs in a task of Spark")
        query, number = task.getLocalProperty(_QUERY), task.getLocalProperty(_BATCH)
        if not query or number is None or not number.isdecimal():
            raise InvalidArgument(
                "Spark does not say which query and batch the task is of; nothing can be written once"
            )
        epoch = Epoch(query, int(number), task.getLocalProperty(_RUN) or "")
        write_id = epoch.marker + self.context.operation_id[:8]
        exact = task.getLocalProperty(CASE_SENSITIVE) == "true"
        schema = self.context.schema
        rows = (from_spark_batch(batch, schema, case_sensitive=exact) for batch in whole(batches) if batch.num_rows)
        made = StreamReport(epoch, write_id, is_contested(task), task.getLocalProperty(APPLICATION))
        context = replace(self.context, operation_id=write_id)
        place = (task.partitionId(), task.taskAttemptId())
        if self.keys:
            return self._upsert(made, context, rows, *place)
        held, is_all = _first(rows, self.small_bytes)
        if is_all:
            return replace(made, rows=to_stream(held))
        files = write_batches(context, chain(held, rows), task_id=place[0], attempt=place[1])
        take_back_if_lost(context.io, [file.file_path for file in files])
        return replace(made, files=files)

    def _upsert(
        self, made: StreamReport, context: WriteContext, rows: Iterator[pa.RecordBatch], task: int, attempt: int
    ) -> StreamReport:
        assert self.deletes is not None, "given with the keys"
        ids = [self.context.schema.find_field(name).field_id for name in self.keys]
        deletes = replace(self.deletes, operation_id=context.operation_id)
        keys: list[pa.RecordBatch] = []
        with ChangeWriter(context, deletes, ids, upsert=True, task_id=task, attempt=attempt) as writer:
            for batch in rows:
                writer.write(batch, ChangeKind.INSERT)
                keys.append(batch.select(list(self.keys)))
            found = writer.close()
        take_back_if_lost(context.io, [file.file_path for file in (*found.data_files, *found.delete_files)])
        return replace(made, files=found.data_files, deletes=found.delete_files, keys=to_stream(_distinct(keys)))

    def __repr__(self) -> str:  # the context leads to the catalog's properties
        return "icefield"


def _first(rows: Iterator[pa.RecordBatch], at_most: int) -> tuple[list[pa.RecordBatch], bool]:
    """Batches up to a size, and whether these are all."""
    held, size = [], 0
    for batch in rows:
        held.append(batch)
        size += batch.nbytes
        if size > at_most:
            return held, False
    return held, True


def _distinct(keys: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if not keys:
        return []
    table = pa.Table.from_batches(keys)
    found: list[pa.RecordBatch] = table.group_by(table.column_names).aggregate([]).to_batches()
    return found


def to_stream(batches: Sequence[pa.RecordBatch]) -> bytes:
    """Batches of one schema as an Arrow stream; empty bytes without batches."""
    if not batches:
        return b""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def from_streams(streams: Sequence[bytes]) -> Iterator[pa.RecordBatch]:
    """The batches of several Arrow streams."""
    for stream in streams:
        if stream:
            with pa.ipc.open_stream(stream) as reader:
                yield from reader
