"""What a statement is carried out with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from icefield import Catalog, Table, View
from icefield.writing import WriteContext
from pyspark.sql import DataFrame, SparkSession

from icefield_spark.running import run_sql
from icefield_spark.sql.parsing import Cursor
from icefield_spark.sql.queries import Queries
from icefield_spark.sql.sources import Names
from icefield_spark.writing import Outcome

Rows = Sequence[Sequence[Any]]
"""A few rows, by the order of their columns."""


@dataclass(frozen=True)
class Context:
    """One statement's session, catalog and names."""

    spark: SparkSession
    catalog: Catalog
    names: Names
    queries: Queries
    write: Callable[[DataFrame, WriteContext, Any], Outcome]
    """Runs the job that writes a frame; the files are the transaction's, to commit or to delete."""
    before: str = ""
    """The WITH clause that stands in front of the statement, for the queries that are made of it."""

    def nothing(self) -> DataFrame:
        """What a statement gives that gives nothing."""
        return no_rows(self.spark)

    def rows(self, columns: str, rows: Rows) -> DataFrame:
        """A frame of a few rows. ``columns``: names and types as in a statement."""
        return self.spark.createDataFrame([tuple(row) for row in rows], columns)

    def passed(self, cursor: Cursor) -> DataFrame:
        """What Spark makes of the whole statement; queries in one that writes may read the catalog's tables."""
        statement = cursor.statement
        reads = any(statement.is_word(0, word) for word in ("CREATE", "INSERT", "MERGE", "UPDATE", "DELETE", "WITH"))
        return self.queries.frame(statement.string) if reads else run_sql(self.spark, statement.string)

    def table(self, parts: tuple[str, ...]) -> Table | None:
        """The catalog's table of a name; None for what is Spark's."""
        found = self.names.find(parts)
        return None if found is None else self.names.table(parts)

    def table_or_view(self, parts: tuple[str, ...]) -> tuple[Table | None, View | None]:
        """The catalog's table or view of a name; neither for what is Spark's."""
        table = self.table(parts)
        return table, (self.names.view(parts) if table is None else None)

    def namespace(self, parts: tuple[str, ...]) -> tuple[str, ...] | None:
        """The catalog's namespace of a name; None for what is Spark's."""
        local = parts[1:] if self.names.is_catalog(parts[0]) else parts
        return local if not local or self.names.is_namespace(local) else None


def no_rows(spark: SparkSession) -> DataFrame:
    """No row of no column. Spark knows so without a job; for an empty list it would start Python workers."""
    return spark.range(1).where("false").select()
