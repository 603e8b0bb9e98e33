"""A second parser for statements in ``spark.sql`` that Spark's parser refuses, or that Spark gives to no catalog."""

from __future__ import annotations

import logging
from importlib import resources
from typing import Any, Final

from icefield.errors import InvalidArgument, UnsupportedFeature
from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from icefield_spark.catalog import view_statements
from icefield_spark.catalog.bridge import Remote, remote
from icefield_spark.catalog.commands import CatalogCommand
from icefield_spark.catalog.compiling import CLASSES, cooked
from icefield_spark.catalog.compiling import PARSER as PARSER_FILE
from icefield_spark.catalog.configuration import refuse_connect
from icefield_spark.catalog.java_properties import PREFIX
from icefield_spark.jvm import array, jvm_class
from icefield_spark.quoting import quoted
from icefield_spark.running import PARSER, substituted
from icefield_spark.sql.alter import CLAUSE, is_own_clause
from icefield_spark.sql.parsing import Cursor, Statement

_log = logging.getLogger(__name__)

_PARSER: Final = "icefield.spark.SessionParser"
_INTERFACE: Final = "org.apache.spark.sql.catalyst.parser.ParserInterface"
_PROCEDURES: Final = "org.apache.spark.sql.connector.catalog.ProcedureCatalog"
_RELATIONS: Final = "org.apache.spark.sql.connector.catalog.RelationCatalog"
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
        session, plain = spark._jsparkSession, getattr(jvm_class(spark, PARSER), "MODULE$")
        extensions = session.extensions()
        if extensions.buildParser(session, plain).getClass().getName() == _PARSER:
            return
        parsers = _compiled(spark).loadClass("icefield.spark.Parsers").newInstance()
        ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
        statements = OwnStatements(spark.sparkContext, has_procedures=_has(spark, _PROCEDURES))
        kinds = () if _has(spark, _RELATIONS) else view_statements.KINDS
        parsers.answeredBy(statements, array(spark, "java.lang.String", kinds), spark.sparkContext._jsc.sc())
        extensions.injectParser(parsers)
    except (Py4JError, TypeError):  # a method or class of Spark's that is not there
        _log.warning("spark.sql of Spark %s takes no statements of Iceberg's own: use ice.sql", spark.version)


def _compiled(spark: SparkSession) -> Any:
    """The loader of the classes. They stay in the driver, so that no jar holds them."""
    loader = jvm_class(spark, "java.lang.Thread").currentThread().getContextClassLoader()
    methods = [each for each in loader.loadClass(_INTERFACE).getMethods() if not each.getModifiers() & _STATIC]
    source = resources.files("icefield_spark.catalog").joinpath(PARSER_FILE).read_text("utf-8")
    return cooked(spark, source.replace(_METHODS, "\n".join(map(_delegated, methods))), loader)


def _has(spark: SparkSession, name: str) -> bool:
    """Whether a Spark has an interface of catalogs.

    It asks for a resource, since an error in the JVM would make PySpark use the session.
    """
    loader = jvm_class(spark, "java.lang.Thread").currentThread().getContextClassLoader()
    return loader.getResource(f"{name.replace('.', '/')}.class") is not None


def _delegated(method: Any) -> str:
    """A method of Spark's parser. A method that parses statements also tries Iceberg's own statements."""
    name, types = method.getName(), [each.getCanonicalName() for each in method.getParameterTypes()]
    errors = ", ".join(each.getCanonicalName() for each in method.getExceptionTypes())
    parameters = ", ".join(f"{kind} a{at}" for at, kind in enumerate(types))
    call = f"parser.{name}({', '.join(f'a{at}' for at in range(len(types)))})"
    body = f"return {call};"
    if name.startswith("parsePlan"):
        again = "return parsers.afterAll(session, a0, refused);"
        body = f"try {{ return parsers.taken(session, {call}); }} catch (ParseException refused) {{ {again} }}"
    throws = f" throws {errors}" if errors else ""
    return f"  public {method.getReturnType().getCanonicalName()} {name}({parameters}){throws} {{ {body} }}"


class OwnStatements(Remote):
    """Plans statements on catalogs of Icefield that Spark's parser refuses, or assigns to no catalog."""

    def __init__(self, context: SparkContext, *, has_procedures: bool) -> None:
        """``has_procedures``: whether Spark itself calls procedures of catalogs."""
        self._context = context
        self._has_procedures = has_procedures

    def on_refused(self, asked: Any) -> Any:
        """The plan of a text that Spark's parser refused; None for a text that is no statement of Iceberg's own."""
        session, text = asked
        spark = SparkSession(self._context, session)
        try:
            cursor = Cursor(Statement(substituted(spark, text)))
            if cursor.takes("ALTER", "TABLE"):
                meaning = _altered
            elif cursor.takes("CALL") and not self._has_procedures:
                meaning = _called
            else:
                return None
            place = _place(session, cursor.names())
        except (InvalidArgument, UnsupportedFeature):
            return None
        return None if place is None else meaning(spark, place, cursor)

    def on_parsed(self, asked: Any) -> Any:
        """The plan of a statement on a view of a catalog; None for a statement that Spark itself carries out."""
        session, plan = asked
        spark = SparkSession(self._context, session)
        parts = view_statements.name_in(spark, plan)
        place = None if parts is None else _place(session, parts, is_namespace=view_statements.is_of_namespace(plan))
        if place is None:
            return None
        catalog = _catalog(session, place[0])
        found = view_statements.found(spark, _in_python(catalog).views, plan, place[1])
        return None if found is None else found.plan(catalog)


Place = tuple[str, tuple[str, ...]]
"""The name of a catalog, and a name in it."""


def _altered(spark: SparkSession, place: Place, cursor: Cursor) -> Any:
    """The plan of an ALTER TABLE of Spark's that hands the text to the catalog; None for other clauses."""
    if not is_own_clause(cursor):
        return None
    text = f"ALTER TABLE {quoted(place[0], *place[1])} SET TBLPROPERTIES ('{CLAUSE}' = '{_coded(cursor.rest())}')"
    # This parser substitutes no ${...}, since that was done before.
    return getattr(jvm_class(spark, PARSER), "MODULE$").parsePlan(text)


def _called(spark: SparkSession, place: Place, cursor: Cursor) -> Any:
    """The plan of a call of a procedure."""
    catalog = _catalog(spark._jsparkSession, place[0])
    called = _in_python(catalog).procedure(place[1])
    return CatalogCommand(lambda: called.of_text(spark, cursor), called.columns).plan(catalog)


def _coded(clause: str) -> str:
    """A clause as a string that Spark reads the same way under all settings of a session."""
    return clause.encode("utf-8", "surrogatepass").hex()


def _place(session: Any, parts: tuple[str, ...], *, is_namespace: bool = False) -> Place | None:
    """The catalog of a name and the name in it; None for a catalog that is not Icefield's."""
    least = 1 if is_namespace else 2
    if len(parts) >= least and _is_ours(session, parts[0]):
        return parts[0], parts[1:]
    manager = session.sessionState().catalogManager()
    if len(parts) >= least and manager.isCatalogRegistered(parts[0]):
        return None
    current = manager.currentCatalog().name()
    is_bare = len(parts) == (0 if is_namespace else 1)
    namespace = tuple(manager.currentNamespace()) if is_bare else ()
    return (current, (*namespace, *parts)) if _is_ours(session, current) else None


def _catalog(session: Any, name: str) -> Any:
    return session.sessionState().catalogManager().catalog(name)


def _in_python(catalog: Any) -> Any:
    """The ``SessionCatalog`` behind the Java object of a catalog."""
    return remote(catalog.python())


def _is_ours(session: Any, catalog: str) -> bool:
    try:
        return session.conf().get(f"{PREFIX}{catalog}", "") in CLASSES
    except Py4JJavaError:
        return False
