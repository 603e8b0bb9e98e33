"""Copy-on-write: executors rewrite data files without some of their rows.

The remaining rows never leave Python: a task reads files in Arrow and writes them again.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final
from uuid import uuid4

import numpy as np
import pyarrow as pa
from icefield.scan import read_tasks
from icefield.writing import WriteContext, write_batches
from pyspark import TaskContext
from pyspark.sql import SparkSession

from icefield_spark.chunks import ChunkContext
from icefield_spark.ending import is_contested, take_back_if_lost
from icefield_spark.executors import shared
from icefield_spark.failures import with_cause_alone
from icefield_spark.jobs import run_writers
from icefield_spark.maintenance import SparkRunner
from icefield_spark.places import POSITION, Plan, Positions, among, plain
from icefield_spark.types import to_spark_schema
from icefield_spark.workers import chunks_of
from icefield_spark.writing import MESSAGE_SCHEMA, Message, Outcome

LINEAGE: Final = ("_row_id", "_last_updated_sequence_number")


class FileRewriter:
    """The function for ``mapInArrow``: it writes the remaining rows of chunks to new files, and returns their names."""

    def __init__(self, reading: ChunkContext, writing: WriteContext, chunks: Any, log: Any = None) -> None:
        self._reading = reading
        self._writing = writing
        self._chunks = chunks
        self._log = log

    @with_cause_alone
    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        number, attempt = (0, 0) if task is None else (task.partitionId(), task.taskAttemptId())
        files = write_batches(self._writing, self._rows(numbers), task_id=number, attempt=attempt)
        take_back_if_lost(self._writing.io, [file.file_path for file in files])
        if self._log is not None:
            self._log.add([file.file_path for file in files])
        message = pickle.dumps(Message(files, is_contested(task)))
        yield pa.RecordBatch.from_pydict({"message": pa.array([message], pa.binary())})

    def _rows(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        last = len(self._reading.scan.projection) - 1
        for chunk in chunks_of(numbers, self._chunks):
            for task, gone in pickle.loads(chunk):
                for rows in read_tasks([task], self._reading.scan, workers=1):
                    goes = among(np.asarray(rows.column(last)), gone)
                    kept = rows.select(range(last))
                    yield kept.filter(pa.array(~goes)) if goes.any() else kept

    def __repr__(self) -> str:  # shown in Spark's plan, where no property of the catalog may be
        return "icefield"


def rewrite_without(
    session: SparkSession,
    target: Any,
    plan: Plan,
    gone: Mapping[str, Positions],
    context: WriteContext,
    transaction: Any,
) -> Outcome:
    """Rewrite files without the rows at given positions. The remaining rows keep their row ids.

    ``target`` has the table, its branch, and whether its rows have ``lineage``.
    """
    scan = target.scan().select("*", *target.lineage, POSITION)
    writing = replace(context, operation_id=str(uuid4()))
    chunks = [
        pickle.dumps([(plain(part), gone[part.file.file_path]) for part in group])
        for group in plan.grouped(gone, SparkRunner(session).slots, context.target_file_bytes)
    ]
    reading = ChunkContext.of(scan, to_spark_schema(scan.projection))
    numbers = session.range(0, len(chunks), 1, len(chunks))
    sent = shared(session, chunks)
    outcome, _ = run_writers(
        session,
        numbers,
        lambda log: FileRewriter(reading, writing, sent, log),
        MESSAGE_SCHEMA,
        writing,
        transaction,
    )
    return outcome
