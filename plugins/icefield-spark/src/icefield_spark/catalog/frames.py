"""Frames of tables that Spark prunes: it pushes the filters and columns of a query to the scan of one version."""

from __future__ import annotations

import json

from icefield import Schema
from icefield.errors import InvalidArgument
from icefield.scan import TableScan
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from icefield_spark.catalog.bridge import Remote, reply
from icefield_spark.catalog.compiling import maker_of_frames
from icefield_spark.catalog.scans import PlannedScan
from icefield_spark.catalog.tables import metadata_columns
from icefield_spark.roads.choosing import Road
from icefield_spark.running import frame_of_plan
from icefield_spark.types import all_nullable, to_spark_schema


def relation(spark: SparkSession, scan: TableScan, columns: Schema, road: Road | None) -> DataFrame:
    """The frame of a scan, which is planned with the filters and columns that a query asks for.

    ``columns``: the scan's columns, in the order of the frame.
    """
    ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
    table = FrameTable(spark, scan, to_spark_schema(columns), road)
    return frame_of_plan(spark, maker_of_frames(spark).relation(table, spark._jsparkSession))


class FrameTable(Remote):
    """The table of a frame: rows and columns of one version, which no statement changes."""

    def __init__(
        self, spark: SparkSession, scan: TableScan, columns: spark_types.StructType, road: Road | None
    ) -> None:
        self._spark = spark
        self._scan = scan
        self._columns = columns if road is not Road.SPARK else all_nullable(columns)
        self._road = road
        snapshot = None if scan.snapshot is None else scan.snapshot.snapshot_id
        how = f"{scan.row_filter} {scan.case_sensitive} {road}"
        self._key = f"{scan.metadata.table_uuid} {snapshot} {scan.schema.schema_id} {how}"

    def on_describe(self, _: None) -> str:
        """Everything that Spark asks about a table, at once."""
        names = frozenset(self._columns.names)
        return reply(
            {
                "name": ".".join(self._scan.identifier),
                "id": str(self._scan.metadata.table_uuid),
                "version": self._key,
                "schema": self._columns.jsonValue(),
                "partitioning": [],
                "properties": {},
                "metadata_columns": [each for each in metadata_columns(self._scan) if each["name"] not in names],
                "writable": False,
                "streams": False,
                "lineage": False,
            }
        )

    def on_scan(self, asked: str) -> PlannedScan:
        """Plan a scan."""
        given = json.loads(asked)
        columns = spark_types.StructType.fromJson(given["columns"])
        return PlannedScan(self._spark, self._scan, columns, given["predicates"], self._key, road=self._road)

    def on_can_delete(self, _: str) -> str:
        """Whether a filter matches only whole files: never, as a frame deletes no files."""
        return reply(False)

    def on_operation(self, _: str) -> None:
        """Refuse a DELETE, UPDATE or MERGE. Raises ``InvalidArgument``."""
        raise InvalidArgument("a frame of ice.table cannot be changed: name the table itself")
