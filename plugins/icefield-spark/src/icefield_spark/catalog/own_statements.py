"""Statements of Iceberg's own grammar in ``spark.sql``: the parser of a session tries them after Spark's own."""

from __future__ import annotations

import logging
from importlib import resources
from typing import Any, Final

from icefield.errors import InvalidArgument, UnsupportedFeature
from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from icefield_spark.catalog.bridge import Remote
from icefield_spark.catalog.compiling import CLASSES, PARSER, cooked
from icefield_spark.catalog.configuration import PREFIX, refuse_connect
from icefield_spark.jvm import jvm_class
from icefield_spark.quoting import quoted
from icefield_spark.running import substituted
from icefield_spark.sql.alter import CLAUSE, is_own_clause
from icefield_spark.sql.parsing import Cursor, Statement

_log = logging.getLogger(__name__)

_PARSER: Final = "icefield.spark.SessionParser"
_INTERFACE: Final = "org.apache.spark.sql.catalyst.parser.ParserInterface"
_SPARKS: Final = "org.apache.spark.sql.catalyst.parser.CatalystSqlParser$"
_METHODS: Final = "/*METHODS*/"
_STATIC: Final = 8
"""The bit of a Java method's modifiers that says that it is static."""


def parse_own_statements(spark: SparkSession) -> None:
    """Have sessions parse Iceberg's own statements: this one unless it was used before, its clones and new sessions.

    Spark makes the parser of a session when the session is first used. Raises ``UnsupportedFeature`` through Spark
    Connect.
    """
    refuse_connect(spark)
    try:
        session, plain = spark._jsparkSession, getattr(jvm_class(spark, _SPARKS), "MODULE$")
        extensions = session.extensions()
        if extensions.buildParser(session, plain).getClass().getName() == _PARSER:
            return
        parsers = _compiled(spark).loadClass("icefield.spark.Parsers").newInstance()
        ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
        parsers.answeredBy(OwnStatements(spark.sparkContext), spark.sparkContext._jsc.sc())
        extensions.injectParser(parsers)
    except (Py4JError, TypeError):  # a method or class of Spark's that is not there
        _log.warning("spark.sql of Spark %s takes no statements of Iceberg's own: use ice.sql", spark.version)


def _compiled(spark: SparkSession) -> Any:
    """The loader of the classes. They stay in the driver, so that no jar holds them."""
    loader = jvm_class(spark, "java.lang.Thread").currentThread().getContextClassLoader()
    methods = [each for each in loader.loadClass(_INTERFACE).getMethods() if not each.getModifiers() & _STATIC]
    source = resources.files("icefield_spark.catalog").joinpath(PARSER).read_text("utf-8")
    return cooked(spark, source.replace(_METHODS, "\n".join(map(_delegated, methods))), loader)


def _delegated(method: Any) -> str:
    """A method of Spark's parser. One that parses a statement tries what Iceberg's own statement means, too."""
    name, types = method.getName(), [each.getCanonicalName() for each in method.getParameterTypes()]
    errors = ", ".join(each.getCanonicalName() for each in method.getExceptionTypes())
    parameters = ", ".join(f"{kind} a{at}" for at, kind in enumerate(types))
    call = f"return parser.{name}({', '.join(f'a{at}' for at in range(len(types)))});"
    if name.startswith("parsePlan"):
        # By the parser that puts nothing in place of ${...}, which has been done by then.
        again = f"return {_SPARKS}.MODULE$.parsePlan(parsers.rewritten(session, a0, refused));"
        call = f"try {{ {call} }} catch (ParseException refused) {{ {again} }}"
    throws = f" throws {errors}" if errors else ""
    return f"  public {method.getReturnType().getCanonicalName()} {name}({parameters}){throws} {{ {call} }}"


class OwnStatements(Remote):
    """Says what a statement that Spark's parser refused means to a catalog of Icefield's."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context

    def on_rewrite(self, asked: Any) -> str | None:
        """A statement that Spark parses, and that hands the text to the catalog; None for a text that is no such."""
        session, text = asked
        try:
            cursor = Cursor(Statement(substituted(SparkSession(self._context, session), text)))
            if not cursor.takes("ALTER", "TABLE"):
                return None
            parts = cursor.names()
        except (InvalidArgument, UnsupportedFeature):
            return None
        name = _whole_name(session, parts) if is_own_clause(cursor) else None
        return (
            None if name is None else f"ALTER TABLE {name} SET TBLPROPERTIES ('{CLAUSE}' = '{_coded(cursor.rest())}')"
        )


def _coded(clause: str) -> str:
    """A clause as a string that means the same under all settings of a session."""
    return clause.encode("utf-8", "surrogatepass").hex()


def _whole_name(session: Any, parts: tuple[str, ...]) -> str | None:
    """The name of a table with that of its catalog; None where the catalog is none of Icefield's."""
    if len(parts) > 1 and _is_ours(session, parts[0]):
        return quoted(*parts)
    manager = session.sessionState().catalogManager()
    if len(parts) > 1 and manager.isCatalogRegistered(parts[0]):
        return None
    current = manager.currentCatalog().name()
    namespace = tuple(manager.currentNamespace()) if len(parts) == 1 else ()
    return quoted(current, *namespace, *parts) if _is_ours(session, current) else None


def _is_ours(session: Any, catalog: str) -> bool:
    try:
        return session.conf().get(f"{PREFIX}{catalog}", "") in CLASSES
    except Py4JJavaError:
        return False
