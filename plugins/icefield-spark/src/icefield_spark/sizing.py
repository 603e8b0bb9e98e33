"""The number of tasks of a scan, and the size that Spark assumes for it."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, SparkSession

_ESTIMATED_ROWS: Final = 1 << 22
"""The most rows in the size that Spark sees: tables of this size are never broadcast automatically."""

_TASKS_A_CORE: Final = 3
_TASKS_UNKNOWN: Final = 200


def tasks_of(spark: SparkSession) -> int:
    """How many tasks a large scan has: a few for each core, so that no core waits long for another.

    Through Spark Connect the number of cores is unknown.
    """
    context = getattr(spark, "_sc", None)
    return _TASKS_UNKNOWN if context is None else _TASKS_A_CORE * int(context.defaultParallelism)


def chunk_numbers(spark: SparkSession, chunks: int, rows: int) -> tuple[DataFrame, int]:
    """A frame with a number for each chunk, one per partition, and the step between successive numbers.

    Spark takes the size of its range for the size of the table. So the range has many rows for each chunk, by the size
    of the table: Spark broadcasts small tables, and not large ones.
    """
    step = max(1, min(2 * rows, _ESTIMATED_ROWS) // chunks)
    numbers = spark.range(0, chunks * step, 1, chunks)
    return numbers.where(f"id % {step} = 0") if step > 1 else numbers, step
