"""Which kind of statement a string is, and who carries it out."""

# See docs/decisions/0088.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from icefield import Catalog
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.writing import WriteContext
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from icefield_spark.missing import missing_in
from icefield_spark.quoting import quoted
from icefield_spark.running import run_sql, substituted
from icefield_spark.sql import alter, changes, ddl, inserts, procedures, show
from icefield_spark.sql.analyzed import Analyzed, NotSparks
from icefield_spark.sql.comments import comment
from icefield_spark.sql.context import Context, Rows, no_rows
from icefield_spark.sql.identifiers import with_names
from icefield_spark.sql.parsing import Cursor, Statement
from icefield_spark.sql.queries import Queries
from icefield_spark.sql.session_text import read_as
from icefield_spark.sql.sources import Names
from icefield_spark.writing import Outcome

Opened = Callable[[SparkSession], Any]
Write = Callable[[DataFrame, WriteContext, Any], Outcome]

_VERBS: dict[str, Callable[[Context, Cursor], DataFrame]] = {
    "CREATE": ddl.create,
    "REPLACE": ddl.replace,
    "DROP": ddl.drop,
    "TRUNCATE": ddl.truncate,
    "INSERT": inserts.insert,
    "DELETE": changes.delete,
    "UPDATE": changes.update,
    "MERGE": changes.merge,
    "CALL": procedures.call,
    "ALTER": alter.alter,
    "SHOW": show.show,
    "DESCRIBE": show.describe,
    "DESC": show.describe,
    "COMMENT": comment,
    "REFRESH": show.refresh,
}
_OWN = (["ALTER"], ["CALL"])
"""The first words of statements of Iceberg's own, which Spark's parser refuses: ``CALL`` that of Spark 3.5."""
_CHANGES = ("INSERT", "DELETE", "UPDATE", "MERGE")
_EXPLAINS = ("EXTENDED", "FORMATTED", "COST", "CODEGEN")


class Statements:
    """Runs statements on the tables of one catalog. The current namespace is the same in every session."""

    def __init__(self, catalog: Catalog, write: Write, attached: str | None, opened: Opened) -> None:
        """``write`` runs the job that writes a frame for a transaction; ``attached`` is as in ``Names``."""
        self._analyzed = Analyzed([*dict.fromkeys([attached or catalog.name, catalog.name])], opened)
        self._catalog = catalog
        self._write = write
        self._attached = attached
        self._namespace: tuple[str, ...] = ()

    def run(self, spark: SparkSession, string: str) -> DataFrame:
        """Run one statement in a session, whose views and variables it may name: the frame of what it gives."""
        is_analyzed = self._analyzed.serves(spark)
        try:
            if is_analyzed:
                try:
                    return self._analyzed.run(spark, string)
                except (AnalysisException, NotSparks) as refused:
                    if not isinstance(refused, NotSparks) and not _is_own(string, refused):
                        raise
                    self._namespace = self._analyzed.namespace
            return self._run(spark, substituted(spark, string))
        except RecursionError:
            raise _too_deep(string) from None
        except AnalysisException as failure:
            namespace: tuple[str, ...] | None = self._namespace
            if is_analyzed:
                namespace = self._analyzed.namespace if self._analyzed.is_current else None
            missing = missing_in(self._catalog, failure, namespace, self._attached)
            if missing is None:
                raise
            raise missing from None
        except Py4JJavaError as error:
            if "StackOverflowError" in str(error.java_exception.toString()):
                raise _too_deep(string) from None
            raise

    def call(
        self, spark: SparkSession, procedure: Sequence[str], given: Mapping[str, Any], namespace: tuple[str, ...]
    ) -> Rows:
        """The rows of a procedure for values of its parameters, where a namespace is the current one."""
        names = Names(spark, self._catalog, namespace, attached=self._attached)
        context = Context(spark, self._catalog, names, Queries(spark, names), self._write)
        return procedures.called(context, procedure, given)

    def _run(self, spark: SparkSession, string: str) -> DataFrame:
        statement = Statement(with_names(read_as(spark, string)))
        cursor = Cursor(statement)
        names = Names(spark, self._catalog, self._namespace, attached=self._attached)
        queries = Queries(spark, names)
        if cursor.takes("EXPLAIN"):
            kind = cursor.takes_one_of(*_EXPLAINS)
            return queries.frame(cursor.rest(), f"EXPLAIN {kind or ''} ")
        if cursor.takes("USE"):
            return self._use(names, spark, cursor)
        context = Context(spark, self._catalog, names, queries, self._write)
        if cursor.sees("CREATE"):
            view = _view(cursor, names, queries)
            if view is not None:
                return context.nothing() if view else run_sql(spark, statement.string)
        if cursor.sees("WITH"):
            ahead = Cursor(statement)
            before = _common_tables(ahead)
            word = ahead.takes_one_of(*_CHANGES)
            if before and word is not None:
                return _VERBS[word](replace(context, before=f"{before} "), ahead)
        if cursor.takes("CACHE"):
            return _cache(context, cursor)
        word = cursor.takes_one_of(*_VERBS)
        if word is not None:
            return _VERBS[word](context, cursor)
        counted = queries.count(statement.string)
        return queries.frame(statement.string) if counted is None else counted

    def _use(self, names: Names, spark: SparkSession, cursor: Cursor) -> DataFrame:
        """Make a namespace current, of this catalog or of Spark."""
        if not (cursor.takes("NAMESPACE") or cursor.takes("DATABASE")):
            cursor.takes("SCHEMA")
        parts = cursor.names("a namespace")
        cursor.expect_end()
        if len(parts) == 1 and names.is_catalog(parts[0]):
            self._namespace = ()
            return no_rows(spark)
        local = parts[1:] if names.is_catalog(parts[0]) else parts
        if self._catalog.namespace_exists(local):
            self._namespace = local
            return no_rows(spark)
        self._namespace = ()
        return run_sql(spark, f"USE {quoted(*parts)}")


def _is_own(string: str, refused: AnalysisException) -> bool:
    """Whether a statement that Spark refuses may be Iceberg's own, or gives a column its name in another case."""
    word = string.upper().split(None, 1)[:1]
    if isinstance(refused, ParseException):
        return word in _OWN
    return word == ["ALTER"] and "[FIELD_ALREADY_EXISTS]" in str(refused)


def _too_deep(string: str) -> InvalidArgument:
    return InvalidArgument(f"the statement, or a view in it, is nested too deeply: {string:.100}")


def _common_tables(cursor: Cursor) -> str:
    """Take the WITH clause in front of a statement; nothing where it cannot be read, which is Spark's to say."""
    start = cursor.at
    cursor.expect("WITH")
    cursor.takes("RECURSIVE")
    try:
        while True:
            cursor.name()
            if cursor.sees("("):
                cursor.enclosed()
            cursor.until(("AS",), ("(",))
            cursor.takes("AS")
            cursor.enclosed()
            if not cursor.takes(","):
                return cursor.statement.between(start, cursor.at)
    except InvalidArgument:
        return ""


def _cache(context: Context, cursor: Cursor) -> DataFrame:
    """``CACHE TABLE name AS …`` of rows of the catalog's; the cursor stands after CACHE. All else is Spark's."""
    lazily = "LAZY" if cursor.takes("LAZY") else ""
    cursor.expect("TABLE")
    name = cursor.names("a name")
    options = cursor.until(("AS",), ("SELECT",), ("WITH",))
    if cursor.takes("AS") or not cursor.is_over:
        query = context.queries.bind(cursor.rest())
        if query.frames:
            query.run(context.spark).createTempView(quoted(name[-1]))
            return run_sql(context.spark, f"CACHE {lazily} TABLE {quoted(name[-1])} {options}")
    return context.queries.frame(cursor.statement.string)


def _view(cursor: Cursor, names: Names, queries: Queries) -> bool | None:
    """Create a temporary view. None where the statement creates none, False where the view is Spark's alone."""
    ahead = Cursor(cursor.statement, cursor.at)
    ahead.expect("CREATE")
    replace = ahead.takes("OR", "REPLACE")
    shared = ahead.takes("GLOBAL")
    temporary = bool(ahead.takes_one_of("TEMPORARY", "TEMP"))
    if not ahead.takes("VIEW"):
        return None
    if_not_exists = ahead.takes("IF", "NOT", "EXISTS")
    name = ahead.names("the name of a view")
    if not temporary:
        return None if names.is_place(name) else _permanent(ahead, queries)
    if if_not_exists or not ahead.takes("AS"):
        return False
    query = queries.bind(ahead.rest())
    if not query.frames:
        return False
    frame = query.run(queries.spark)
    if shared:
        (frame.createOrReplaceGlobalTempView if replace else frame.createGlobalTempView)(name[-1])
    else:
        (frame.createOrReplaceTempView if replace else frame.createTempView)(quoted(name[-1]))
    return True


def _permanent(ahead: Cursor, queries: Queries) -> bool:
    ahead.until(("AS",))
    if ahead.takes("AS") and queries.bind(ahead.rest()).frames:
        raise UnsupportedFeature(
            "a view of Spark's that stays would hold the name of a table that Spark does not know: name a namespace of "
            "the catalog, as in CREATE VIEW db.name, or CREATE TEMPORARY VIEW"
        )
    return False
