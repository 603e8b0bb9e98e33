"""The frames of ``ice.table``: relations that Spark prunes, or scans planned at once if Spark has no such relations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from icefield import Schema
from icefield.expressions import bind
from icefield.scan import TableScan
from icefield.types import METADATA_COLUMNS
from pyspark.sql import Column, DataFrame, SparkSession

from icefield_spark.catalog.frames import relation
from icefield_spark.explaining import explained
from icefield_spark.planned import in_order, planned
from icefield_spark.roads.choosing import Road
from icefield_spark.types import all_nullable, to_spark_schema


def read(
    spark: SparkSession,
    scan: TableScan,
    columns: Sequence[str],
    condition: Column | None,
    road: Road | None,
    *,
    is_pruned: bool,
) -> DataFrame:
    """The rows of a scan, filtered by a condition of Spark if there is one.

    ``columns``: the order of the columns. ``is_pruned``: whether Spark pushes filters and columns of later queries to
    the scan; else it is planned now. Raises ``UnsupportedFeature`` for a file that ``road`` does not serve.
    """
    bind(scan.schema, scan.expression, scan.case_sensitive)
    wanted = in_order(scan.projection, columns, scan.case_sensitive)
    if condition is not None:  # which may name columns that are not asked for
        scan = scan.select("*", *(field.name for field in wanted.fields if field.name in METADATA_COLUMNS))
    if is_pruned:
        if road is Road.SPARK:
            planned(spark, scan, columns, road=road)
        shown = in_order(scan.projection, columns, scan.case_sensitive)
        return _where(relation(spark, scan, shown, road), condition, wanted)
    made = planned(spark, scan, columns, road=road)
    frame = _where(made.frame, condition, wanted)
    explained(scan, replace(made, frame=frame))
    return frame


def _where(frame: DataFrame, condition: Column | None, columns: Schema) -> DataFrame:
    """The rows for which a condition holds, if there is one, with some columns."""
    return frame if condition is None else frame.where(condition).to(all_nullable(to_spark_schema(columns)))
