"""``DELETE``, ``UPDATE`` and ``MERGE``: their pieces, given to the changes of frames.

Spark resolves the names of columns in conditions and values, with or without the alias of their table.
"""

from __future__ import annotations

from collections.abc import Mapping

from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.metadata import MAIN_BRANCH
from pyspark.sql import DataFrame

from icefield_spark.assigning import Path, fold_of
from icefield_spark.changing import delete_rows, update_rows
from icefield_spark.merge_rows import LEFT, MATCHED, NEW, MergeFrame, WhenClause
from icefield_spark.missing import no_table
from icefield_spark.row_level import Target
from icefield_spark.row_writer import DELETE, INSERT, UPDATE
from icefield_spark.running import REFERENCE, substitutes
from icefield_spark.sql.context import StatementContext
from icefield_spark.sql.parsing import Cursor, Statement, chains
from icefield_spark.wap import staged_strings

_UNNAMED = "icefield_unnamed"
"""The alias of a source without an alias."""

_WHEN = ("WHEN",)
_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")
_INSTEAD = "make the rows a frame, and give it to ice.merge, ice.update or ice.delete"


def delete(context: StatementContext, cursor: Cursor) -> DataFrame:
    """``DELETE FROM``; the cursor stands after DELETE."""
    cursor.expect("FROM")
    subject = _subject(context, cursor, "delete", "WHERE")
    if subject is None:
        return context.passed(cursor)
    target, alias = subject
    if cursor.is_over:
        target.table.delete(snapshot_properties=target.strings, branch=target.branch)
        return context.nothing()
    cursor.expect("WHERE")
    delete_rows(context.spark, target, _checked(context, cursor.rest()), alias)
    return context.nothing()


def update(context: StatementContext, cursor: Cursor) -> DataFrame:
    """``UPDATE``; the cursor stands after it."""
    subject = _subject(context, cursor, "update", "SET")
    if subject is None:
        return context.passed(cursor)
    target, alias = subject
    cursor.expect("SET")
    given = _assignments(context, cursor, ("WHERE",))
    where = _checked(context, cursor.rest()) if cursor.takes("WHERE") else None
    cursor.expect_end()
    update_rows(context.spark, target, given, where, alias)
    return context.nothing()


def merge(context: StatementContext, cursor: Cursor) -> DataFrame:
    """``MERGE``; the cursor stands after it."""
    evolves = cursor.takes("WITH", "SCHEMA", "EVOLUTION")
    cursor.expect("INTO")
    parts = cursor.names("the name of a table")
    target = _target(context, parts, "merge")
    if target is None:
        return context.passed(cursor)
    alias = _alias(cursor, parts, "USING")
    _refuse_columns(cursor)
    cursor.expect("USING")
    source, other = _source(context, cursor)
    fold = fold_of(context.spark)
    if fold(alias) == fold(other):
        raise InvalidArgument(f"the table and the source of the merge are both called '{alias}': give one an alias")
    _refuse_columns(cursor)
    cursor.expect("ON")
    on = _checked(context, cursor.until(_WHEN))
    clauses = []
    while not cursor.is_over:
        clauses.append(_clause(context, cursor))
    if not clauses:
        raise cursor.unexpected("WHEN MATCHED or WHEN NOT MATCHED")
    MergeFrame(source, on, clauses, (alias, other), evolves).run(target)
    return context.nothing()


def _subject(context: StatementContext, cursor: Cursor, kind: str, end: str) -> tuple[Target, str] | None:
    """Take the table that a DELETE or UPDATE changes, with its alias; None for a table of Spark's."""
    parts = cursor.names("the name of a table")
    target = _target(context, parts, kind)
    if target is None:
        return None
    return target, _alias(cursor, parts, end)


def _target(context: StatementContext, parts: tuple[str, ...], kind: str) -> Target | None:
    """The table that a statement changes; None for a table of Spark."""
    source = context.names.written(parts)
    if source is None:
        if context.names.is_known(parts) and context.names.view(parts) is None:
            raise no_table(context.catalog, context.names.local(parts))
        return None
    if source.about is not None or source.snapshot_id is not None:
        raise InvalidArgument(f"'{'.'.join(parts)}' cannot be changed")
    strings = {} if source.ref else staged_strings(context.spark, source.table)
    return Target(source.table, source.ref or MAIN_BRANCH, kind, strings=strings)


def _alias(cursor: Cursor, parts: tuple[str, ...], end: str) -> str:
    """Take the alias after a table's name; without one, the last part of the name is the alias."""
    if not cursor.takes("AS") and (cursor.is_over or cursor.sees(end)):
        return parts[-1]
    return cursor.name("an alias")


def _source(context: StatementContext, cursor: Cursor) -> tuple[DataFrame, str]:
    """Take the source of a merge and its alias."""
    start = cursor.at
    if cursor.sees("("):
        cursor.enclosed()
        query = cursor.statement.between(start, cursor.at)
        named = cursor.takes("AS") or not cursor.sees("ON")
        alias = cursor.name("an alias of the source") if named else _UNNAMED
    else:
        parts = cursor.names("the source of the merge")
        if cursor.sees("("):
            cursor.enclosed()  # a function that gives a table
        query = cursor.statement.between(start, cursor.at)
        alias = _alias(cursor, parts, "ON")
    return context.queries.frame(f"SELECT * FROM {query}"), alias


def _clause(context: StatementContext, cursor: Cursor) -> WhenClause:
    """Take one WHEN with its THEN."""
    cursor.expect("WHEN")
    of = _kind(cursor)
    condition = _checked(context, cursor.until(("THEN",))) if cursor.takes("AND") else None
    cursor.expect("THEN")
    if of == NEW:
        cursor.expect("INSERT")
        return WhenClause(of, condition, INSERT, None if cursor.takes("*") else _inserted(context, cursor))
    if cursor.takes("DELETE"):
        return WhenClause(of, condition, DELETE, {})
    cursor.expect("UPDATE", "SET")
    if not cursor.takes("*"):
        return WhenClause(of, condition, UPDATE, _assignments(context, cursor, _WHEN))
    if of == LEFT:
        raise InvalidArgument("WHEN NOT MATCHED BY SOURCE has no row of the source for UPDATE SET *")
    return WhenClause(of, condition, UPDATE, None)


def _kind(cursor: Cursor) -> str:
    """Take ``MATCHED``, ``NOT MATCHED`` or ``NOT MATCHED BY SOURCE``: the kind of rows of a clause."""
    new = cursor.takes("NOT")
    cursor.expect("MATCHED")
    if new and cursor.takes("BY", "SOURCE"):
        return LEFT
    if new:
        cursor.takes("BY", "TARGET")
    return NEW if new else MATCHED


def _assignments(context: StatementContext, cursor: Cursor, end: tuple[str, ...]) -> dict[Path, str]:
    """Take ``a = 1, s.b = 2``."""
    start = cursor.at
    cursor.until(end)
    found: dict[Path, str] = {}
    for item in Cursor(cursor.statement, start, cursor.at).items():
        path = item.names("a column")
        item.expect("=")
        _put(found, path, _checked(context, item.rest()))
    if not found:
        raise cursor.unexpected("column = value")
    return found


def _inserted(context: StatementContext, cursor: Cursor) -> Mapping[Path, str]:
    """Take ``(a, b) VALUES (1, 2)``."""
    names = []
    for item in cursor.enclosed().items():
        names.append(item.names("a column"))
        item.expect_end()
    cursor.expect("VALUES")
    values = [_checked(context, item.rest()) for item in cursor.enclosed().items()]
    if len(values) != len(names):
        raise InvalidArgument(f"INSERT names {len(names)} columns and gives {len(values)} values")
    found: dict[Path, str] = {}
    for path, value in zip(names, values, strict=True):
        _put(found, path, value)
    return found


def _put(found: dict[Path, str], path: Path, value: str) -> None:
    if path in found:
        raise InvalidArgument(f"column '{'.'.join(path)}' is set twice", column=".".join(path))
    found[path] = value


def _checked(context: StatementContext, text: str) -> str:
    """A condition or value that Spark understands as the statement means it. Raises ``UnsupportedFeature``."""
    if REFERENCE in text and substitutes(context.spark):
        raise UnsupportedFeature(
            f"Spark would put something else in place of '{REFERENCE}...}}' in {text:.100}: {_INSTEAD}, or set "
            "spark.sql.variable.substitute to false"
        )
    statement = Statement(text)
    places = range(len(statement.tokens))
    if any(statement.is_word(at, "(", word) for at in places for word in _QUERIES):
        for _, parts in chains(statement):
            names = context.names
            is_sparks = names.attached is not None and parts[0] == names.attached
            if not is_sparks and (names.find(parts) is not None or names.view(parts) is not None):
                raise UnsupportedFeature(
                    f"a subquery of DELETE, UPDATE or MERGE cannot read {'.'.join(parts)} of the catalog: {_INSTEAD}"
                )
    return text


def _refuse_columns(cursor: Cursor) -> None:
    """Raise ``InvalidArgument`` for names of columns after an alias."""
    if cursor.sees("("):
        raise InvalidArgument(
            "Spark takes no names of columns after an alias in MERGE: write USING (SELECT * FROM VALUES (1, 'a') AS "
            "v(id, name)) AS s"
        )
