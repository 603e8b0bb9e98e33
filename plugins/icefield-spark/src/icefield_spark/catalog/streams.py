"""Streams of a table of a session's catalog: answers to Spark about offsets, and the rows of a batch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from icefield import Table
from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

from icefield_spark.catalog.bridge import Remote, reply
from icefield_spark.chunks import ChunkReader
from icefield_spark.executors import shared
from icefield_spark.source import QuerySource
from icefield_spark.streaming.following import Following
from icefield_spark.streaming.history import Limits
from icefield_spark.streaming.offsets import Offset


class FollowedTable(Remote):
    """A table that a query follows."""

    def __init__(
        self, spark: SparkSession, table: Table, options: Mapping[str, str], columns: spark_types.StructType
    ) -> None:
        self._spark = spark
        self._columns = columns
        self._following = Following(QuerySource(dict(options)), table.refresh, columns)

    def on_initial(self, _: None) -> str:
        """The offset before anything was read."""
        return reply(Offset().to_json())

    def on_limits(self, _: None) -> str:
        """The most that a batch takes unless Spark asks for everything."""
        return reply({"files": self._following.limits.files, "rows": self._following.limits.rows})

    def on_latest(self, asked: str) -> str:
        """The end of the next batch."""
        given = json.loads(asked)
        limits = Limits() if given["all"] else self._following.limits
        return reply(self._following.reach(Offset.from_json(given["start"]), limits).to_json())

    def on_pin(self, _: None) -> None:
        """Pin the table's current state: the query ends there."""
        self._following.pin()

    def on_rows(self, asked: str) -> Any:
        """The rows of a batch, as the RDD of Spark's internal rows of a frame."""
        given = json.loads(asked)
        batch = self._following.batch(Offset.from_json(given["start"]), Offset.from_json(given["end"]))
        chunks = list(batch.chunks)
        if not chunks or batch.context is None:
            frame = self._spark.createDataFrame([], self._columns)
        else:
            numbers = self._spark.range(0, len(chunks), 1, len(chunks))
            frame = numbers.mapInArrow(ChunkReader(batch.context, shared(self._spark, chunks)), self._columns)
        return frame._jdf.queryExecution().toRdd()
