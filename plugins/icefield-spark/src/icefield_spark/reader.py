"""The reading side of the data source: plans in a Python worker of the driver, reads on executors.

It takes no filters from Spark. Spark 4.3 keeps the plan of a data source written in Python with the frame. Once a query
has pushed a filter, later queries of the frame get the filtered plan, even with other filters or none, and so too few
rows. For example, a union of two filters of one frame gives one of them twice. The option ``where`` prunes instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from icefield.scan import TableScan
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from icefield_spark.chunks import ChunkContext, plan_chunks
from icefield_spark.failures import cause_alone
from icefield_spark.workers import begin_task


@dataclass(frozen=True, slots=True, repr=False)
class Chunk(InputPartition):
    """One partition: a pickled chunk of tasks."""

    chunk: bytes

    def __repr__(self) -> str:
        return "icefield"


class IcefieldReader(DataSourceReader):
    """Reads the tasks of a scan. Executors receive only the context and the chunks."""

    def __init__(self, scan: TableScan, columns: StructType) -> None:
        self._scan: TableScan | None = scan
        self._columns = columns
        self._context: ChunkContext | None = None

    @cause_alone()
    def partitions(self) -> Sequence[InputPartition]:
        assert self._scan is not None, "planned where it was made"
        return [Chunk(chunk) for chunk in plan_chunks(self._scan)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, Chunk):  # for an empty plan Spark makes a partition of its own
            assert self._context is not None, "unpickled"
            begin_task()
            yield from self._context.read(partition.chunk)

    def __getstate__(self) -> dict[str, Any]:
        context = self._context if self._scan is None else ChunkContext.of(self._scan, self._columns)
        return {"_scan": None, "_columns": self._columns, "_context": context}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        return "icefield"
