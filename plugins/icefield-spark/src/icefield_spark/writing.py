"""Writing on executors, and the one commit on the driver."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa
from icefield.expressions import AlwaysTrue, BooleanExpression, as_expression, bind
from icefield.metadata import MAIN_BRANCH, TableMetadata
from icefield.writing import DataFile, WriteContext, write_batches
from icefield_parquet.properties import PARQUET_ROW_GROUP_SIZE
from pyspark import AccumulatorParam, TaskContext
from pyspark import __version__ as spark_version
from pyspark.sql.types import StructType

from icefield_spark.arrow import from_spark_batch, spark_arrow_schema
from icefield_spark.ending import is_contested, take_back_if_lost, whole
from icefield_spark.executors import for_executors
from icefield_spark.failures import with_cause_alone
from icefield_spark.sweeping import sweep
from icefield_spark.workers import begin_task

if TYPE_CHECKING:  # a worker needs no catalog
    from icefield import Table
    from icefield.transaction import Transaction, WriteResult
    from pyspark.sql import SparkSession

MESSAGE_SCHEMA = "message binary"
BUFFER_BYTES = 256 << 20
"""Bytes of rows that one task holds at most: an executor runs a task a core, next to the JVM's own memory."""

ENGINE = {"engine-name": "spark", "engine-version": spark_version}
"""The properties of the writer in a snapshot's summary."""

APPLICATION: Final = "spark.app.id"
"""A setting of Spark and, as with Iceberg's Java runtime, the key of a summary that names the application."""

PARTITION_OVERWRITE_MODE: Final = "spark.sql.sources.partitionOverwriteMode"
CASE_SENSITIVE: Final = "spark.sql.caseSensitive"
_SETTINGS = (APPLICATION, PARTITION_OVERWRITE_MODE)

PARTITIONS: Final = "partitions"
Replaced = BooleanExpression | Literal["partitions"] | None
"""The target of a replacing write: rows that match a filter, the partitions of the new rows, or nothing."""


@dataclass(frozen=True, slots=True)
class Message:
    """The report of a task: its files, whether other attempts may have run, and Spark's settings in the task."""

    files: list[DataFile]
    is_contested: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)


def is_case_sensitive(spark: SparkSession) -> bool:
    """Whether names that differ by case are different names in a session."""
    return bool(spark.conf.get(CASE_SENSITIVE, "false") == "true")


def spark_write_context(table: Table, metadata: TableMetadata | None = None) -> WriteContext:
    """The table's write context for a Spark task, which has one core to itself and a share of the memory.

    ``metadata``: the table's metadata at the commit of the files, if it differs from the current metadata.
    """
    found = table.write_context() if metadata is None else WriteContext.from_metadata(metadata, table.io)
    return on_one_core(found)


def on_one_core(found: WriteContext) -> WriteContext:
    """A write context as a Spark task uses it."""
    context = for_executors(replace(found, workers=1, buffer_bytes=BUFFER_BYTES))
    if context.spec.is_unpartitioned:
        return context
    # Many files are open at the same time, and each writer holds rows until it has a row group.
    return replace(context, properties={PARQUET_ROW_GROUP_SIZE.name: str(BUFFER_BYTES // 4), **context.properties})


def check_fits(context: WriteContext, columns: StructType, *, case_sensitive: bool = True) -> None:
    """Raise ``InvalidArgument`` when rows of these columns cannot be written to the table, before any job runs.

    Errors that depend on values (a null in a required column) show only when the rows are written.
    """
    nothing = pa.RecordBatch.from_pylist([], schema=spark_arrow_schema(columns))
    named = from_spark_batch(nothing, context.schema, case_sensitive=case_sensitive)
    write_batches(context, pa.Table.from_batches([named]))


def check_target(table: Table, where: str | BooleanExpression | None) -> BooleanExpression:
    """The filter of an overwrite, known to fit the table. Raises ``InvalidExpression``."""
    expression = AlwaysTrue() if where is None else as_expression(where)
    bind(table.schema(), expression)
    return expression


class ChunkWriter:
    """The function for ``mapInArrow`` on executors: rows in, one row with the pickled data files out.

    A task's files carry its attempt in their names. Only the files named by the winning attempts' rows are committed;
    files of a losing attempt are orphans. ``log`` is an accumulator that informs the driver of every file of each
    finished attempt, even if the job fails.
    """

    def __init__(self, context: WriteContext, log: Any = None) -> None:
        self._context = context
        self._log = log

    @with_cause_alone
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        message = self.write(batches)
        if self._log is not None:
            self._log.add([file.file_path for file in message.files])
        yield pa.RecordBatch.from_pydict({"message": pa.array([pickle.dumps(message)], pa.binary())})

    def write(self, batches: Iterator[pa.RecordBatch]) -> Message:
        """Write the rows of one task. On an error, and when its input was cut off, its files are deleted."""
        begin_task()
        task = TaskContext.get()
        number, attempt = (0, 0) if task is None else (task.partitionId(), task.taskAttemptId())
        exact = task is None or task.getLocalProperty(CASE_SENSITIVE) == "true"
        schema = self._context.schema
        converted = (from_spark_batch(batch, schema, case_sensitive=exact) for batch in whole(batches))
        files = write_batches(self._context, converted, task_id=number, attempt=attempt)
        take_back_if_lost(self._context.io, [file.file_path for file in files])
        if task is None:
            return Message(files)
        settings = {name: task.getLocalProperty(name) for name in _SETTINGS}
        return Message(files, is_contested(task), {name: value for name, value in settings.items() if value})

    def __repr__(self) -> str:  # shown in Spark's plan, where no property of the catalog may be
        return "icefield"


class Paths(AccumulatorParam[list[str]]):
    """Adds up lists of paths."""

    def zero(self, value: list[str]) -> list[str]:
        return []

    def addInPlace(self, value1: list[str], value2: list[str]) -> list[str]:  # noqa: N802 -- Spark's name
        value1.extend(value2)
        return value1


@dataclass(frozen=True, slots=True)
class Outcome:
    """The combined reports of the winning tasks."""

    files: list[DataFile]
    is_contested: bool
    settings: Mapping[str, str]

    @classmethod
    def of(cls, messages: Sequence[bytes]) -> Outcome:
        """The outcome of a job, by its tasks' messages."""
        found: list[Message] = [pickle.loads(message) for message in messages]
        files = [file for message in found for file in message.files]
        return cls(files, any(message.is_contested for message in found), found[0].settings if found else {})

    @property
    def replaces_partitions(self) -> bool:
        """Whether Spark's settings say that an overwrite replaces only the partitions of its rows."""
        return self.settings.get(PARTITION_OVERWRITE_MODE, "").lower() == "dynamic"

    def sweep(self, context: WriteContext) -> None:
        """Delete the files of losing attempts, if there may be any."""
        if self.is_contested:
            sweep(context, self.files)


def application_of(outcome: Outcome) -> dict[str, str]:
    """The properties of the application for the summary of its snapshot."""
    return {name: value for name, value in outcome.settings.items() if name == APPLICATION}


def stage(
    transaction: Transaction[Table],
    outcome: Outcome,
    replaced: Replaced,
    *,
    branch: str | None = MAIN_BRANCH,
    snapshot_properties: Mapping[str, str] | None = None,
    isolation_level: str | None = None,
) -> WriteResult:
    """Stage files in a transaction, which owns them from here on: it deletes them when they are surely not committed.

    ``branch``: None adds a snapshot outside of all branches.
    """
    files = outcome.files
    transaction.context.written.add(*(file.file_path for file in files))
    strings = {**ENGINE, **application_of(outcome), **(snapshot_properties or {})}
    if replaced is None:
        return transaction.append_files(files, strings, branch)
    if not isinstance(replaced, str):
        return transaction.overwrite_files(files, replaced, strings, branch=branch, isolation_level=isolation_level)
    action = transaction.update_snapshot(strings, branch).replace_partitions().add_fresh(files)
    action.commit()
    return action.write_result
