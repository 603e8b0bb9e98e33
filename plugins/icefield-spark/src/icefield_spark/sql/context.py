"""The context of a statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from icefield import Catalog
from pyspark.sql import DataFrame, SparkSession

from icefield_spark.running import run_sql
from icefield_spark.sql.by_names import ByNames
from icefield_spark.sql.parsing import Cursor
from icefield_spark.sql.sources import Names

Rows = Sequence[Sequence[Any]]
"""A few rows, by the order of their columns."""


@dataclass(frozen=True)
class StatementContext:
    """One statement's session, catalog and names."""

    spark: SparkSession
    catalog: Catalog
    names: Names
    queries: ByNames

    def nothing(self) -> DataFrame:
        """The empty result of a statement."""
        return no_rows(self.spark)

    def rows(self, columns: str, rows: Rows) -> DataFrame:
        """A frame of a few rows. ``columns``: names and types as in a statement."""
        return self.spark.createDataFrame([tuple(row) for row in rows], columns)

    def passed(self, cursor: Cursor) -> DataFrame:
        """The result of Spark for the whole statement."""
        return run_sql(self.spark, cursor.statement.string)


def no_rows(spark: SparkSession) -> DataFrame:
    """No row of no column.

    Spark knows that this frame is empty without a job; for an empty list it would start Python workers.
    """
    return spark.range(1).where("false").select()
