"""A plan cut into chunks, one for each Spark partition, and the reading of a chunk on an executor."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa
from icefield import Schema
from icefield.properties import (
    SPLIT_LOOKBACK,
    SPLIT_OPEN_FILE_COST,
    SPLIT_TARGET_SIZE,
    get_int,
)
from icefield.scan import FileScanTask, ScanContext, TableScan, combine_tasks, read_tasks, split_task

from icefield_spark.arrow import to_spark_batch


def plan_chunks(scan: TableScan) -> list[bytes]:
    """The scan's tasks, split and put together by ``read.split.*``, pickled a chunk at a time."""
    properties = scan.context.properties
    target = get_int(properties, SPLIT_TARGET_SIZE)
    tasks = chain.from_iterable(split_task(task, target) for task in scan.plan_files())
    groups = combine_tasks(
        tasks, target, get_int(properties, SPLIT_LOOKBACK), get_int(properties, SPLIT_OPEN_FILE_COST)
    )
    return [pickle.dumps(list(group)) for group in groups]


def read_chunk(chunk: bytes, context: ScanContext) -> Iterator[pa.RecordBatch]:
    """The rows of one chunk, in the types that Spark has."""
    tasks: Sequence[FileScanTask] = pickle.loads(chunk)
    schema: Schema = context.projection
    # One thread: Spark runs a task a core already.
    for batch in read_tasks(tasks, context, workers=1):
        yield to_spark_batch(batch, schema)


class ChunkReader:
    """What ``mapInArrow`` runs on executors: rows of chunk numbers in, rows of the table out."""

    def __init__(self, context: ScanContext, chunks: Any) -> None:
        self._context = context
        self._chunks = chunks

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        chunks = getattr(self._chunks, "value", self._chunks)  # a broadcast variable, or the chunks themselves
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from read_chunk(chunks[number], self._context)

    def __repr__(self) -> str:  # shown in Spark's plan, where no property of the catalog may be
        return "icefield"
