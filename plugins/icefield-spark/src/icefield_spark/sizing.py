"""How many tasks a scan is cut into, and for how large Spark takes it."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, SparkSession

_ESTIMATED_ROWS: Final = 1 << 22
"""Rows up to which Spark is given a size: with more, no table is broadcast by itself."""

_TASKS_A_CORE: Final = 3
_TASKS_UNKNOWN: Final = 200


def tasks_of(spark: SparkSession) -> int:
    """How many tasks a scan is worth if it is large enough: a few for each core, so that none waits long for another.

    Through Spark Connect nobody says how many cores there are.
    """
    context = getattr(spark, "_sc", None)
    return _TASKS_UNKNOWN if context is None else _TASKS_A_CORE * int(context.defaultParallelism)


def chunk_numbers(spark: SparkSession, chunks: int, rows: int) -> tuple[DataFrame, int]:
    """A frame of a number for each chunk, one a partition, and by how much the numbers of two chunks differ.

    Spark takes the size of its range for that of the table: each chunk is one row of many, so that a large table is not
    broadcast, and a small one is.
    """
    step = max(1, min(2 * rows, _ESTIMATED_ROWS) // chunks)
    numbers = spark.range(0, chunks * step, 1, chunks)
    return numbers.where(f"id % {step} = 0") if step > 1 else numbers, step
