"""Queries for sessions that Spark cannot give the catalog: names in the text become data frames.

The rest of the text goes to Spark unchanged. A table is read whole, unless the query is a single SELECT from it: then
conditions of its WHERE that compare a column with a literal leave out files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from operator import is_not
from typing import Final, cast

from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.expressions import BooleanExpression
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from icefield_spark.assigning import fold_of
from icefield_spark.catalog.predicates import Filters
from icefield_spark.comparisons import Side, compared, conjuncts, is_certain
from icefield_spark.planned import planned_frame
from icefield_spark.quoting import quoted
from icefield_spark.running import run_sql
from icefield_spark.sql.calls import FUNCTIONS, SYSTEM
from icefield_spark.sql.frames import frame_about
from icefield_spark.sql.parsing import Cursor, Statement, chains
from icefield_spark.sql.sources import Names, Source
from icefield_spark.types import to_spark_schema

ATTACH: Final = "attach the catalog where Spark can load it: in the process of the Connect server"
"""The end of an error for statements that take Spark's own analyzer."""

_ROWS: Final = "rows_of_{}"
_SIGNS: Final = {
    "spark.sql.parser.escapedStringLiterals": "\\",
    "spark.sql.ansi.doubleQuotedIdentifiers": '"',
}
"""Settings that change where strings and names end, each with the sign that it is about."""
_CONTINUED: Final = re.compile(r"--[^\n]*\\\r?\n")
"""A comment that Spark reads on in the next line."""

_PLACES: Final = frozenset({"current_catalog", "current_database", "current_schema"})
_CLAUSES: Final = frozenset({"distinct", "expressions", "from_", "group", "having", "limit", "order", "where"})
"""Clauses of a SELECT beside which WHERE says which rows of the table are read."""
_OF_A_TABLE: Final = frozenset({"this", "db", "catalog", "alias", "version"})
_BESIDE_A_TABLE: Final = frozenset({"joins", "laterals", "pivots", "sample"})
_AS_OF: Final = {"VERSION": False, "SYSTEM_VERSION": False, "TIMESTAMP": True, "SYSTEM_TIME": True}
"""The words before AS OF, and whether a time follows."""


@dataclass(frozen=True)
class _TableReference:
    """A table of the catalog in a text, and where its name with its version begins and ends."""

    start: int
    end: int
    source: Source
    node: exp.Table


def check_certain(spark: SparkSession, names: Names, statement: Statement) -> None:
    """Raise ``UnsupportedFeature`` for a statement that Spark may read otherwise than by its names."""
    text = statement.string
    for setting, sign in _SIGNS.items():
        if sign in text and str(spark.conf.get(setting, "false")).lower() == "true":
            raise UnsupportedFeature(f"a statement with {sign} is not read by names while {setting} is true: {ATTACH}")
    if _CONTINUED.search(text):
        raise UnsupportedFeature("a comment that ends with a backslash is not read by names: leave it out")
    for at, parts in chains(statement):
        end = at + 2 * len(parts) - 1
        if not statement.is_word(end, "("):
            continue
        last = parts[-1].lower()
        if last == "identifier" and statement.is_word(end - 1, "IDENTIFIER"):
            raise UnsupportedFeature("IDENTIFIER(…) is not read by names: write the name itself")
        if last in FUNCTIONS and len(parts) > 1 and (parts[-2].lower() == SYSTEM or names.is_catalog(parts[0])):
            raise UnsupportedFeature(f"Spark does not know the function {'.'.join(parts)} of the catalog: {ATTACH}")
        if names.namespace and last in _PLACES:
            raise UnsupportedFeature(f"{last}() is not the namespace that USE named for ice.sql: {ATTACH}")


class ByNames:
    """Runs the queries of one statement."""

    def __init__(self, spark: SparkSession, names: Names) -> None:
        self._spark = spark
        self._names = names

    def frame(self, string: str, prefix: str = "") -> DataFrame:
        """The rows of a query. ``prefix`` comes before it for Spark: ``EXPLAIN``.

        Raises ``InvalidArgument`` for a query of the catalog's tables that cannot be understood, and
        ``UnsupportedFeature`` for statements that are not queries.
        """
        statement = Statement(string)
        text = statement.string
        try:
            tree = parse_one(text, read="spark")
        except SqlglotError as error:
            if not any(self._is_ours(parts) for _, parts in chains(statement)):
                return run_sql(self._spark, prefix + text)
            message = str(error).splitlines()[0].rstrip(".")
            raise InvalidArgument(f"the statement cannot be understood: {message}") from error
        if not isinstance(tree, exp.Query | exp.Values):
            raise UnsupportedFeature(f"ice.sql reads queries by names, and not this statement: {text:.100}: {ATTACH}")
        for hint in list(tree.find_all(exp.Hint)):  # its names are no relations
            hint.pop()
        found = [each for table in tree.find_all(exp.Table) if (each := self._place(statement, table)) is not None]
        places = sorted(found, key=lambda place: place.start)
        if not places:
            return run_sql(self._spark, prefix + text)
        self._check_names(statement, places)
        frames: dict[str, DataFrame] = {}
        pieces, at = [prefix], 0
        for place in places:
            name = _ROWS.format(len(frames))
            frames[name] = self._rows(statement, tree, place)
            alias = "" if place.node.alias else f" AS {quoted(place.source.name[-1])}"
            pieces += [_plain(text[at : place.start]), f"{{{name}}}", _plain(alias)]
            at = place.end + 1
        return run_sql(self._spark, "".join([*pieces, _plain(text[at:])]), frames)

    def _is_ours(self, parts: tuple[str, ...]) -> bool:
        return self._names.find(parts) is not None or self._names.view(parts) is not None

    def _place(self, statement: Statement, table: exp.Table) -> _TableReference | None:
        """The place of a catalog's table in a statement; None for other relations."""
        if not all(isinstance(part, exp.Identifier) for part in table.parts) or self._is_common(table):
            return None
        parts = tuple(part.name for part in table.parts)
        shown = ".".join(parts)
        source = self._names.find(parts)
        if source is None:
            if self._names.view(parts) is not None:
                raise UnsupportedFeature(f"{shown} is a view, whose query takes Spark's analyzer: {ATTACH}", view=shown)
            self._names.check_about(parts)
            return None
        start = table.parts[0].meta.get("start")
        at = next((at for at, token in enumerate(statement.tokens) if token.start == start), None)
        cursor = Cursor(statement, len(statement.tokens) if at is None else at)
        if at is None or cursor.names() != parts:
            raise InvalidArgument(f"the place of {shown} in the statement was not found")
        source = self._versioned(cursor, source, stated=bool(table.args.get("version")))
        more = {name for name, value in table.args.items() if value} - _OF_A_TABLE - _BESIDE_A_TABLE
        if more or (table.args.get("sample") and not table.alias):
            raise UnsupportedFeature(
                f"{shown} is read by its name alone: give a sample an alias, and leave out other clauses"
            )
        return _TableReference(statement.tokens[at].start, statement.tokens[cursor.at - 1].end, source, table)

    def _versioned(self, cursor: Cursor, source: Source, *, stated: bool) -> Source:
        """Take ``VERSION AS OF`` or ``TIMESTAMP AS OF`` with a literal: the table at that version."""
        ahead = Cursor(cursor.statement, cursor.at)
        ahead.takes("FOR")
        kind = next((word for word in _AS_OF if ahead.takes(word, "AS", "OF")), None)
        if kind is None and not stated:
            return source
        tokens = cursor.statement.tokens
        token = None if ahead.is_over else tokens[ahead.at]
        is_string = token is not None and token.token_type is TokenType.STRING
        is_number = token is not None and token.token_type is TokenType.NUMBER and token.text.isdecimal()
        followed = ahead.at + 1 < ahead.end and tokens[ahead.at + 1].text in ("+", "-", "*", "/", "||", "::")
        if kind is None or token is None or not (is_string or is_number) or followed:
            raise UnsupportedFeature(
                "VERSION AS OF and TIMESTAMP AS OF take a literal where tables are found by names: ice.table has "
                "snapshot_id, ref and as_of"
            )
        cursor.at = ahead.at + 1
        if not _AS_OF[kind]:
            return source.at(token.text if is_string else int(token.text), None)
        if is_number:
            return source.at(None, int(token.text) * 1000)
        written = cursor.statement.string[token.start : token.end + 1]
        time_ms = run_sql(self._spark, f"SELECT unix_millis(CAST({written} AS TIMESTAMP))").collect()[0][0]
        if time_ms is None:
            raise InvalidArgument(f"there is no time {written}")
        return source.at(None, time_ms)

    def _check_names(self, statement: Statement, places: Sequence[_TableReference]) -> None:
        """Refuse full names of tables in other places.

        There Spark knows only the last part, or takes it for a field.
        """
        starts = {place.start for place in places}
        if len(starts) < len(places):
            raise UnsupportedFeature("a table is read in two ways at one place of the statement: write it without '|>'")
        fold = fold_of(self._spark)
        whole = set()
        for place in places:
            local = self._names.local(place.source.name)
            for name in (place.source.name, local, (self._names.catalog_name, *local)):
                whole.add(tuple(map(fold, name)))
        for at, parts in chains(statement):
            beginnings = (tuple(map(fold, parts[:length])) for length in range(2, len(parts) + 1))
            if statement.tokens[at].start not in starts and any(each in whole for each in beginnings):
                shown = ".".join(parts)
                raise UnsupportedFeature(f"give the table of {shown} an alias, and name its columns by that")

    def _rows(self, statement: Statement, tree: exp.Expr, place: _TableReference) -> DataFrame:
        source = place.source
        if source.about is not None:
            return frame_about(self._spark, source)
        where = self._filter(statement, tree, place) if is_certain(statement.string) else None
        return planned_frame(self._spark, source.scan(where), road=None)

    def _filter(self, statement: Statement, tree: exp.Expr, place: _TableReference) -> BooleanExpression | None:
        """The filter in the WHERE of a single SELECT from a table; None if there is none."""
        table, where, alias = place.node, tree.args.get("where"), place.node.args.get("alias")
        is_single = isinstance(tree, exp.Select) and statement.is_word(0, "SELECT") and tree.args["from_"].this is table
        if not is_single or where is None or len(list(tree.find_all(exp.Query))) > 1:
            return None
        if _given(tree) - _CLAUSES or _given(table) - _OF_A_TABLE or (alias is not None and alias.columns):
            return None
        schema = place.source.schema()
        side = Side(table.alias or place.source.name[-1], to_spark_schema(schema))
        predicates = (compared(each, side) for each in conjuncts(where.this))
        return Filters(schema).keeping([each for each in predicates if each is not None])

    def _is_common(self, table: exp.Table) -> bool:
        """Whether a name means a common table expression of a surrounding WITH, which must come earlier in its list.

        An expression is visible in its own query only with ``WITH RECURSIVE``.
        """
        fold = fold_of(self._spark)
        name, below = fold(table.name), cast(exp.Expr, table)
        while len(table.parts) == 1 and below.parent is not None:
            node = below.parent
            if isinstance(node, exp.With):
                visible = [*takewhile(partial(is_not, below), node.expressions), *([below] if node.recursive else [])]
                assert node.parent is not None
                node = node.parent  # the query of the WITH
            else:
                clause = node.args.get("with_")
                visible = [] if clause is None else clause.expressions
            if any(fold(each.alias) == name for each in visible):
                return True
            below = node
        return False


def _given(node: exp.Expr) -> set[str]:
    return {name for name, value in node.args.items() if value}


def _plain(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
