"""``DELETE`` and ``UPDATE``, as frames of changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from icefield import Schema
from icefield.errors import InvalidArgument
from icefield.expressions import BooleanExpression
from pyspark.sql import DataFrame
from pyspark.sql import types as spark

from icefield_spark.keys import KeyFilter
from icefield_spark.missing import no_table
from icefield_spark.places import ROW, Positions
from icefield_spark.quoting import quoted
from icefield_spark.row_changes import (
    OPERATION,
    UPDATE,
    columns_of,
    commit_changes,
    commit_deletes,
    on_branch,
    optional_columns,
    places_in,
)
from icefield_spark.row_level import Target, delete_where
from icefield_spark.sql.assigning import assignments, by_column, stored
from icefield_spark.sql.columns import fold_of
from icefield_spark.sql.context import Context
from icefield_spark.sql.parsing import Cursor
from icefield_spark.sql.qualified import Qualifiers, Relation, has_query, take_name
from icefield_spark.sql.queries import Queries
from icefield_spark.sql.sources import METADATA_COLUMNS, Names, Source
from icefield_spark.types import to_spark_schema
from icefield_spark.wap import staged_strings

TARGET = "icefield_target"
"""The name of the table that is changed, in the queries that are made of a statement."""


def target_of(context: Context, parts: tuple[str, ...], kind: str) -> Target | None:
    """The table that a statement changes; None for what is Spark's."""
    source = context.names.written(parts)
    if source is None:
        if context.names.is_known(parts) and context.names.view(parts) is None:
            raise no_table(context.catalog, context.names.local(parts))
        return None
    if source.about is not None or source.snapshot_id is not None:
        raise InvalidArgument(f"'{'.'.join(parts)}' cannot be changed")
    strings = {} if source.ref else staged_strings(context.spark, source.table)
    return on_branch(source.table, source.ref, kind, strings)


def queries_on(
    context: Context,
    target: Target,
    *,
    found: Mapping[str, Positions] | None = None,
    where: BooleanExpression | None = None,
    keys: KeyFilter | None = None,
) -> Queries:
    """Queries in which ``TARGET`` is the table at the head of its branch, with the column ``ROW``.

    ``found``: the rows of it that there are; ``where``: what they match; ``keys``: what they have in a column.
    """
    ref = None if target.branch == "main" else target.branch
    source = Source((TARGET,), target.table, ref=ref, plan=target.plan, found=found, where=where, keys=keys)
    return Queries(
        context.spark,
        Names(context.spark, context.catalog, context.names.namespace, {TARGET: source}, context.names.attached),
    )


def relation_of(context: Context, cursor: Cursor, parts: tuple[str, ...], schema: Schema, end: str) -> Relation:
    """Take the alias of the table that a statement changes, if any: how its columns are named."""
    name, alias = take_name(context.names, cursor, parts, end)
    return Relation(name, [field.name for field in schema.fields], alias)


def delete(context: Context, cursor: Cursor) -> DataFrame:
    """``DELETE FROM``; the cursor stands after DELETE."""
    cursor.expect("FROM")
    parts = cursor.names("the name of a table")
    target = target_of(context, parts, "delete")
    if target is None:
        return context.passed(cursor)
    relation = relation_of(context, cursor, parts, target.table.schema(), "WHERE")
    if cursor.is_over:
        target.table.delete(snapshot_properties=target.strings, branch=target.branch)
        return context.nothing()
    cursor.expect("WHERE")
    qualifiers = Qualifiers(context.names, fold_of(context), context.before, [relation])
    condition = Condition(qualifiers.applied(cursor.rest()), relation.alias)
    queries = queries_on(context, target)
    exact = queries.exact_filter_of(condition.places())
    if exact is not None:
        delete_where(context.spark, target, exact)
        return context.nothing()
    found = places_in(target, queries.frame(context.before + condition.places()))
    commit_deletes(context.spark, target, found, condition.concern(queries))
    return context.nothing()


def update(context: Context, cursor: Cursor) -> DataFrame:
    """``UPDATE``; the cursor stands after it."""
    parts = cursor.names("the name of a table")
    target = target_of(context, parts, "update")
    if target is None:
        return context.passed(cursor)
    schema, columns = target.table.schema(), columns_of(target)
    relation = relation_of(context, cursor, parts, schema, "SET")
    alias = relation.alias
    cursor.expect("SET")
    given = assignments(context, schema, cursor, relation, ("WHERE",))
    string = cursor.rest() if cursor.takes("WHERE") else "true"
    cursor.expect_end()
    qualifiers = Qualifiers(context.names, fold_of(context), context.before, [relation])
    condition = Condition(qualifiers.applied(string), alias)
    given = {path: qualifiers.applied(value) for path, value in given.items()}
    table = f"{TARGET} AS {quoted(alias)}"
    frames = {TARGET: without_rows(context, target, schema, given.values())}
    assigned = by_column(columns, stored(context, columns, given, table, frames), alias)
    queries = queries_on(context, target)
    values = [f"{assigned.get(name, quoted(alias, name))} AS {quoted(name)}" for name in columns.names]
    listed = ", ".join([f"{UPDATE} AS {OPERATION}", *place_of(alias, target), *values])
    query = f"{context.before}SELECT {listed} FROM {table}"
    if has_query(condition.string) and any(map(has_query, given.values())):
        # Both may ask one live source, which is to answer once: no second job after one that finds the rows.
        changed = queries.frame(f"{query} WHERE {condition.string}")
    else:
        found = places_in(target, queries.frame(context.before + condition.places()))
        if not found:
            return context.nothing()
        changed = queries_on(context, target, found=found).frame(query)
    commit_changes(context.spark, target, changed, concern=condition.concern(queries))
    return context.nothing()


@dataclass(frozen=True)
class Condition:
    """The condition of a statement on the rows of one table."""

    string: str
    alias: str

    def places(self) -> str:
        """The query of the places of the rows for which it holds."""
        alias = quoted(self.alias)
        return f"SELECT {alias}.{ROW} FROM {TARGET} AS {alias} WHERE {self.string}"

    def concern(self, queries: Queries) -> BooleanExpression | None:
        """A filter that holds of every row for which it may hold."""
        return queries.filter_of(f"SELECT 1 FROM {TARGET} AS {quoted(self.alias)} WHERE {self.string}")


def without_rows(context: Context, target: Target, schema: Schema, expressions: Iterable[str]) -> DataFrame:
    """No row of the table that a statement changes, with the columns that expressions of it may name."""
    known = {field.name for field in schema.fields}
    spelt = " ".join(expressions).lower()
    metadata = [name for name in METADATA_COLUMNS if name in spelt and name not in known]
    more = to_spark_schema(target.table.scan(selected_fields=tuple(metadata)).projection).fields if metadata else []
    return context.spark.createDataFrame([], spark.StructType([*optional_columns(schema).fields, *more]))


def place_of(alias: str, target: Target) -> list[str]:
    """Where a row is that is updated, and what makes it the same row then; it has no last change yet."""
    found = [f"{quoted(alias)}.{name} AS {name}" for name in (ROW, *target.lineage[:1])]
    return [*found, *(f"CAST(NULL AS bigint) AS {name}" for name in target.lineage[1:])]
