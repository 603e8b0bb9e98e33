"""Rows of a scan with where they are: the number of their data file in the plan and their position in it, in one long.

A path in each row would be most of what goes between Python and the JVM.
"""

# See docs/decisions/0099.

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
from icefield.scan import FileScanTask, TableScan, read_tasks
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark

from icefield_spark.arrow import SparkBatches
from icefield_spark.chunks import ChunkContext
from icefield_spark.ending import whole
from icefield_spark.executors import shared
from icefield_spark.keys import KeyFilter
from icefield_spark.types import to_spark_schema

Positions = np.ndarray[Any, Any]

ROW: Final = "icefield_row"
"""The column that says where a row is."""

POSITION: Final = "_pos"
FOUND: Final = "file bigint, positions binary"
"""The columns of what tasks report: positions, pickled, by the number of a data file."""

_BITS: Final = 40
_MASK: Final = (1 << _BITS) - 1


@dataclass
class Plan:
    """The data files that plans have met, each with a number, and the tasks that read them."""

    numbers: dict[str, int] = field(default_factory=dict)
    parts: dict[str, dict[int, FileScanTask]] = field(default_factory=dict)
    """The tasks by path and first byte."""

    def number(self, task: FileScanTask) -> int:
        """The number of the task's file, which is noted."""
        path = task.file.file_path
        self.parts.setdefault(path, {})[task.start] = task
        return self.numbers.setdefault(path, len(self.numbers))

    def task(self, path: str) -> FileScanTask:
        """A task of a file: what it says of the file is said of all of it."""
        return next(iter(self.parts[path].values()))

    def by_path(self, found: Mapping[int, Any]) -> dict[str, Any]:
        """What was found by number, by path."""
        paths = list(self.numbers)
        return {paths[number]: each for number, each in found.items()}


class NumberedReader:
    """What ``mapInArrow`` runs: chunk numbers in; rows with their places out, those that a filter of keys keeps."""

    def __init__(self, context: ChunkContext, chunks: Any, keys: Any = None) -> None:
        self._context = context
        self._chunks = chunks
        self._keys = keys

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        chunks = getattr(self._chunks, "value", self._chunks)
        keys: KeyFilter | None = getattr(self._keys, "value", self._keys)
        scan = self._context.scan
        shape = SparkBatches(scan.projection, self._context.columns)
        schema = shape.schema.append(pa.field(ROW, pa.int64()))
        for batch in numbers:
            for chunk in batch.column(0).to_pylist():
                for number, task, only in pickle.loads(chunks[chunk]):
                    for rows in read_tasks([task], scan, workers=1):
                        if keys is not None:
                            rows = rows.filter(keys.mask(rows))
                        positions = np.asarray(rows.column(POSITION))
                        if only is not None:
                            kept = among(positions, only)
                            rows, positions = rows.filter(pa.array(kept)), positions[kept]
                        if len(positions):
                            place = pa.array(positions | (number << _BITS), pa.int64())
                            yield pa.RecordBatch.from_arrays([*shape.convert(rows).columns, place], schema=schema)

    def __repr__(self) -> str:  # shown in Spark's plan
        return "icefield"


def numbered_frame(
    session: SparkSession, scan: TableScan, columns: Sequence[str], plan: Plan, keys: KeyFilter | None = None
) -> DataFrame:
    """The rows of a scan with their places, and with no more of its columns than are asked for."""
    chunks = [[(plan.number(task), task, None) for task in group] for group in scan.plan_tasks()]
    return _frame(session, scan, columns, chunks, keys)


def frame_at(
    session: SparkSession, scan: TableScan, columns: Sequence[str], plan: Plan, found: Mapping[str, Positions]
) -> DataFrame:
    """The rows at positions of files that are in the plan already."""
    chunks = [[(plan.numbers[path], plain(part), found[path])] for path in found for part in plan.parts[path].values()]
    return _frame(session, scan, columns, chunks, None)


def plain(task: FileScanTask) -> FileScanTask:
    """The task for all rows of its range, whatever its plan filtered by."""
    return FileScanTask(
        task.file,
        None,
        None,
        task.start,
        None if task.is_whole_file else task.length,
        task.delete_files,
        data_sequence_number=task.data_sequence_number,
        file_sequence_number=task.file_sequence_number,
    )


def _frame(
    session: SparkSession, scan: TableScan, columns: Sequence[str], chunks: list[Any], keys: KeyFilter | None
) -> DataFrame:
    made = to_spark_schema(scan.projection)
    asked = spark.StructType([each for each in made.fields if each.name in set(columns)])
    schema = spark.StructType([*asked.fields, spark.StructField(ROW, spark.LongType())])
    if not chunks:
        return session.createDataFrame([], schema)
    numbers = session.range(0, len(chunks), 1, len(chunks))
    pickled = [pickle.dumps(chunk) for chunk in chunks]
    reader = NumberedReader(ChunkContext.of(scan, asked), shared(session, pickled), keys)
    return numbers.mapInArrow(reader, schema)


def among(positions: Positions, some: Positions) -> np.ndarray[Any, Any]:
    """Which of the positions of a batch are among others. Both rise."""
    found = np.zeros(len(positions), bool)
    if len(positions):
        first, end = np.searchsorted(some, (positions[0], positions[-1] + 1))
        at = np.searchsorted(positions, some[first:end])
        found[at[positions[at] == some[first:end]]] = True
    return found


class Collector:
    """What ``mapInArrow`` runs: places in, the positions by file out."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found: dict[int, list[Positions]] = {}
        for batch in whole(batches):
            for number, rows in by_file(np.asarray(batch.column(0))):
                found.setdefault(number, []).append(rows)
        yield from (reported(number, np.concatenate(each)) for number, each in found.items())

    def __repr__(self) -> str:
        return "icefield"


def by_file(places: Positions) -> Iterator[tuple[int, Positions]]:
    """Places as the positions in each file."""
    numbers = places >> _BITS
    for number in np.unique(numbers):
        yield int(number), places[numbers == number] & _MASK


def reported(number: int, positions: Any) -> pa.RecordBatch:
    """A row of ``FOUND``."""
    columns = [pa.array([number], pa.int64()), pa.array([pickle.dumps(positions)], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, names=["file", "positions"])


def collected(plan: Plan, rows: Sequence[Any]) -> dict[str, Positions]:
    """The positions that tasks report, each once and in order, by path."""
    pieces: dict[int, list[Positions]] = {}
    for row in rows:
        pieces.setdefault(row.file, []).append(pickle.loads(bytes(row.positions)))
    return plan.by_path({number: np.unique(np.concatenate(each)) for number, each in pieces.items()})


class Finder:
    """What ``mapInArrow`` runs: chunk numbers in; the positions of the rows that their tasks' filters keep, out."""

    def __init__(self, context: ChunkContext, chunks: Any) -> None:
        self._context = context
        self._chunks = chunks

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        chunks = getattr(self._chunks, "value", self._chunks)
        for batch in numbers:
            for chunk in batch.column(0).to_pylist():
                for number, task, _ in pickle.loads(chunks[chunk]):
                    found = [np.asarray(rows.column(0)) for rows in read_tasks([task], self._context.scan, workers=1)]
                    if found:
                        yield reported(number, np.concatenate(found))

    def __repr__(self) -> str:
        return "icefield"


def found_by_filter(session: SparkSession, scan: TableScan, plan: Plan, only: set[str]) -> dict[str, Positions]:
    """The positions of the rows that match the scan's filter in some of its files; the filter is applied in Arrow."""
    narrow = scan.select(POSITION)
    groups = ([task for task in group if task.file.file_path in only] for group in narrow.plan_tasks())
    chunks = [pickle.dumps([(plan.number(task), task, None) for task in group]) for group in groups if group]
    if not chunks:
        return {}
    context = ChunkContext.of(narrow, to_spark_schema(narrow.projection))
    numbers = session.range(0, len(chunks), 1, len(chunks))
    rows = numbers.mapInArrow(Finder(context, shared(session, chunks)), FOUND).collect()
    return collected(plan, rows)
