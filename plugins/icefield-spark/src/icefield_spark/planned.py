"""A scan as a data frame: planned on the driver, read on executors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from icefield import Schema
from icefield.scan import FileScanTask, TableScan
from pyspark.sql import DataFrame, SparkSession

from icefield_spark.chunks import ChunkContext, ChunkReader, plan_chunks
from icefield_spark.types import to_spark_schema

_BROADCAST_FROM_BYTES = 1 << 20


def planned_frame(
    spark: SparkSession,
    scan: TableScan,
    columns: Sequence[str] = (),
    *,
    only: Callable[[FileScanTask], bool] | None = None,
) -> DataFrame:
    """The rows of a scan. ``columns``: the order of its columns. ``only``: which of its tasks are read."""
    schema = to_spark_schema(_in_order(scan.projection, columns, scan.case_sensitive))
    chunks = plan_chunks(scan, only)
    if not chunks:
        return spark.createDataFrame([], schema)
    numbers = spark.range(0, len(chunks), 1, len(chunks))
    return numbers.mapInArrow(ChunkReader(ChunkContext.of(scan, schema), _shared(spark, chunks)), schema)


def _shared(spark: SparkSession, chunks: list[bytes]) -> Any:
    """Chunks as executors get them: broadcast where there are many bytes and a Spark context."""
    context = getattr(spark, "_sc", None)  # not there with Spark Connect
    if context is None or sum(map(len, chunks)) < _BROADCAST_FROM_BYTES:
        return chunks
    return context.broadcast(chunks)


def _in_order(schema: Schema, columns: Sequence[str], case_sensitive: bool) -> Schema:
    """The columns in the order in which they were asked for."""

    def place(name: str) -> int:
        plain = name if case_sensitive else name.lower()
        for at, column in enumerate(columns):
            asked = column if case_sensitive else column.lower()
            if asked == plain or asked.startswith(f"{plain}."):
                return at
        return len(columns)

    return Schema(*sorted(schema.fields, key=lambda field: place(field.name)), schema_id=schema.schema_id)
