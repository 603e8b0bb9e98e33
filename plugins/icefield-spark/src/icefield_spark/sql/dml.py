"""``DELETE`` and ``UPDATE``, as frames of changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icefield import Schema
from icefield.errors import InvalidArgument, NoSuchTable
from icefield.expressions import BooleanExpression
from pyspark.sql import DataFrame
from pyspark.sql import types as spark

from icefield_spark.keys import KeyFilter
from icefield_spark.places import ROW, Positions
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
from icefield_spark.sql.context import Context
from icefield_spark.sql.defaults import default_of
from icefield_spark.sql.parsing import Cursor, Statement, quoted
from icefield_spark.sql.queries import Queries
from icefield_spark.sql.sources import Names, Source
from icefield_spark.wap import staged_strings

TARGET = "icefield_target"
"""The name of the table that is changed, in the queries that are made of a statement."""


def target_of(context: Context, parts: tuple[str, ...], kind: str) -> Target | None:
    """The table that a statement changes; None for what is Spark's."""
    source = context.names.written(parts)
    if source is None:
        if context.names.is_known(parts):
            raise NoSuchTable(f"no table {'.'.join(parts)} in the catalog '{context.catalog.name}'", table=parts)
        return None
    if source.about is not None or source.snapshot_id is not None:
        raise InvalidArgument(f"'{'.'.join(parts)}' cannot be changed")
    strings = {} if source.ref else staged_strings(context.spark, source.table)
    return on_branch(source.table, source.ref, kind, strings)


def queries_on(
    context: Context, target: Target, *, found: Mapping[str, Positions] | None = None, keys: KeyFilter | None = None
) -> Queries:
    """Queries in which ``TARGET`` is the table at the head of its branch, with the column ``ROW``.

    ``found``: the rows of it that there are; ``keys``: what they have in a column.
    """
    ref = None if target.branch == "main" else target.branch
    source = Source((TARGET,), target.table, ref=ref, plan=target.plan, found=found, keys=keys)
    return Queries(context.spark, Names(context.spark, context.catalog, context.names.namespace, {TARGET: source}))


def alias_of(cursor: Cursor, parts: tuple[str, ...], *ends: str) -> str:
    """Take the alias after a table's name; its own last part, unless given."""
    if cursor.takes("AS"):
        return cursor.name("an alias")
    if cursor.is_over or any(cursor.sees(end) for end in ends):
        return parts[-1]
    return cursor.name("an alias")


def delete(context: Context, cursor: Cursor) -> DataFrame:
    """``DELETE FROM``; the cursor stands after DELETE."""
    cursor.expect("FROM")
    parts = cursor.names("the name of a table")
    target = target_of(context, parts, "delete")
    if target is None:
        return context.passed(cursor)
    alias = alias_of(cursor, parts, "WHERE")
    if cursor.is_over:
        target.table.delete(snapshot_properties=target.strings, branch=target.branch)
        return context.nothing()
    cursor.expect("WHERE")
    condition = Condition.of(cursor.rest(), alias, parts)
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
    alias = alias_of(cursor, parts, "SET")
    cursor.expect("SET")
    assigned = assignments(context, target.table.schema(), cursor, alias, parts, ("WHERE",))
    condition = Condition.of("true", alias, parts)
    if cursor.takes("WHERE"):
        condition = Condition.of(cursor.rest(), alias, parts)
    cursor.expect_end()
    queries = queries_on(context, target)
    found = places_in(target, queries.frame(context.before + condition.places()))
    if not found:
        return context.nothing()
    values = [f"{assigned.get(name, quoted(alias, name))} AS {quoted(name)}" for name in columns_of(target).names]
    listed = ", ".join([f"{UPDATE} AS {OPERATION}", *place_of(alias, target), *values])
    query = f"{context.before}SELECT {listed} FROM {TARGET} AS {quoted(alias)}"
    changed = queries_on(context, target, found=found).frame(query)
    commit_changes(context.spark, target, changed, concern=condition.concern(queries))
    return context.nothing()


@dataclass(frozen=True)
class Condition:
    """The condition of a statement on the rows of one table."""

    string: str
    alias: str

    @classmethod
    def of(cls, string: str, alias: str, parts: tuple[str, ...]) -> Condition:
        """The condition; the table's whole name before a column becomes its alias."""
        return cls(shortened(string, alias, parts), alias)

    def places(self) -> str:
        """The query of the places of the rows for which it holds."""
        alias = quoted(self.alias)
        return f"SELECT {alias}.{ROW} FROM {TARGET} AS {alias} WHERE {self.string}"

    def concern(self, queries: Queries) -> BooleanExpression | None:
        """A filter that holds of every row for which it may hold."""
        return queries.filter_of(f"SELECT 1 FROM {TARGET} AS {quoted(self.alias)} WHERE {self.string}")


def shortened(string: str, alias: str, parts: tuple[str, ...]) -> str:
    """A condition or value in which columns of a table are named through its alias."""
    if len(parts) < 2:
        return string
    statement = Statement(string)
    pieces, at, place = [], 0, 0
    while place < len(statement.tokens):
        span = 2 * len(parts) - 1
        found = [token.text.lower() for token in statement.tokens[place : place + span : 2]]
        dots = [token.text for token in statement.tokens[place + 1 : place + span : 2]]
        after = statement.is_word(place + span, ".")
        if found == [part.lower() for part in parts] and set(dots) == {"."} and after:
            pieces += [string[at : statement.tokens[place].start], quoted(alias)]
            at = statement.tokens[place + span - 1].end + 1
            place += span
        place += 1
    return "".join([*pieces, string[at:]])


def place_of(alias: str, target: Target) -> list[str]:
    """Where a row is that is updated, and what makes it the same row then; it has no last change yet."""
    found = [f"{quoted(alias)}.{name} AS {name}" for name in (ROW, *target.lineage[:1])]
    return [*found, *(f"CAST(NULL AS bigint) AS {name}" for name in target.lineage[1:])]


def assignments(
    context: Context, schema: Schema, cursor: Cursor, alias: str, parts: tuple[str, ...], *ends: tuple[str, ...]
) -> Mapping[str, str]:
    """Take ``a = 1, s.b = 2``: the new values by columns, as expressions of the column's type."""
    start, columns = cursor.at, optional_columns(schema)
    cursor.until(*ends)
    sensitive = str(context.spark.conf.get("spark.sql.caseSensitive")) == "true"
    given: dict[tuple[str, ...], str] = {}
    for item in Cursor(cursor.statement, start, cursor.at).items():
        path = _path(columns, item.names("a column"), alias, parts, sensitive)
        item.expect("=")
        if any(path[: len(other)] == other[: len(path)] for other in given):
            raise InvalidArgument(f"column '{'.'.join(path)}' is set twice", column=".".join(path))
        value = default_of(schema, path, item.rest())
        given[path] = shortened(value, alias, parts)
    if not given:
        raise cursor.unexpected("column = value")
    return {
        each.name: _value(each.dataType, quoted(alias, each.name), (each.name,), given)
        for each in columns.fields
        if any(path[0] == each.name for path in given)
    }


def _path(
    columns: spark.StructType, names: tuple[str, ...], alias: str, parts: tuple[str, ...], sensitive: bool
) -> tuple[str, ...]:
    for qualifier in ((), (alias,), parts):
        if names[: len(qualifier)] == qualifier or (
            not sensitive and _lower(names[: len(qualifier)]) == _lower(qualifier)
        ):
            found = _resolved(columns, names[len(qualifier) :], sensitive)
            if found:
                return found
    raise InvalidArgument(f"the table has no column '{'.'.join(names)}'; it has {', '.join(columns.names)}")


def _resolved(columns: spark.DataType, names: tuple[str, ...], sensitive: bool) -> tuple[str, ...] | None:
    if not names:
        return ()
    if not isinstance(columns, spark.StructType):
        return None
    for each in columns.fields:
        if each.name == names[0] or (not sensitive and each.name.lower() == names[0].lower()):
            rest = _resolved(each.dataType, names[1:], sensitive)
            return None if rest is None else (each.name, *rest)
    return None


def _lower(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)


def _value(kind: spark.DataType, old: str, path: tuple[str, ...], given: Mapping[tuple[str, ...], str]) -> str:
    """What a column or field is to be."""
    if path in given:
        return stored(given[path], kind)
    if not any(other[: len(path)] == path for other in given) or not isinstance(kind, spark.StructType):
        return old
    fields = [
        f"'{each.name}', {_value(each.dataType, f'{old}.{quoted(each.name)}', (*path, each.name), given)}"
        for each in kind.fields
    ]
    return f"named_struct({', '.join(fields)})"


def stored(value: str, kind: spark.DataType) -> str:
    """A value in the type of its column."""
    nested = isinstance(kind, spark.StructType | spark.ArrayType | spark.MapType)
    return f"({value})" if nested else f"CAST(({value}) AS {kind.simpleString()})"
