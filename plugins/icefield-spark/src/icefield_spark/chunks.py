"""A plan cut into chunks, one for each Spark partition, and the reading of a chunk on an executor."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol
from uuid import uuid4

import pyarrow as pa
from icefield.scan import FileScanTask, IncrementalAppendScan, ScanContext, TableScan, read_tasks
from pyspark.sql.types import StructType

from icefield_spark.arrow import SparkBatches, in_pieces
from icefield_spark.executors import for_executors
from icefield_spark.failures import cause_alone
from icefield_spark.workers import chunks_of

VersionScan = TableScan | IncrementalAppendScan
"""A scan of a version, or of the appends before it."""


class ReadsChunks(Protocol):
    """A context that reads chunks."""

    def read(self, chunk: bytes) -> Iterator[pa.RecordBatch]:
        """The rows of one chunk, in the types that Spark has."""
        ...


@dataclass(frozen=True, slots=True, repr=False)
class ChunkContext:
    """The context for reading the chunks of a plan: the scan's context, and the columns as Spark wants them."""

    scan: ScanContext
    columns: StructType

    @classmethod
    def of(cls, scan: VersionScan, columns: StructType) -> ChunkContext:
        """The context in which executors read the chunks of a scan."""
        # A process of an executor reads many chunks, and reads each delete file only once.
        return cls(replace(for_executors(scan.context), scan_id=uuid4().hex), columns)

    def read(self, chunk: bytes) -> Iterator[pa.RecordBatch]:
        """The rows of one chunk, in the types that Spark has."""
        tasks: Sequence[FileScanTask] = pickle.loads(chunk)
        batches = SparkBatches(self.scan.projection, self.columns)
        # One thread is enough: Spark already runs one task per core.
        with cause_alone():
            for batch in read_tasks(tasks, self.scan, workers=1):
                yield from in_pieces(batches.convert(batch))

    def __repr__(self) -> str:  # the scan's context leads to the catalog's properties
        return "icefield"


def plan_chunks(
    scan: VersionScan, only: Callable[[FileScanTask], bool] | None = None, at_least: int = 1
) -> list[bytes]:
    """The scan's tasks, split and combined by ``read.split.*``, and pickled in chunks.

    ``only``: which of the tasks are read; all, unless given. ``at_least``: see ``plan_tasks``.
    """
    if only is None:
        return [pickle.dumps(group) for group in scan.plan_tasks(at_least)]
    groups = (tuple(task for task in group if only(task)) for group in scan.plan_tasks(at_least))
    return [pickle.dumps(group) for group in groups if group]


class ChunkReader:
    """The function for ``mapInArrow`` on executors: rows of chunk numbers in, rows of the table out.

    ``context`` reads chunks. ``step`` is the difference between the numbers of two successive chunks.
    """

    def __init__(self, context: ReadsChunks, chunks: Any, step: int = 1) -> None:
        self._context = context
        self._chunks = chunks
        self._step = step

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for chunk in chunks_of(numbers, self._chunks, self._step):
            yield from self._context.read(chunk)

    def __repr__(self) -> str:  # shown in Spark's plan, where no property of the catalog may be
        return "icefield"
