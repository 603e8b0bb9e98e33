"""A scan as a data frame: planned on the driver, read by Spark's own reader or in Arrow, file by file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from icefield import Schema
from icefield.errors import UnsupportedFeature
from icefield.expressions import AlwaysTrue
from icefield.scan import FileScanTask, TableScan
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from icefield_spark.chunks import ChunkContext, ChunkReader, VersionScan, plan_chunks
from icefield_spark.executors import shared
from icefield_spark.failures import as_raised
from icefield_spark.maintenance import SparkRunner
from icefield_spark.roads.choosing import Chooser, Road, Roads, all_in_arrow, needs_statistics, requires_any, wanted_of
from icefield_spark.roads.columns import UnfitForSpark
from icefield_spark.roads.lane import lane_frame
from icefield_spark.roads.relations import takes_constants
from icefield_spark.sizing import chunk_numbers, tasks_of
from icefield_spark.types import to_spark_schema

Only = Callable[[FileScanTask], bool]


@dataclass(frozen=True)
class Planned:
    """The frame of a scan, and the roads of its files."""

    frame: DataFrame
    roads: Roads


def planned_frame(
    spark: SparkSession,
    scan: VersionScan,
    columns: Sequence[str] = (),
    *,
    only: Only | None = None,
    road: Road | None = Road.ARROW,
) -> DataFrame:
    """The rows of a scan. ``columns``: the order of its columns. ``only`` selects the tasks to read.

    ``road``: how all files are read; None chooses for each file. Raises ``UnsupportedFeature`` if it cannot serve a
    file.
    """
    return planned(spark, scan, columns, only=only, road=road).frame


def planned(
    spark: SparkSession,
    scan: VersionScan,
    columns: Sequence[str] = (),
    *,
    only: Only | None = None,
    road: Road | None = None,
) -> Planned:
    """The frame of a scan, with the road of each file and the reason; see ``planned_frame``."""
    scan = on_executors(spark, scan)
    return planned_tasks(spark, scan, columns, tasks_to_read(scan, only, road), only=only, road=road)


def on_executors(spark: SparkSession, scan: VersionScan) -> VersionScan:
    """The scan, planned by a job where its manifests are large."""
    return scan.planned_on(SparkRunner(spark)) if isinstance(scan, TableScan) else scan


def tasks_to_read(scan: VersionScan, only: Only | None, road: Road | None) -> list[FileScanTask]:
    """The tasks of a scan for whole files, with the statistics that the choice of roads needs."""
    found = scan.plan_files(include_stats=road is not Road.ARROW and needs_statistics(scan))
    return [task for task in found if only is None or only(task)]


def planned_tasks(
    spark: SparkSession,
    scan: VersionScan,
    columns: Sequence[str],
    tasks: list[FileScanTask],
    *,
    only: Only | None = None,
    road: Road | None = None,
) -> Planned:
    """The frame of some tasks of a scan. ``only`` selects these tasks; it is None if they are all."""
    schema = to_spark_schema(in_order(scan.projection, columns, scan.case_sensitive))
    roads, frames = _on_roads(spark, scan, schema, tasks, road)
    taken = roads.arrow
    if taken is None or taken:
        wanted = only if taken is None else (lambda task: task.file.file_path in taken and (only is None or only(task)))
        rows = sum(task.file.record_count for task in tasks if taken is None or task.file.file_path in taken)
        frame = _arrow_frame(spark, scan, schema, wanted, rows)
        frames += [frame] if frame is not None else []
    if not frames:
        return Planned(spark.createDataFrame([], schema), roads)
    return Planned(reduce(DataFrame.union, frames), roads)


def count_rows(spark: SparkSession, scan: TableScan) -> int:
    """How many rows a scan gives: by metadata for files that match whole and have no deletes, else by a job."""
    scan = scan.planned_on(SparkRunner(spark))
    counted, others = 0, set()
    for task in scan.plan_files():
        if isinstance(task.residual, AlwaysTrue) and not task.delete_files and task.file.record_count > 0:
            counted += task.file.record_count
        else:
            others.add(task.file.file_path)
    if not others:
        return counted
    some = next(iter(scan.schema.fields), None)
    narrow = scan if some is None else scan.select(some.name)
    frame = planned_frame(spark, narrow, only=lambda task: task.file.file_path in others)
    with as_raised():
        return counted + frame.count()


def _on_roads(
    spark: SparkSession, scan: VersionScan, schema: StructType, tasks: list[FileScanTask], road: Road | None
) -> tuple[Roads, list[DataFrame]]:
    """The roads of the tasks, and the frames of Spark's own reader."""
    if road is Road.ARROW:
        return all_in_arrow(tasks, "it was asked for"), []
    is_exact = road is not Road.SPARK
    try:
        if is_exact and requires_any(scan) and not takes_constants(spark):
            raise UnfitForSpark(
                "it has a required column, and without classes of Icefield Spark's reader calls every column nullable"
            )
        wanted = wanted_of(scan, is_exact=is_exact)
        roads = Chooser(spark, scan, wanted, is_asked_for=road is Road.SPARK).choose(tasks)
        frames = [lane_frame(spark, wanted, group, schema.names) for group in roads.groups]
    except UnfitForSpark as unfit:
        roads, frames = all_in_arrow(tasks, str(unfit)), []
    refused = next((each for each in roads.chosen if each.road is Road.ARROW), None)
    if road is Road.SPARK and refused is not None:
        raise UnsupportedFeature(
            f"Spark's own reader does not serve {refused.location}: {refused.reason}; leave out road='spark'"
        )
    return roads, frames


def _arrow_frame(
    spark: SparkSession, scan: VersionScan, schema: StructType, only: Only | None, rows: int
) -> DataFrame | None:
    chunks = plan_chunks(scan, only, tasks_of(spark))
    if not chunks:
        return None
    numbers, step = chunk_numbers(spark, len(chunks), rows)
    reader = ChunkReader(ChunkContext.of(scan, schema), shared(spark, chunks), step)
    return numbers.mapInArrow(reader, schema)


def in_order(schema: Schema, columns: Sequence[str], case_sensitive: bool) -> Schema:
    """The columns in the requested order."""

    def place(name: str) -> int:
        plain = name if case_sensitive else name.lower()
        for at, column in enumerate(columns):
            asked = column if case_sensitive else column.lower()
            if asked == plain or asked.startswith(f"{plain}."):
                return at
        return len(columns)

    return Schema(*sorted(schema.fields, key=lambda field: place(field.name)), schema_id=schema.schema_id)
