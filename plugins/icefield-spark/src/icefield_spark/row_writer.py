"""The task that writes a frame of changes of rows: new rows to data files, and the places of old rows to the driver."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from icefield.writing import WriteContext, write_batches
from pyspark import TaskContext

from icefield_spark.arrow import from_spark_batch
from icefield_spark.ending import is_contested, take_back_if_lost, whole
from icefield_spark.failures import with_cause_alone
from icefield_spark.jobs import settings_of
from icefield_spark.places import ROW, by_file, reported
from icefield_spark.workers import begin_task
from icefield_spark.writing import APPLICATION, Message

OPERATION = "icefield_operation"
KEEP, DELETE, UPDATE, INSERT = range(4)


class RowChangeWriter:
    """The function for ``mapInArrow``: rows of changes in; data files, and the positions of rows of the table, out."""

    def __init__(self, context: WriteContext, columns: list[str], log: Any) -> None:
        self._context = context
        self._columns = columns
        self._log = log

    @with_cause_alone
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        seen: dict[int, list[tuple[Any, Any]]] = {}
        task = TaskContext.get()
        number, attempt = (0, 0) if task is None else (task.partitionId(), task.taskAttemptId())
        files = write_batches(self._context, self._rows(whole(batches), seen), task_id=number, attempt=attempt)
        take_back_if_lost(self._context.io, [file.file_path for file in files])
        if self._log is not None:
            self._log.add([file.file_path for file in files])
        message = Message(files)
        if task is not None:
            message = Message(files, is_contested(task), settings_of(task, (APPLICATION,)))
        yield _row(pickle.dumps(message), None, None)
        for key, pieces in seen.items():
            positions = np.concatenate([piece[0] for piece in pieces])
            operations = np.concatenate([piece[1] for piece in pieces])
            yield _row(None, *reported(key, (positions, operations)).columns)

    def _rows(self, batches: Iterator[pa.RecordBatch], seen: dict[int, Any]) -> Iterator[pa.RecordBatch]:
        """The rows to write. ``seen`` gets the locations and operations of rows that came from the table."""
        for batch in batches:
            operation = np.asarray(batch.column(OPERATION))
            old = operation != INSERT
            if old.any():
                places = np.asarray(batch.column(ROW).filter(pa.array(old)))
                for done in (KEEP, DELETE, UPDATE):
                    for number, positions in by_file(places[operation[old] == done]):
                        seen.setdefault(number, []).append((positions, np.full(len(positions), done, np.int8)))
            written = (operation == UPDATE) | (operation == INSERT)
            if written.any():
                rows = batch.filter(pa.array(written)).select(self._columns)
                yield from_spark_batch(rows, self._context.schema)

    def __repr__(self) -> str:  # shown in Spark's plan, where no property of the catalog may be
        return "icefield"


def _row(message: bytes | None, file: Any, positions: Any) -> pa.RecordBatch:
    file = pa.nulls(1, pa.int64()) if file is None else file
    positions = pa.nulls(1, pa.binary()) if positions is None else positions
    columns = [pa.array([message], pa.binary()), file, positions]
    return pa.RecordBatch.from_arrays(columns, names=["message", "file", "positions"])
