"""Updates and deletes of a table's rows, as data frames of Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from icefield import Schema
from icefield.errors import InvalidArgument
from icefield.expressions import BooleanExpression
from icefield.transaction import WriteResult
from icefield.types import METADATA_COLUMNS
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as spark

from icefield_spark.assigning import Path, by_column, check_stored, fold_of, paths, values_of
from icefield_spark.comparisons import Side
from icefield_spark.conditions import Expression, expression, said_of
from icefield_spark.keys import KeyFilter
from icefield_spark.numbered import numbered_frame
from icefield_spark.places import POSITION, ROW
from icefield_spark.quoting import quoted
from icefield_spark.row_changes import (
    columns_of,
    commit_changes,
    commit_deletes,
    optional_columns,
    places_in,
)
from icefield_spark.row_level import Target, delete_where
from icefield_spark.row_writer import OPERATION, UPDATE
from icefield_spark.types import to_spark_schema

_ANY = re.compile(r"(^|[(,.])\s*\*|\$\{")
"""A star that stands for columns, or a variable."""


@dataclass(frozen=True)
class ChangedTable:
    """The table that is changed: its rows with their places, under the alias by which expressions name it."""

    session: SparkSession
    target: Target
    alias: str
    metadata: Sequence[str]
    """The metadata columns that expressions may name."""

    @classmethod
    def of(cls, session: SparkSession, target: Target, alias: str, expressions: Iterable[Expression]) -> ChangedTable:
        """The table that is changed, with the metadata columns that expressions name."""
        schema = target.table.schema()
        text = " ".join(map(str, expressions)).lower()
        spelt = [each for each in METADATA_COLUMNS if each in text and not schema.has_field(each)]
        return cls(session, target, alias, spelt)

    def side(self, schema: Schema | None = None) -> Side:
        """The columns that expressions may name; ``schema``: the table's schema, if it is not the current one."""
        columns = optional_columns(schema or self.target.table.schema())
        more = self.target.table.scan(selected_fields=tuple(self.metadata)).projection if self.metadata else Schema()
        return Side(self.alias, spark.StructType([*columns.fields, *to_spark_schema(more).fields]))

    def empty(self, schema: Schema | None = None) -> DataFrame:
        """An empty frame with the columns of ``rows``."""
        columns = [*self.side(schema).columns.fields, spark.StructField(ROW, spark.LongType())]
        return self.session.createDataFrame([], spark.StructType(columns)).alias(self.alias)

    def rows(
        self,
        columns: Sequence[str] | None = None,
        *,
        where: BooleanExpression | None = None,
        keys: KeyFilter | None = None,
    ) -> DataFrame:
        """The rows that may match a filter and keys, with some of the table's columns, all by default."""
        named = [field.name for field in self.target.table.schema().fields] if columns is None else columns
        more = [*self.metadata, *(each for each in self.target.kept_of_rows if each not in self.metadata)]
        fields: list[Any] = [*((name,) for name in named), *more, *({POSITION} - {*more})]
        scan = self.target.scan(where).select(*fields)
        return numbered_frame(self.session, scan, [*named, *more], self.target.plan, keys).alias(self.alias)

    def read_by(self, expressions: Sequence[Expression]) -> list[str]:
        """The columns of the table that expressions may name."""
        names = [field.name for field in self.target.table.schema().fields]
        return [name for name in names if any(_may_name(each, name) for each in expressions)]


def _may_name(expression: Expression, column: str) -> bool:
    """Whether an expression may name a column. An expression with a star or a variable may name any column."""
    if not isinstance(expression, str) or _ANY.search(expression):
        return True
    return column.lower().replace("`", "``") in expression.lower()


def update_rows(
    session: SparkSession,
    target: Target,
    given: Mapping[Path, Expression],
    where: Expression | None,
    alias: str,
) -> WriteResult:
    """Set columns to other values, in the rows for which a condition holds.

    Raises ``InvalidArgument`` for no column.
    """
    if not given:
        raise InvalidArgument("an update sets at least one column")
    table, columns = target.table, columns_of(target)
    subject = ChangedTable.of(session, target, alias, [*given.values(), *([] if where is None else [where])])
    values = values_of(session, table.schema(), paths(columns, given, fold_of(session), alias))
    condition = None if where is None else expression(session, where)
    check_stored(session, subject.empty(), columns, values, condition)
    concern = None if where is None else said_of(session, where, subject.side()).concern(target.table)
    frame = subject.rows(where=concern)
    whole = by_column(columns, values, alias)
    changes = (frame if condition is None else frame.where(condition)).select(
        f.lit(UPDATE).alias(OPERATION),
        *lineage_columns(target),
        *(whole.get(name, f.col(quoted(alias, name))).alias(name) for name in columns.names),
    )
    return commit_changes(session, target, changes, concern=concern)


def lineage_columns(target: Target) -> list[Column]:
    """The columns of row locations and row ids. The last updated sequence number is null: rows inherit it."""
    none = f.lit(None).cast("long")
    return [f.col(ROW), *(f.col(name) if name in target.kept_of_rows else none.alias(name) for name in target.lineage)]


def delete_rows(session: SparkSession, target: Target, where: Expression, alias: str) -> WriteResult:
    """Delete the rows for which a condition holds. If a filter of the kernel is equivalent, Spark reads no rows."""
    subject = ChangedTable.of(session, target, alias, [where])
    condition = expression(session, where)
    subject.empty().where(condition).schema  # noqa: B018 -- with Spark Connect it is looked at only now
    said = said_of(session, where, subject.side())
    exact = said.exact(target.table)
    if exact is not None:
        return delete_where(session, target, exact)
    concern = said.concern(target.table)
    rows = subject.rows(subject.read_by([where]), where=concern).where(condition).select(ROW)
    return commit_deletes(session, target, places_in(target, rows), concern)
