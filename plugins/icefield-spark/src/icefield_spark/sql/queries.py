"""Queries: each table of Icefield in them becomes a data frame that was planned for what the query asks of it.

All else of the string goes to Spark as it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from icefield import Schema, View
from icefield.errors import InvalidArgument, NoSuchTable, UnsupportedFeature
from icefield.expressions import conjunction
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from icefield_spark.quoting import constant, quoted, spelt
from icefield_spark.running import run_sql
from icefield_spark.sql.argument_types import ArgumentTypes
from icefield_spark.sql.calls import calls_in
from icefield_spark.sql.frames import empty_frame, frame_about, frame_of
from icefield_spark.sql.functions import expression_of
from icefield_spark.sql.identifiers import with_names
from icefield_spark.sql.naming import is_common, qualifiers
from icefield_spark.sql.parsing import Cursor, Statement
from icefield_spark.sql.roles import check_role
from icefield_spark.sql.scopes import Scope, expansions, needed_columns
from icefield_spark.sql.session_text import read_as
from icefield_spark.sql.sources import METADATA_COLUMNS, NamedView, Names, Source
from icefield_spark.sql.temporal import AsOf, as_of_clauses, without
from icefield_spark.sql.transform_filters import keeps
from icefield_spark.sql.view_plans import check_text, view_frame
from icefield_spark.sql.view_rows import DIALECT, as_stated, check_query

_ROWS = "rows_of_{}"


@dataclass
class _Edits:
    """Pieces of a string that are to be exchanged."""

    made: dict[tuple[int, int], str] = field(default_factory=dict)

    def put(self, start: int, end: int, string: str) -> None:
        """Exchange what is from a place up to another, that one included."""
        self.made[start, end] = string

    def apply(self, string: str, first: int = 0, last: int | None = None) -> str:
        """The string, or what is of it from one place up to another, with the pieces exchanged.

        The braces of what stays are doubled, as ``str.format`` wants them.
        """
        pieces, at, over = [], first, len(string) if last is None else last + 1
        for (start, end), new in sorted(self.made.items()):
            if first <= start and end < over:
                pieces += [_plain(string[at:start]), new]
                at = end + 1
        return "".join([*pieces, _plain(string[at:over])])

    def put_around(self, start: int, end: int, string: str) -> None:
        """Exchange what is from a place up to another, with the exchanges in it."""
        self.made = {place: new for place, new in self.made.items() if place[1] < start or end < place[0]}
        self.put(start, end, string)


@dataclass(frozen=True)
class Query:
    """A query for Spark, and the frames that it names."""

    string: str
    frames: Mapping[str, DataFrame]

    def run(self, spark: SparkSession, prefix: str = "") -> DataFrame:
        """The frame of its rows."""
        string = self.string if self.frames else self.string.format()
        return run_sql(spark, prefix + string, self.frames)


class Queries:
    """Binds the queries of one statement."""

    def __init__(self, spark: SparkSession, names: Names) -> None:
        self.spark = spark
        self._names = names
        self._case_sensitive = setting(spark, "spark.sql.caseSensitive") == "true"
        self._zone = setting(spark, "spark.sql.session.timeZone")
        self._has_patterns = setting(spark, "spark.sql.parser.quotedRegexColumnNames") == "true"

    def frame(self, string: str, prefix: str = "") -> DataFrame:
        """The rows of a query. ``prefix`` comes before it for Spark: ``EXPLAIN``."""
        return self.bind(string).run(self.spark, prefix)

    def bind(self, string: str) -> Query:
        """A query with its tables found. Raises ``InvalidArgument`` for one that cannot be understood."""
        statement = Statement(string)
        if statement.is_word(0, "TABLE"):
            statement = Statement(f"SELECT * FROM {statement.between(1, len(statement.tokens))}")
        clauses = as_of_clauses(statement)
        plain = without(statement.string, clauses)
        try:
            tree = _tree_of(plain)
        except SqlglotError as error:
            if not self._names_any(statement):
                return Query(_plain(statement.string), {})
            message = str(error).splitlines()[0].rstrip(".")
            raise InvalidArgument(f"the statement cannot be understood: {message}") from error
        if isinstance(tree, exp.Command):
            if not self._names_any(statement):
                return Query(_plain(statement.string), {})
            raise InvalidArgument(f"this statement is not supported on tables of Icefield: {string:.200}")
        return self._bound(statement, tree, clauses)

    def rows_of_view(
        self, name: tuple[str, ...], string: str, namespace: tuple[str, ...], catalog: str | None = None
    ) -> DataFrame:
        """The rows of a view's query, whose names are looked up where the view says.

        Raises ``InvalidArgument``, ``UnsupportedFeature``, and ``NoSuchTable`` for a name that is not there.
        """
        return Queries(self.spark, self._names.within(name, namespace, catalog))._inner(string)

    def _inner(self, string: str) -> DataFrame:
        name = ".".join(self._names.inside[-1])
        check_text(string, name)
        statement = Statement(with_names(read_as(self.spark, string)))
        clauses = as_of_clauses(statement)
        try:
            tree = _tree_of(without(statement.string, clauses))
        except SqlglotError as error:
            message = str(error).splitlines()[0].rstrip(".")
            raise InvalidArgument(f"the query of view {name} cannot be understood: {message}") from error
        check_query(tree, name)
        query = self._bound(statement, tree, clauses)
        return view_frame(self.spark, query.string, query.frames, name)

    def count(self, string: str) -> DataFrame | None:
        """The frame of a query that counts the rows of a whole table, where metadata tells; else None."""
        statement = Statement(string)
        if "COUNT" not in statement.string.upper():
            return None
        clauses = as_of_clauses(statement)
        try:
            tree = _tree_of(without(statement.string, clauses))
        except SqlglotError:
            return None
        table = _counted(tree)
        source = None if table is None else self._source(table, clauses)
        if table is None or source is None or source.about is not None:
            return None
        files = source.scan().plan_arrow()
        if any(files.column("delete_files").combine_chunks().value_lengths().to_pylist()):
            return None
        rows = sum(files.column("record_count").to_pylist())
        name = tree.expressions[0].alias or "count(1)"
        return run_sql(self.spark, f"SELECT * FROM VALUES ({rows}L) AS counted({quoted(name)})")

    def _bound(self, statement: Statement, tree: exp.Expr, clauses: Mapping[int, AsOf]) -> Query:
        found: list[tuple[exp.Table, Source | NamedView]] = []
        edits = _Edits()
        frames: dict[str, DataFrame] = {}
        for table in tree.find_all(exp.Table):
            if is_common(table, self._folded):
                continue
            source = self._source(table, clauses) or self._view(table, clauses)
            if source is not None:
                check_role(tree, table, is_view=isinstance(source, NamedView))
                found.append((table, source))
                continue
            if all(isinstance(part, exp.Identifier) for part in table.parts):
                self._names.check_about(tuple(part.name for part in table.parts))
            if self._names.inside:
                self._qualify(edits, table)
        if found and self._has_patterns:
            raise UnsupportedFeature(
                "spark.sql.parser.quotedRegexColumnNames is true, which makes patterns of names: set it to false for "
                "statements on tables of Icefield"
            )
        used = {_last(table) for table, _ in found}
        if len(used) < len(found):
            raise InvalidArgument("two tables of the statement have one place in it; write it without '|>'")
        for name_end in clauses.keys() & used:
            clauses = {end: clause for end, clause in clauses.items() if end != name_end}
        string = statement.string
        self._state_place(edits, statement, tree)
        self._shorten(edits, tree, found)
        for table, source in found:
            name = _ROWS.format(len(frames))
            if isinstance(source, Source):
                frames[name], columns = self._frame(tree, table, source)
                if columns is not None and set(columns) & set(METADATA_COLUMNS):
                    for start, end, listed in expansions(table, source, source.schema(), self._folded) or ():
                        first = min([start, *(at for at, last in edits.made if at <= start <= last)])
                        edits.put_around(first, end, _plain(listed))
            else:
                frames[name] = self._rows(source.view)
            self._replace(edits, statement, table, source.name, name)
        self._call(edits, statement, tree, clauses)
        return Query(edits.apply(string), frames)

    def _source(self, table: exp.Table, clauses: Mapping[int, AsOf]) -> Source | None:
        """What a table of the tree is, with its version; None when it is not Icefield's."""
        if not all(isinstance(part, exp.Identifier) for part in table.parts):
            return None
        source = self._names.find(tuple(part.name for part in table.parts))
        if source is None:
            return None
        clause = clauses.get(_last(table))
        if clause is None:
            return source
        if not clause.is_time:
            if clause.literal is None:
                raise InvalidArgument(f"a version is a snapshot id, a branch or a tag, not {clause.value}")
            return source.at(clause.literal, None)
        if isinstance(clause.literal, int):
            return source.at(None, clause.literal * 1000)
        value = f"SELECT unix_millis(CAST(({clause.value}) AS TIMESTAMP))"
        time_ms = run_sql(self.spark, value).collect()[0][0]
        if time_ms is None:
            raise InvalidArgument(f"there is no time {clause.value}")
        return source.at(None, time_ms)

    def _view(self, table: exp.Table, clauses: Mapping[int, AsOf]) -> NamedView | None:
        """The view that a table of the tree is; None when it is none of Icefield's."""
        if not all(isinstance(part, exp.Identifier) for part in table.parts):
            return None
        parts = tuple(part.name for part in table.parts)
        view = self._names.view(parts)
        if view is not None and _last(table) in clauses:
            raise InvalidArgument(f"{'.'.join(parts)} is a view: it is read as it is now, at no version of its own")
        return None if view is None else NamedView(parts, view)

    def _rows(self, view: View) -> DataFrame:
        catalog = view.metadata.current_version().default_catalog or None
        return as_stated(self.rows_of_view(view.name, view.sql_for(DIALECT), view.default_namespace, catalog), view)

    def _qualify(self, edits: _Edits, table: exp.Table) -> None:
        """Write out the name of a table of another catalog, in the query of a view that is at home there."""
        if not table.parts or not all(isinstance(part, exp.Identifier) for part in table.parts):
            return
        names = self._names
        parts = tuple(part.name for part in table.parts)
        if names.is_ours(parts):
            view = ".".join(names.inside[-1])
            raise NoSuchTable(
                f"view {view} is made from {'.'.join(parts)}, which the catalog does not have", table=parts
            )
        if names.elsewhere is not None and len(parts) < 3:
            before = (names.elsewhere, *(names.namespace if len(parts) == 1 else ()))
            edits.put(table.parts[0].meta["start"], _last(table), _plain(quoted(*before, *parts)))

    def _frame(self, tree: exp.Expr, table: exp.Table, source: Source) -> tuple[DataFrame, Sequence[str] | None]:
        """The frame of a table for a query, and the columns that it was asked for."""
        if source.about is not None:
            return frame_about(self.spark, source), None
        schema = source.schema()
        scope = self._scope(table, source, schema)
        filters, buckets = scope.filters(), scope.buckets()
        columns = needed_columns(tree, table, source, schema, self._folded)
        only = keeps(schema, source.table.specs(), buckets) if buckets else None
        return frame_of(self.spark, source, conjunction(filters) if filters else None, columns, only), columns

    def _scope(self, table: exp.Table, source: Source, schema: Schema) -> Scope:
        return Scope(table, source, schema, self._folded, self._zone, self._names.catalog_name)

    def _replace(
        self, edits: _Edits, statement: Statement, table: exp.Table, parts: tuple[str, ...], name: str
    ) -> None:
        """Put the frame in the place of the table's name, under the name by which the query knows it."""
        start, end = table.parts[0].meta.get("start"), _last(table)
        if start is None:
            raise InvalidArgument(f"the place of '{'.'.join(parts)}' in the statement was not found")
        clause_end = max([end, *(clause.end for key, clause in as_of_clauses(statement).items() if key == end)])
        alias = "" if table.alias else f" AS {quoted(parts[-1]).replace('{', '{{').replace('}', '}}')}"
        sample_end = _sample_end(statement, clause_end) if alias else None
        if sample_end is None:
            edits.put(start, clause_end, f"{{{name}}}{alias}")
            return
        sample = _plain(statement.string[clause_end + 1 : sample_end + 1])
        edits.put(start, sample_end, f"{{{name}}}{sample}{alias}")

    def _state_place(self, edits: _Edits, statement: Statement, tree: exp.Expr) -> None:
        """Put the catalog and the current namespace, which Spark does not know, in place of the functions for them."""
        names = self._names
        if not names.namespace or names.inside:
            return
        for node in list(tree.find_all(exp.CurrentCatalog, exp.CurrentDatabase, exp.CurrentSchema)):
            start = node.meta.get("start")
            if start is None:
                raise InvalidArgument(f"the place of {node.sql('spark')} in the statement was not found")
            end, _ = _arguments_of(statement, start)
            value = names.catalog_name if isinstance(node, exp.CurrentCatalog) else spelt(*names.namespace)
            made = constant(value)
            if isinstance(node.parent, exp.Select) and node.arg_key == "expressions":
                made = f"{made} AS {quoted(statement.string[start : end + 1])}"
            edits.put(start, end, _plain(made))
            node.replace(exp.Literal.string(value))

    def _shorten(self, edits: _Edits, tree: exp.Expr, found: list[tuple[exp.Table, Source | NamedView]]) -> None:
        """Leave out the namespace before the names of tables in ``db.t.column``: Spark knows the last part only."""
        whole = {id(table): (self._names.catalog_name, *self._names.local(source.name)) for table, source in found}
        for parts in qualifiers(tree, whole, self._folded):
            start, end = parts[0].meta.get("start"), parts[-1].meta.get("end")
            if start is None or end is None:
                raise InvalidArgument(
                    f"the place of '{'.'.join(p.name for p in parts)}' in the statement was not found"
                )
            edits.put(start, end, _plain(quoted(parts[-1].name)))

    def _call(self, edits: _Edits, statement: Statement, tree: exp.Expr, clauses: Mapping[int, AsOf]) -> None:
        """Put expressions of Spark's in the place of calls of Iceberg's functions, the innermost first."""
        calls = calls_in(tree, self._names.catalog_name)
        if not calls:
            return
        types = ArgumentTypes(
            self.spark, tree, self._names.catalog_name, lambda table: self._empty(tree, table, clauses)
        )
        for call in calls:
            end, places = _arguments_of(statement, call.start)
            given = [edits.apply(statement.string, *place) for place in places]
            made = expression_of(self.spark, call.name, given, partial(types.of, call.start))
            if isinstance(call.node.parent, exp.Select) and call.node.arg_key == "expressions":
                made = f"{made} AS {_plain(quoted(statement.string[call.start : end + 1]))}"
            edits.put_around(call.start, end, made)

    def _empty(self, tree: exp.Expr, table: exp.Table, clauses: Mapping[int, AsOf]) -> tuple[str, DataFrame] | None:
        """A frame without rows of the columns of a table, and what the query calls it; None for what is Spark's."""
        if is_common(table, self._folded):
            return None
        source = self._source(table, clauses)
        if source is not None:
            return source.name[-1], empty_frame(
                self.spark, source, needed_columns(tree, table, source, source.schema(), self._folded)
            )
        view = self._view(table, clauses)
        return None if view is None else (view.name[-1], self._rows(view.view))

    def _names_any(self, statement: Statement) -> bool:
        """Whether any chain of names in a statement is a table of Icefield."""
        tokens, at = statement.tokens, 0
        while at < len(tokens):
            parts = [tokens[at].text]
            while at + 2 < len(tokens) and tokens[at + 1].text == ".":
                at += 2
                parts.append(tokens[at].text)
            if len(parts) > 1 and (self._names.find(tuple(parts)) or self._names.view(tuple(parts))) is not None:
                return True
            at += 1
        return False

    @property
    def _folded(self) -> Callable[[str], str]:
        return str if self._case_sensitive else str.lower


def setting(spark: SparkSession, name: str) -> str:
    """A setting of the session."""
    return str(spark.conf.get(name))


def _last(table: exp.Table) -> int:
    return int(table.parts[-1].meta.get("end", -1))


def _plain(string: str) -> str:
    return string.replace("{", "{{").replace("}", "}}")


def _arguments_of(statement: Statement, start: int) -> tuple[int, list[tuple[int, int]]]:
    """Where the call that begins at a place of a statement ends, and where its arguments begin and end."""
    cursor = Cursor(statement, next(at for at, token in enumerate(statement.tokens) if token.start == start))
    cursor.names()
    inside = cursor.enclosed()
    spans = [(statement.tokens[item.at].start, statement.tokens[item.end - 1].end) for item in inside.items()]
    return statement.tokens[cursor.at - 1].end, spans


def _sample_end(statement: Statement, after: int) -> int | None:
    """Where the TABLESAMPLE that follows a place ends."""
    tokens = statement.tokens
    at = next((place for place, token in enumerate(tokens) if token.start > after), len(tokens))
    if not statement.is_word(at, "TABLESAMPLE"):
        return None
    for place in range(at, len(tokens)):
        if tokens[place].text == ")":
            return int(tokens[place].end)
    return None


def _tree_of(string: str) -> exp.Expr:
    """The tree of a query without its hints, in which names of tables and aliases are no relations."""
    tree = parse_one(string, read="spark")
    for hint in list(tree.find_all(exp.Hint)):
        hint.pop()
    return tree


def _counted(tree: exp.Expr) -> exp.Table | None:
    """The table whose rows a query counts, and does nothing else."""
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1:
        return None
    if any(value for name, value in tree.args.items() if name not in ("expressions", "from_", "kind") and value):
        return None
    counted = tree.expressions[0].unalias()
    if not isinstance(counted, exp.Count) or not isinstance(counted.this, exp.Star | exp.Literal):
        return None
    source = tree.args.get("from_")
    table = source.this if source is not None else None
    if not isinstance(table, exp.Table):
        return None
    return None if any(table.args.get(name) for name in ("joins", "pivots", "sample", "laterals")) else table
