"""Metadata tables: the snapshots, files and so on of a table, which are read and never written."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

from icefield.errors import InvalidArgument
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from icefield_spark.catalog.bridge import Remote, reply
from icefield_spark.catalog.scans import CURRENT, VERSIONS, Version
from icefield_spark.sql.changelog import changes_of
from icefield_spark.sql.frames import frame_about
from icefield_spark.sql.sources import Source

CHANGES: Final = "changes"
"""The name of the table of the rows of a table that changed."""


class TableAbout(Remote):
    """A metadata table, in its state when Spark loaded it for one statement."""

    def __init__(self, spark: SparkSession, catalog_name: str, source: Source) -> None:
        self._spark = spark
        self._source = source
        self._name = ".".join((catalog_name, *source.name))
        self._frame = frame_about(spark, source)

    def on_describe(self, _: None) -> str:
        """Everything that Spark asks about a table, at once."""
        source = self._source
        return reply(
            {
                "name": self._name,
                "id": f"{source.table.metadata.table_uuid} {source.about}",
                "version": f"{source.table.metadata_location} {source.snapshot_id} {source.ref}",
                "schema": self._frame.schema.jsonValue(),
                "partitioning": [],
                "properties": {},
                "metadata_columns": [],
                "writable": False,
                "streams": False,
                "lineage": False,
            }
        )

    def on_scan(self, asked: str) -> ScanAbout:
        """Read the rows, at the version that the options name."""
        given, source = json.loads(asked), self._source
        version = Version(source.snapshot_id, source.ref)
        chosen = version.with_options(given["options"], source.table)
        frame = self._frame
        if chosen != version:
            source = replace(source, snapshot_id=chosen.snapshot_id, ref=chosen.ref)
            frame = frame_about(self._spark, source)
        key = [self._name, str(source.table.metadata_location), str(chosen)]
        return ScanAbout(frame, spark_types.StructType.fromJson(given["columns"]), key)

    def on_can_delete(self, _: str) -> str:
        """Whether a filter matches only whole files: never."""
        return reply(False)

    def on_write(self, _: str) -> None:
        """Refuse a write."""
        raise InvalidArgument(f"{self._name} is a table about a table: it cannot be written")

    on_delete = on_can_overwrite = on_operation = on_write


class TableChanges(TableAbout):
    """The rows of a table that changed, from its first snapshot on unless the options of a read say otherwise."""

    def __init__(self, spark: SparkSession, catalog_name: str, source: Source) -> None:
        self._spark = spark
        self._source = source
        self._name = ".".join((catalog_name, *source.name))
        self._require_no_version(Version(source.snapshot_id, source.ref))
        self._frame = changes_of(spark, source.table, {})

    def _require_no_version(self, version: Version) -> None:
        if version != CURRENT:
            raise InvalidArgument(f"{self._name} has no versions: read it with start-snapshot-id and end-snapshot-id")

    def on_scan(self, asked: str) -> ScanAbout:
        """Read the changes between the snapshots or times that the options name."""
        given = json.loads(asked)
        options = {name.lower(): value for name, value in given["options"].items()}
        stated = {name: value for name, value in options.items() if name in VERSIONS}
        self._require_no_version(CURRENT.with_options(stated, self._source.table))
        frame = changes_of(self._spark, self._source.table, options) if options else self._frame
        key = [self._name, str(self._source.table.metadata_location), str(sorted(options.items()))]
        return ScanAbout(frame, spark_types.StructType.fromJson(given["columns"]), key)


class ScanAbout(Remote):
    """A scan of a metadata table."""

    def __init__(self, frame: DataFrame, columns: spark_types.StructType, key: list[str]) -> None:
        self._frame = frame
        self._columns = columns
        self._key = key

    def on_describe(self, _: Any) -> str:
        """The description of the scan for Spark; its rows are not counted beforehand."""
        return reply(
            {
                "description": f"icefield {self._key[0]}",
                "key": "\n".join([*self._key, self._columns.json()]),
                "rows": -1,
                "rows_in_arrow": 0,
                "bytes": 0,
                "runtime_columns": [],
            }
        )

    on_filter = on_describe

    def on_frame(self, _: Any) -> None:
        """Nothing: the rows are given."""

    on_count = on_frame

    def on_rows(self, _: None) -> Any:
        """The rows, as the RDD of Spark's internal rows of a frame."""
        return self._frame.to(self._columns)._jdf.queryExecution().toRdd()
