"""Writing on executors, committing on the driver."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence

import pyarrow as pa
from icefield.manifest import DataFile
from icefield.writing import WriteContext, write_batches
from pyspark import TaskContext

from icefield_spark.arrow import from_spark_batch

MESSAGE_SCHEMA = "files binary"


class ChunkWriter:
    """What ``mapInArrow`` runs on executors: rows in, one row with the pickled data files out.

    A task's files carry its attempt in their names. Only what the winning attempts' rows name is committed; what a
    losing attempt wrote is an orphan.
    """

    def __init__(self, context: WriteContext) -> None:
        self._context = context

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"files": pa.array([pickle.dumps(self.write(batches))], pa.binary())})

    def write(self, batches: Iterator[pa.RecordBatch]) -> list[DataFile]:
        """Write the rows of one task."""
        task = TaskContext.get()
        number, attempt = (0, 0) if task is None else (task.partitionId(), task.taskAttemptId())
        converted = (from_spark_batch(batch, self._context.schema) for batch in batches)
        return write_batches(self._context, converted, task_id=number, attempt=attempt)

    def __repr__(self) -> str:
        return "icefield"


def files_of(messages: Sequence[bytes]) -> list[DataFile]:
    """The data files that tasks told of."""
    return [file for message in messages for file in pickle.loads(message)]
