"""Jobs that write files: a transaction takes the files of winning attempts; files of losing attempts are deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from icefield.writing import WriteContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from icefield_spark.attempts import Attempts
from icefield_spark.failures import original
from icefield_spark.sweeping import sweep
from icefield_spark.writing import Outcome, Paths

Writer = Callable[[Any], Any]
"""Makes a function for ``mapInArrow``, for an accumulator of paths, or for None if Spark offers no accumulators."""


def run_writers(
    session: SparkSession, frame: DataFrame, writer: Writer, columns: str, context: WriteContext, transaction: Any
) -> tuple[Outcome, list[Any]]:
    """Run a job and note its files in a transaction, which deletes them unless it commits them.

    Rows have a column ``message``; rows without a message are returned. The function runs a single Spark action, since
    each action would run the writer again. If the job fails, the function waits for its running tasks and deletes all
    of their files.
    """
    spark_context = getattr(session, "_sc", None)  # not there with Spark Connect
    log = None if spark_context is None else spark_context.accumulator([], Paths())
    lost: list[str] = []
    attempts = Attempts(session)
    try:
        task, names = writer(log), frame.columns
        if any("." in name or "`" in name for name in names):  # mapInArrow takes such a name for a path
            task, frame = Named(task, names), frame.toDF(*(f"c{place}" for place in range(len(names))))
        with attempts:
            rows = frame.mapInArrow(task, columns).collect()
    except BaseException as failure:
        attempts.end()
        sweep(context)
        error = original(failure) if isinstance(failure, PySparkException) else None
        if error is None:
            raise
        raise error from failure
    finally:
        if log is not None:
            lost = list(log.value)
            log.value = []  # PySpark keeps every accumulator
            transaction.context.written.add(*lost)
    outcome = Outcome.of([bytes(row.message) for row in rows if row.message is not None])
    transaction.context.written.retire(*lost)  # all logged files; the next line restores the winners' files
    transaction.context.written.add(*(file.file_path for file in outcome.files))
    any_lost = attempts.any_lost()
    if outcome.is_contested if any_lost is None else any_lost:
        sweep(context, outcome.files)
    return outcome, [row for row in rows if row.message is None]


class Named:
    """The function for ``mapInArrow`` if columns were renamed: it passes the original names to the writer."""

    def __init__(self, task: Any, names: list[str]) -> None:
        self._task = task
        self._names = names

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self._task(batch.rename_columns(self._names) for batch in batches)  # type: ignore[no-any-return]

    def __repr__(self) -> str:  # shown in Spark's plan, where no property of the catalog may be
        return "icefield"


def settings_of(task: Any, names: tuple[str, ...]) -> Mapping[str, str]:
    """Settings of Spark where a task runs."""
    found = {name: task.getLocalProperty(name) for name in names}
    return {name: value for name, value in found.items() if value}
