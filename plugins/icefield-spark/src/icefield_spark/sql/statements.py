"""Which statements of ``ice.sql`` Spark carries out, and which are carried out here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from icefield import Catalog
from icefield.errors import InvalidArgument, UnsupportedFeature
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from icefield_spark.missing import missing_in
from icefield_spark.quoting import quoted
from icefield_spark.running import run_sql, substituted
from icefield_spark.sql import alter, changes, procedures
from icefield_spark.sql.analyzed import Analyzed
from icefield_spark.sql.by_names import ATTACH, ByNames, check_certain
from icefield_spark.sql.context import Rows, StatementContext, no_rows
from icefield_spark.sql.parsing import Cursor, Statement
from icefield_spark.sql.sources import Names

Opened = Callable[[SparkSession], Any]

_VERBS: Final[dict[str, Callable[[StatementContext, Cursor], DataFrame]]] = {
    "DELETE": changes.delete,
    "UPDATE": changes.update,
    "MERGE": changes.merge,
    "CALL": procedures.call,
}
_INSTEAD: Final = {
    "ALTER": "update_schema, set_properties and their like of ice.catalog.load_table(name)",
    "CACHE": "cache of a frame",
    "COMMENT": "update_schema and set_properties of ice.catalog.load_table(name)",
    "CREATE": "ice.create_table, ice.create_table_as, ice.catalog.create_namespace, createTempView of a frame",
    "DESC": "ice.table(name).schema or ice.catalog.load_table(name)",
    "DESCRIBE": "ice.table(name).schema or ice.catalog.load_table(name)",
    "DROP": "ice.catalog.drop_table, drop_namespace and drop_view",
    "INSERT": "ice.append, ice.overwrite or ice.overwrite_partitions with a frame of the rows",
    "REPLACE": "ice.catalog.replace_table_transaction",
    "SHOW": "ice.catalog.list_tables, list_namespaces and load_table(name)",
    "TRUNCATE": "DELETE FROM",
}
"""Statements that are not done by names, each with its replacement."""
_OWN: Final = (["ALTER"], ["CALL"])
"""The first words of Iceberg's own statements, which Spark's parser refuses; only Spark 3.5 refuses ``CALL``."""
_EXPLAINS: Final = ("EXTENDED", "FORMATTED", "COST", "CODEGEN")


class Statements:
    """Runs statements on the tables of one catalog. The current namespace is the same in every session."""

    def __init__(self, catalog: Catalog, attached: str | None, opened: Opened) -> None:
        """``attached`` is as in ``Names``; ``opened`` as in ``Analyzed``."""
        self._analyzed = Analyzed(catalog, attached, opened)
        self._catalog = catalog
        self._attached = attached
        self._namespace: tuple[str, ...] = ()

    def serves(self, spark: SparkSession) -> bool:
        """Whether a session can have the tables of the catalog as relations; see ``Analyzed``."""
        return self._analyzed.serves(spark)

    def run(self, spark: SparkSession, string: str) -> DataFrame:
        """Run one statement in a session, with its views and variables; return the frame of its result."""
        is_analyzed = self._analyzed.serves(spark)
        try:
            if not is_analyzed:
                return self._by_names(spark, substituted(spark, string))
            try:
                return self._analyzed.run(spark, string)
            except AnalysisException as refused:
                found = self._own(spark, string) if _is_own(string, refused) else None
                if found is None:
                    raise
                return found
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
        """The rows of a procedure for values of its parameters; ``namespace`` is the current namespace."""
        return procedures.called(self._context(spark, namespace), procedure, given)

    def _context(self, spark: SparkSession, namespace: tuple[str, ...]) -> StatementContext:
        names = Names(spark, self._catalog, namespace, attached=self._attached)
        return StatementContext(spark, self._catalog, names, ByNames(spark, names))

    def _own(self, spark: SparkSession, string: str) -> DataFrame | None:
        """Run a statement of Iceberg's own that Spark has refused; None for other statements."""
        cursor = Cursor(Statement(substituted(spark, string)))
        context = self._context(spark, self._analyzed.namespace)
        return procedures.call(context, cursor) if cursor.takes("CALL") else alter.alter(context, cursor)

    def _by_names(self, spark: SparkSession, string: str) -> DataFrame:
        statement = Statement(string)
        cursor, context = Cursor(statement), self._context(spark, self._namespace)
        check_certain(spark, context.names, statement)
        if cursor.takes("EXPLAIN"):
            kind = cursor.takes_one_of(*_EXPLAINS)
            return context.queries.frame(cursor.rest(), f"EXPLAIN {kind or ''} ")
        if cursor.takes("USE"):
            return self._use(context, cursor)
        word = cursor.takes_one_of(*_VERBS)
        if word is not None:
            return _VERBS[word](context, cursor)
        altered = alter.alter(context, Cursor(statement))
        if altered is not None:
            return altered
        refused = cursor.takes_one_of(*_INSTEAD)
        if refused is not None:
            raise UnsupportedFeature(f"ice.sql does not {refused} by names: use {_INSTEAD[refused]}, or {ATTACH}")
        return context.queries.frame(string)

    def _use(self, context: StatementContext, cursor: Cursor) -> DataFrame:
        """Make a namespace current, of this catalog or of Spark."""
        if not (cursor.takes("NAMESPACE") or cursor.takes("DATABASE")):
            cursor.takes("SCHEMA")
        parts, names = cursor.names("a namespace"), context.names
        cursor.expect_end()
        local = parts[1:] if names.is_catalog(parts[0]) else parts
        if not local or self._catalog.namespace_exists(local):
            self._namespace = local
            return no_rows(context.spark)
        self._namespace = ()
        return run_sql(context.spark, f"USE {quoted(*parts)}")


def _is_own(string: str, refused: AnalysisException) -> bool:
    """Whether a statement that Spark refuses may be Iceberg's own, or only changes the case of a column's name."""
    word = string.upper().split(None, 1)[:1]
    if isinstance(refused, ParseException):
        return word in _OWN
    return word == ["ALTER"] and "[FIELD_ALREADY_EXISTS]" in str(refused)


def _too_deep(string: str) -> InvalidArgument:
    return InvalidArgument(f"the statement, or a view in it, is nested too deeply: {string:.100}")
