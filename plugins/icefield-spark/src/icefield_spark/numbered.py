"""The rows of a scan with their locations. Each file takes the road that suits it."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
from icefield import Schema
from icefield.scan import FileScanTask, TableScan, read_positions, read_tasks
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as spark

from icefield_spark.arrow import SparkBatches, in_pieces
from icefield_spark.chunks import ChunkContext
from icefield_spark.executors import shared
from icefield_spark.failures import as_raised, with_cause_alone
from icefield_spark.keys import KeyFilter
from icefield_spark.maintenance import SparkRunner
from icefield_spark.places import (
    FOUND,
    POSITION,
    ROW,
    Plan,
    Positions,
    collected,
    place,
    place_in_spark,
    reported,
)
from icefield_spark.planned import Only
from icefield_spark.quoting import quoted
from icefield_spark.roads.choosing import Chooser, needs_statistics, wanted_of
from icefield_spark.roads.columns import UnfitForSpark
from icefield_spark.roads.lane import lane_frame
from icefield_spark.sizing import chunk_numbers, tasks_of
from icefield_spark.types import to_spark_schema
from icefield_spark.workers import chunks_of

_FILE: Final = "_file"
_MOST_BYTES: Final = 512 << 20
"""The most bytes of files in one task that reads their rows."""

_Piece = tuple[int, FileScanTask, Positions | None]
"""The number of a file, a task for it, and the positions that are read; all, unless given."""


class NumberedReader:
    """The function for ``mapInArrow``: chunk numbers in; rows with their locations out, after the filter of keys.

    ``step`` is the difference between the numbers of two successive chunks.
    """

    def __init__(self, context: ChunkContext, chunks: Any, step: int = 1, keys: Any = None) -> None:
        self._context = context
        self._chunks = chunks
        self._step = step
        self._keys = keys

    @with_cause_alone
    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keys: KeyFilter | None = self._keys
        scan = self._context.scan
        shape = SparkBatches(scan.projection, self._context.columns)
        schema = shape.schema.append(pa.field(ROW, pa.int64()))
        for chunk in chunks_of(numbers, self._chunks, self._step):
            for number, task, only in pickle.loads(chunk):
                if keys is not None and not self._may_meet(task, keys):
                    continue
                batches = read_tasks([task], scan, workers=1) if only is None else read_positions(task, scan, only)
                for rows in batches:
                    if keys is not None:
                        rows = rows.filter(keys.mask(rows))
                    positions = np.asarray(rows.column(POSITION))
                    if len(positions):
                        places = pa.array(place(number, positions), pa.int64())
                        found = [*shape.convert(rows).columns, places]
                        yield from in_pieces(pa.RecordBatch.from_arrays(found, schema=schema))

    def _may_meet(self, task: FileScanTask, keys: KeyFilter) -> bool:
        """Whether a task has a row that may match a key: only the key column is read, up to the first such row."""
        scan = self._context.scan
        asked = [column for column in scan.projection.fields if column.name != POSITION]
        if len(asked) < 2:
            return True
        narrow = replace(scan, projection=Schema(*(column for column in asked if column.name == keys.column)))
        return any(keys.mask(rows).true_count for rows in read_tasks([task], narrow, workers=1))

    def __repr__(self) -> str:  # shown in Spark's plan
        return "icefield"


def numbered_frame(
    session: SparkSession,
    scan: TableScan,
    columns: Sequence[str],
    plan: Plan,
    keys: KeyFilter | None = None,
    only: Only | None = None,
) -> DataFrame:
    """The rows of a scan with their locations and the requested columns.

    ``keys``: a filter of the rows by key; it is evaluated in Arrow, so all files are read in Arrow. ``only`` selects
    the files to read.
    """
    scan = scan.planned_on(SparkRunner(session))
    pieces: list[list[_Piece]] = [
        [(plan.number(task), task, None) for task in group if only is None or only(task)]
        for group in scan.plan_tasks(tasks_of(session))
    ]
    pieces = [chunk for chunk in pieces if chunk]
    frames: list[DataFrame] = []
    if keys is None:
        frames, taken = _by_spark(session, scan, columns, plan, only)
        kept = [[each for each in chunk if each[1].file.file_path not in taken] for chunk in pieces]
        pieces = [chunk for chunk in kept if chunk]
    if pieces or not frames:
        frames.append(_in_arrow(session, scan, columns, pieces, keys))
    return reduce(DataFrame.union, frames)


def _by_spark(
    session: SparkSession, scan: TableScan, columns: Sequence[str], plan: Plan, only: Only | None
) -> tuple[list[DataFrame], frozenset[str]]:
    """The frames of files that take Spark's own reader, and the locations of these files."""
    if any(scan.schema.has_field(name) for name in (_FILE, POSITION)):
        return [], frozenset()
    scan = scan.select(*scan.selected_fields, _FILE)
    order = list(dict.fromkeys([*columns, _FILE, POSITION]))
    try:
        wanted = wanted_of(scan, is_exact=False)
        planned = scan.plan_files(include_stats=needs_statistics(scan))
        found = (task for task in planned if only is None or only(task))
        tasks = [task for task in found if plan.is_computed(task.file.file_path)]
        roads = Chooser(session, scan, wanted).choose(tasks)
        frames = [lane_frame(session, wanted, group, order) for group in roads.groups]
    except UnfitForSpark:
        return [], frozenset()
    numbered = place_in_spark(_FILE, POSITION).alias(ROW)
    named = [f.col(quoted(name)) for name in columns]
    return [frame.select(*named, numbered) for frame in frames], frozenset(
        task.file.file_path for group in roads.groups for task in group.tasks
    )


def _in_arrow(
    session: SparkSession,
    scan: TableScan,
    columns: Sequence[str],
    pieces: Sequence[Sequence[_Piece]],
    keys: KeyFilter | None,
) -> DataFrame:
    made = {each.name: each for each in to_spark_schema(scan.projection).fields}
    asked = spark.StructType([made[name] for name in columns])
    schema = spark.StructType([*asked.fields, spark.StructField(ROW, spark.LongType())])
    if not pieces:
        return session.createDataFrame([], schema)
    known = keys.values if keys is not None else None
    rows = sum(_rows_of(piece) for chunk in pieces for piece in chunk)
    numbers, step = chunk_numbers(session, len(pieces), rows if known is None else min(rows, len(known)))
    pickled = [pickle.dumps(chunk) for chunk in pieces]
    reader = NumberedReader(ChunkContext.of(scan, asked), shared(session, pickled), step, keys)
    return numbers.mapInArrow(reader, schema)


def _rows_of(piece: _Piece) -> int:
    """The approximate number of rows in a piece."""
    _, task, only = piece
    if only is not None:
        return len(only)
    return task.file.record_count * task.length // max(1, task.file.file_size_in_bytes)


class Finder:
    """The function for ``mapInArrow``: chunk numbers in; positions of the rows that pass the tasks' filters, out."""

    def __init__(self, context: ChunkContext, chunks: Any) -> None:
        self._context = context
        self._chunks = chunks

    @with_cause_alone
    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for chunk in chunks_of(numbers, self._chunks):
            for number, task in pickle.loads(chunk):
                found = [np.asarray(rows.column(0)) for rows in read_tasks([task], self._context.scan, workers=1)]
                if found:
                    yield reported(number, np.concatenate(found))

    def __repr__(self) -> str:
        return "icefield"


def found_by_filter(session: SparkSession, scan: TableScan, plan: Plan, only: set[str]) -> dict[str, Positions]:
    """The positions of the rows that match the scan's filter in some of its files; the filter is applied in Arrow."""
    narrow = scan.select(POSITION)
    groups = ([task for task in group if task.file.file_path in only] for group in narrow.plan_tasks(tasks_of(session)))
    chunks = [pickle.dumps([(plan.number(task), task) for task in group]) for group in groups if group]
    if not chunks:
        return {}
    context = ChunkContext.of(narrow, to_spark_schema(narrow.projection))
    numbers = session.range(0, len(chunks), 1, len(chunks))
    with as_raised():
        rows = numbers.mapInArrow(Finder(context, shared(session, chunks)), FOUND).collect()
    return collected(plan, rows)
