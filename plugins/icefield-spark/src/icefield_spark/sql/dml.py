"""``DELETE`` and ``UPDATE``, as frames of changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from icefield.errors import InvalidArgument, NoSuchTable, UnsupportedFeature
from icefield.expressions import BooleanExpression
from pyspark.sql import DataFrame
from pyspark.sql import types as spark

from icefield_spark.sql.columns import staged_as
from icefield_spark.sql.context import Context
from icefield_spark.sql.parsing import Cursor, Statement, quoted
from icefield_spark.sql.queries import Queries
from icefield_spark.sql.row_changes import (
    DELETE,
    FILE,
    KEEP,
    OPERATION,
    POSITION,
    UPDATE,
    Target,
    commit_changes,
    on_branch,
)
from icefield_spark.sql.sources import Names, Source

TARGET = "icefield_target"
"""The name of the table that is changed, in the queries that are made of a statement."""


def target_of(context: Context, parts: tuple[str, ...], kind: str) -> Target | None:
    """The table that a statement changes; None for what is Spark's."""
    source = context.names.find(parts)
    if source is None:
        if context.names.is_known(parts):
            raise NoSuchTable(f"no table {'.'.join(parts)} in the catalog '{context.catalog.name}'", table=parts)
        return None
    if source.about is not None or source.snapshot_id is not None:
        raise InvalidArgument(f"'{'.'.join(parts)}' cannot be changed")
    if source.ref is None and staged_as(context, source.table):
        raise UnsupportedFeature(
            f"{kind.upper()} cannot be staged by spark.wap.id; write to a branch: db.t.branch_audit"
        )
    return on_branch(source.table, source.ref, kind)


def queries_on(context: Context, target: Target) -> Queries:
    """Queries in which ``TARGET`` is the table at the head of its branch, and reading it is noted."""
    ref = None if target.branch == "main" else target.branch
    source = Source((TARGET,), target.table, ref=ref, only=target.reads)
    return Queries(context.spark, Names(context.catalog, context.names.namespace, {TARGET: source}))


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
        target.table.delete(branch=target.branch)
        return context.nothing()
    cursor.expect("WHERE")
    condition = Condition.of(cursor.rest(), alias, parts)
    queries = queries_on(context, target)
    columns = _typed_nulls(target)
    changed = condition.rows(f"{DELETE} AS {OPERATION}", places(alias, target), columns)
    if target.marks:
        commit_changes(context.spark, target, queries.frame(changed), concern=condition.concern(queries))
        return context.nothing()
    _limit_to_touched(target, queries, condition)
    kept = condition.other_rows(f"{KEEP} AS {OPERATION}", places(alias, target), own_columns(alias, target))
    commit_changes(context.spark, target, queries.frame(kept), concern=condition.concern(queries))
    return context.nothing()


def update(context: Context, cursor: Cursor) -> DataFrame:
    """``UPDATE``; the cursor stands after it."""
    parts = cursor.names("the name of a table")
    target = target_of(context, parts, "update")
    if target is None:
        return context.passed(cursor)
    alias = alias_of(cursor, parts, "SET")
    cursor.expect("SET")
    assigned = assignments(context, target, cursor, alias, parts, ("WHERE",))
    condition = Condition.of("true", alias, parts)
    if cursor.takes("WHERE"):
        condition = Condition.of(cursor.rest(), alias, parts)
    cursor.expect_end()
    queries = queries_on(context, target)
    values = [f"{assigned.get(name, quoted(alias, name))} AS {quoted(name)}" for name in target.columns().names]
    changed = condition.rows(f"{UPDATE} AS {OPERATION}", places(alias, target, changed=True), values)
    if target.marks:
        commit_changes(context.spark, target, queries.frame(changed), concern=condition.concern(queries))
        return context.nothing()
    _limit_to_touched(target, queries, condition)
    kept = condition.other_rows(f"{KEEP} AS {OPERATION}", places(alias, target), own_columns(alias, target))
    frame = queries.frame(changed).unionByName(queries.frame(kept))
    commit_changes(context.spark, target, frame, concern=condition.concern(queries))
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

    @property
    def has_query(self) -> bool:
        """Whether a query is in it."""
        return "SELECT" in self.string.upper()

    def rows(self, first: str, places: Sequence[str], columns: Sequence[str]) -> str:
        """The query of the rows for which it holds."""
        listed = ", ".join([first, *places, *columns])
        return f"SELECT {listed} FROM {TARGET} AS {quoted(self.alias)} WHERE {self.string}"

    def other_rows(self, first: str, places: Sequence[str], columns: Sequence[str]) -> str:
        """The query of the rows for which it does not hold, or is unknown."""
        listed = ", ".join([first, *places, *columns])
        alias = quoted(self.alias)
        if not self.has_query:
            return f"SELECT {listed} FROM {TARGET} AS {alias} WHERE ({self.string}) IS NOT TRUE"
        held = f"SELECT {alias}.{FILE} AS file, {alias}.{POSITION} AS place FROM {TARGET} AS {alias}"
        return (
            f"SELECT {listed} FROM {TARGET} AS {alias} LEFT ANTI JOIN ({held} WHERE {self.string}) AS held "
            f"ON {alias}.{FILE} = held.file AND {alias}.{POSITION} = held.place"
        )

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


def places(alias: str, target: Target, *, changed: bool = False) -> list[str]:
    """Where a row is, and what makes it the same row after it is moved; as a changed row it has no last change yet."""
    found = [f"{quoted(alias)}.{name} AS {name}" for name in (FILE, POSITION, *target.lineage[:1])]
    if target.lineage:
        last = target.lineage[1]
        found.append(f"CAST(NULL AS bigint) AS {last}" if changed else f"{quoted(alias)}.{last} AS {last}")
    return found


def own_columns(alias: str, target: Target) -> list[str]:
    """The columns of a row as they are."""
    return [f"{quoted(alias, name)} AS {quoted(name)}" for name in target.columns().names]


def assignments(
    context: Context, target: Target, cursor: Cursor, alias: str, parts: tuple[str, ...], *ends: tuple[str, ...]
) -> Mapping[str, str]:
    """Take ``a = 1, s.b = 2``: the new values by columns, as expressions of the column's type."""
    start = cursor.at
    cursor.until(*ends)
    sensitive = str(context.spark.conf.get("spark.sql.caseSensitive")) == "true"
    given: dict[tuple[str, ...], str] = {}
    for item in Cursor(cursor.statement, start, cursor.at).items():
        path = _path(target.columns(), item.names("a column"), alias, parts, sensitive)
        item.expect("=")
        if any(path[: len(other)] == other[: len(path)] for other in given):
            raise InvalidArgument(f"column '{'.'.join(path)}' is set twice", column=".".join(path))
        given[path] = shortened(item.rest(), alias, parts)
    if not given:
        raise cursor.unexpected("column = value")
    return {
        each.name: _value(each.dataType, quoted(alias, each.name), (each.name,), given)
        for each in target.columns().fields
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


def _typed_nulls(target: Target) -> list[str]:
    return [f"NULL AS {quoted(name)}" for name in target.columns().names]


def _limit_to_touched(target: Target, queries: Queries, condition: Condition) -> None:
    """Read only the data files from here on in which a row changes."""
    touched = queries.frame(
        f"SELECT DISTINCT {FILE} FROM {TARGET} AS {quoted(condition.alias)} WHERE {condition.string}"
    )
    target.only = frozenset(row[0] for row in touched.collect())
