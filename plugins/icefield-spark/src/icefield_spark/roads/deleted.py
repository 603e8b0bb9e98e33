"""Deleted rows of files that Spark's own reader reads: a bit for each row, which a condition looks up by position."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from icefield.expressions import AlwaysTrue
from icefield.scan import FileScanTask
from icefield.writing import DataFileContent
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import ArrayType, LongType, StructField, StructType

from icefield_spark.jvm import jvm_class
from icefield_spark.roads.relations import takes_constants

Longs = npt.NDArray[np.int64]

_MOST_DELETED: Final = 1 << 22
"""Rows that delete files name: the driver reads more of them slower than executors do."""

_MOST_ROWS: Final = 1 << 28
"""Rows of files with deletes: every task is sent a bit for each."""

_WRONG: Final = "a data file has more rows than the table says"
_BITS: Final = 64
_WORDS: Final = StructType([StructField("words", ArrayType(LongType(), containsNull=False), nullable=False)])


def why_executors_apply(
    spark: SparkSession, files: Iterable[FileScanTask], *, shows_deleted: bool, is_narrow: bool
) -> Callable[[FileScanTask], str | None]:
    """Return a function from a file with deletes to the reason to apply them in Arrow, or None.

    None means that a condition of Spark applies them. ``shows_deleted``: deleted rows are requested, too, with a mark.
    ``is_narrow``: few columns are requested, so that under a filter Arrow reads a file faster than Spark's reader reads
    its row numbers.
    """
    marked = [task for task in files if task.delete_files]
    named = {(each.file_path, each.content_offset): each.record_count for task in marked for each in task.delete_files}
    deleted, rows = sum(named.values()), sum(task.file.record_count for task in marked)
    why = None
    if shows_deleted:
        why = ", and column '_deleted' is wanted"
    elif not takes_constants(spark) or not hasattr(DataFrame, "scalar"):
        why = ", and Spark's own reader takes none before Spark 4.0 and where the JVM takes no classes of Icefield"
    elif deleted > _MOST_DELETED:
        why = f", of those that delete {deleted} rows"
    elif rows > _MOST_ROWS:
        why = f", as to others, of {rows} rows together"
    return lambda task: why or _why_its_own(task, is_narrow)


def _why_its_own(task: FileScanTask, is_narrow: bool) -> str | None:
    if any(each.content is DataFileContent.EQUALITY_DELETES for each in task.delete_files):
        return ", some by values"
    if task.file.record_count < 0:
        return ", and how many rows it has is not said"
    if is_narrow and not isinstance(task.residual, AlwaysTrue):
        return ", and few columns under a filter are read faster so"
    return None


class GroupDeletes:
    """The deleted rows of a group's files: a bit for each row, in the words of one array."""

    def __init__(self) -> None:
        self._words: list[Longs] = []
        self._end = 0
        self._starts: dict[str, int] = {}

    def note(self, location: str, rows: int, positions: Longs) -> None:
        """Take the deleted rows of a file, by their positions."""
        words = _bits(rows, positions)
        self._starts[location] = self._end
        self._words.append(words)
        self._end += len(words)

    def start(self, location: str) -> int:
        """The index of the first word of a file."""
        return self._starts[location]

    def is_kept(self, spark: SparkSession, start: str) -> Column:
        """Whether a row is not deleted. ``start``: an expression for the index of the first word of its file."""
        known = _constant(spark, np.concatenate(self._words))
        # These are columns of the JVM: for each PySpark column, PySpark calls the JVM ten times to record its place in
        # the Python code.
        java = jvm_class(spark, "org.apache.spark.sql.functions")
        word = java.get(known, java.expr(f"{start} + CAST(shiftright(_metadata.row_index, 6) AS INT)"))
        # If nothing is found, raise an error: the row must count neither as deleted nor as live.
        word = java.nvl(word, java.expr(f"CAST(raise_error('{_WRONG}') AS BIGINT)"))
        return Column(java.getbit(word, java.expr("CAST(_metadata.row_index & 63 AS INT)")).equalTo(0))


def _bits(rows: int, positions: Longs) -> Longs:
    """A bit for each row of a file, padded to whole words. The lowest bit of a word is its first row."""
    bits = np.zeros(-(-rows // _BITS) * _BITS, np.bool_)
    bits[positions[: np.searchsorted(positions, rows)]] = True  # a position beyond the end is harmless
    return np.packbits(bits, bitorder="little").view(np.dtype("<i8")).astype(np.int64, copy=False)


def _constant(spark: SparkSession, words: Longs) -> Any:
    """Words as a constant column of the JVM: the result of a query over one row, which plans do not show."""
    values = pa.ListArray.from_arrays(pa.array([0, len(words)], pa.int32()), pa.array(words))
    kind = pa.list_(pa.field("element", pa.int64(), nullable=False))
    row = pa.table([values.cast(kind)], schema=pa.schema([pa.field("words", kind, nullable=False)]))
    return spark.createDataFrame(row, _WORDS)._jdf.scalar()
