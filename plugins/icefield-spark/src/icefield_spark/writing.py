"""Writing on executors, and the one commit on the driver."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from icefield import Table
from icefield.expressions import AlwaysTrue, BooleanExpression, as_expression, bind
from icefield.metadata import MAIN_BRANCH
from icefield.writing import DataFile, WriteContext, write_batches
from pyspark import AccumulatorParam, TaskContext
from pyspark import __version__ as spark_version
from pyspark.sql.types import StructType

from icefield_spark.arrow import from_spark_batch, spark_arrow_schema
from icefield_spark.executors import for_executors

MESSAGE_SCHEMA = "files binary"
BUFFER_BYTES = 256 << 20
"""Bytes of rows that one task holds at most: an executor runs a task a core, next to the JVM's own memory."""

_ROW_GROUP = "write.parquet.row-group-size-bytes"

ENGINE = {"engine-name": "spark", "engine-version": spark_version}
"""What a snapshot's summary says of the writer."""


def spark_write_context(table: Table) -> WriteContext:
    """The table's write context for a Spark task, which has one core to itself and a share of the memory."""
    context = for_executors(replace(table.write_context(), workers=1, buffer_bytes=BUFFER_BYTES))
    if context.spec.is_unpartitioned:
        return context
    # Many files are open at a time, and the writer of each holds rows until it has a row group.
    return replace(context, properties={_ROW_GROUP: str(BUFFER_BYTES // 4), **context.properties})


def check_fits(context: WriteContext, columns: StructType) -> None:
    """Raise ``InvalidArgument`` when rows of these columns cannot be written to the table, before any job runs.

    What depends on values (a null in a required column) shows only when the rows are written.
    """
    nothing = pa.RecordBatch.from_pylist([], schema=spark_arrow_schema(columns))
    write_batches(context, pa.Table.from_batches([from_spark_batch(nothing, context.schema)]))


def check_target(table: Table, where: str | BooleanExpression | None) -> BooleanExpression:
    """The filter of an overwrite, known to fit the table. Raises ``InvalidExpression``."""
    expression = AlwaysTrue() if where is None else as_expression(where)
    bind(table.schema(), expression)
    return expression


class ChunkWriter:
    """What ``mapInArrow`` runs on executors: rows in, one row with the pickled data files out.

    A task's files carry its attempt in their names. Only what the winning attempts' rows name is committed; what a
    losing attempt wrote is an orphan. ``log`` is an accumulator that informs the driver of every file of an attempt
    that came to its end, also when the job fails.
    """

    def __init__(self, context: WriteContext, log: Any = None) -> None:
        self._context = context
        self._log = log

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = self.write(batches)
        if self._log is not None:
            self._log.add([file.file_path for file in files])
        yield pa.RecordBatch.from_pydict({"files": pa.array([pickle.dumps(files)], pa.binary())})

    def write(self, batches: Iterator[pa.RecordBatch]) -> list[DataFile]:
        """Write the rows of one task. On an error nothing of them stays."""
        task = TaskContext.get()
        number, attempt = (0, 0) if task is None else (task.partitionId(), task.taskAttemptId())
        converted = (from_spark_batch(batch, self._context.schema) for batch in batches)
        return write_batches(self._context, converted, task_id=number, attempt=attempt)

    def __repr__(self) -> str:  # shown in Spark's plan, where no property of the catalog may be
        return "icefield"


class Paths(AccumulatorParam[list[str]]):
    """Adds up lists of paths."""

    def zero(self, value: list[str]) -> list[str]:
        return []

    def addInPlace(self, value1: list[str], value2: list[str]) -> list[str]:  # noqa: N802 -- Spark's name
        value1.extend(value2)
        return value1


def files_of(messages: Sequence[bytes]) -> list[DataFile]:
    """The data files that tasks reported."""
    return [file for message in messages for file in pickle.loads(message)]


def stage(
    transaction: Any,
    files: Iterable[DataFile],
    overwritten: BooleanExpression | None,
    *,
    branch: str | None = MAIN_BRANCH,
    snapshot_properties: Mapping[str, str] | None = None,
) -> None:
    """Stage files in a transaction, which owns them from here on: it deletes them when they are surely not committed.

    ``overwritten``: the rows that they replace; None to append. ``branch``: None adds a snapshot that none names.
    """
    found = list(files)
    transaction.context.written.add(*(file.file_path for file in found))
    strings = {**ENGINE, **(snapshot_properties or {})}
    if overwritten is None:
        transaction.append_files(found, strings, branch)
    else:
        transaction.overwrite_files(found, overwritten, strings, branch=branch)
