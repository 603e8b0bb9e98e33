"""Statements that Spark parses, analyzes and carries out, with the catalog as the current one."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from icefield import Catalog
from icefield.errors import UnsupportedFeature
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from icefield_spark.catalog.java_properties import PREFIX
from icefield_spark.catalog.own_statements import parse_own_statements
from icefield_spark.catalog.provider import offered, show
from icefield_spark.failures import original_in
from icefield_spark.jvm import array, is_connected, items, jvm_class, seq
from icefield_spark.pinning import pinned
from icefield_spark.quoting import quoted
from icefield_spark.running import frame_of_plan
from icefield_spark.sql.context import no_rows

if TYPE_CHECKING:
    from icefield_spark.session import IcefieldSession

_log = logging.getLogger(__name__)

_OF_THE_SESSION: Final = frozenset(
    {
        "AddArchivesCommand", "AddFilesCommand", "AddJarsCommand", "CreateFunctionCommand", "CreateTempViewUsing",
        "CreateVariable", "DropFunctionCommand", "DropTempViewCommand", "DropVariable", "ResetCommand", "SetCommand",
        "SetVariable",
    }
)  # fmt: skip
"""Plans of statements that change the session itself, and not only its clone."""
_OF_VIEWS: Final = frozenset({"AlterViewAs", "DropView", "RenameTable"})
_USES: Final = frozenset({"SetCatalogAndNamespace", "SetCatalogCommand", "SetNamespaceCommand"})
_CURRENT: Final = "org.apache.spark.sql.catalyst.optimizer.ReplaceCurrentLike"
_PLANS: Final = "org.apache.spark.sql.catalyst.plans.logical."
_WORD: Final = re.compile(r"\w+|`[^`]+`")


class Analyzed:
    """Runs statements of one catalog in sessions of Spark.

    The catalog is the current one of a clone of the session, in which a statement is parsed and analyzed: the session
    keeps its own current catalog, in other threads too. Queries then belong to the session, and commands run in the
    clone. The current namespace is the same in every session.
    """

    def __init__(
        self, catalog: Catalog, attached: str | None, opened: Callable[[SparkSession], IcefieldSession]
    ) -> None:
        """``attached``: the name that the session has for the catalog, besides the catalog's own.

        ``opened`` gives a session of the catalog for one of Spark's.
        """
        self._names = list(dict.fromkeys([attached or catalog.name, catalog.name]))
        self._opened = opened
        self._settings: dict[str, str] = {}
        self._context: Any = None
        self._current: tuple[str, ...] = (self._names[0],)
        self._has_warned = False

    @property
    def namespace(self) -> tuple[str, ...]:
        """The current namespace of the catalog; empty where another catalog is the current one."""
        return self._current[1:] if self.is_current else ()

    @property
    def is_current(self) -> bool:
        """Whether the catalog is the current one."""
        return self._current[0] in self._names

    def serves(self, spark: SparkSession) -> bool:
        """Whether a session can have the catalog: not through Spark Connect, nor where no jar may be added."""
        if is_connected(spark):
            self._warn("Spark Connect keeps its plans at the server")
            return False
        if self._context is not spark.sparkContext:
            settings: dict[str, str] = {}
            try:
                parse_own_statements(spark)
                for name in self._names:
                    settings |= offered(spark, name, self._opened)
            except UnsupportedFeature as refused:
                settings = {}
                self._warn(refused)
            # The context is set last, so that another thread that sees it also finds the settings.
            self._settings = settings
            self._context = spark.sparkContext
        return bool(self._settings)

    def _warn(self, reason: object) -> None:
        if not self._has_warned:
            self._has_warned = True
            _log.warning(
                "ice.sql finds tables by their names alone. Comparisons of a column with a literal leave out files, in "
                "a query of one table and in DELETE, UPDATE and MERGE; nothing else does. ice.table pushes its own "
                "arguments: %s",
                reason,
            )

    def run(self, spark: SparkSession, text: str) -> DataFrame:
        """Run one statement in a session that ``serves``; return the frame of its result.

        Raises ``ParseException`` for a text that Spark cannot parse, and the errors of the statement.
        """
        clone = self._clone(spark)
        with as_icefields():
            with _active(spark, clone):
                plan = clone.sessionState().sqlParser().parsePlan(text)
                kind = _kind(plan)
                if kind == "CompoundBody":
                    return DataFrame(clone.sql(text), SparkSession(spark.sparkContext, clone))
                _take_variables(spark, clone, text)
                is_made_here = kind in ("CreateViewCommand", "CacheTableAsSelect")
                of_the_session = kind in _OF_THE_SESSION or (kind in _OF_VIEWS and _is_temporary(spark, plan))
                if kind == "MergeIntoTable":
                    return _merged(spark, clone, plan)
                if not is_made_here and not of_the_session and _is_command(spark, plan):
                    found = frame_of_plan(SparkSession(spark.sparkContext, clone), plan)
                    if kind in _USES:
                        manager = clone.sessionState().catalogManager()
                        self._current = (manager.currentCatalog().name(), *manager.currentNamespace())
                    return found
                if kind not in _OF_VIEWS:
                    plan = _analyzed(spark, clone, plan)
            if kind == "CreateViewCommand":
                return _viewed(spark, plan)
            if kind == "CacheTableAsSelect":
                return _cached(spark, plan)
            return frame_of_plan(spark, plan)

    def _clone(self, spark: SparkSession) -> Any:
        self._show(spark)
        java = spark._jsparkSession
        clone = java.cloneSession()
        for option, value in self._settings.items():
            clone.conf().set(option, value)
        manager = clone.sessionState().catalogManager()
        with _active(spark, clone):  # the clone's settings name the catalog
            for name in self._names:
                # Jobs are the session's, not the clone's.
                manager.catalog(name).attach(java, self._settings[f"{PREFIX}{name}.key"])
            manager.setCurrentCatalog(self._current[0])
            if len(self._current) > 1:
                manager.setCurrentNamespace(array(spark, "java.lang.String", self._current[1:]))
        return clone

    def _show(self, spark: SparkSession) -> None:
        """Let a session find the catalog by its name again, for the tables of views and of kept rows.

        A catalog that was attached under this name takes precedence.
        """
        for name in self._names:
            setting = f"{PREFIX}{name}"
            mine, known = self._settings[f"{setting}.key"], spark.conf.get(f"{setting}.key", None)
            if known == mine or (known is None) != (spark.conf.get(setting, None) is None) or known not in _SHOWN:
                continue
            _SHOWN.add(mine)
            show(spark, name, {option: self._settings[option] for option in (setting, f"{setting}.key")})


_SHOWN: set[str | None] = {None}
"""The keys of catalogs that sessions know by name without having been attached under it."""


@contextmanager
def as_icefields() -> Iterator[None]:
    """A context for calls of Spark: an error of Icefield that Spark wrapped in its own is raised again as itself."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as failure:
        error = original_in(failure)
        if error is None:
            raise
        raise error from failure


@contextmanager
def _active(spark: SparkSession, session: Any) -> Iterator[None]:
    kind = jvm_class(spark, str(session.getClass().getName()))
    kind.setActiveSession(session)
    try:
        yield
    finally:
        kind.setActiveSession(spark._jsparkSession)


def _analyzed(spark: SparkSession, clone: Any, plan: Any) -> Any:
    """The plan with all names resolved: it no longer depends on the clone."""
    state = clone.sessionState()
    made = state.analyzer().execute(plan)
    state.analyzer().checkAnalysis(made)
    return jvm_class(spark, _CURRENT)(state.catalogManager()).apply(made)


def _merged(spark: SparkSession, clone: Any, plan: Any) -> DataFrame:
    """Compute a nondeterministic source of a merge once, and merge its rows: Spark would refuse the source itself."""
    session = SparkSession(spark.sparkContext, clone)
    source = clone.sessionState().analyzer().execute(plan.sourceTable())
    if not source.resolved() or _is_deterministic(source) or _kind(source) != "SubqueryAlias":
        return frame_of_plan(session, plan)
    with pinned(frame_of_plan(session, source)) as held:
        if held is None:
            return frame_of_plan(session, plan)
        there = source.withNewChildren(seq(spark, [held._jdf.queryExecution().analyzed()]))
        return frame_of_plan(session, plan.withNewChildren(seq(spark, [plan.targetTable(), there])))


def _is_deterministic(plan: Any) -> bool:
    return bool(plan.deterministic()) and all(map(_is_deterministic, items(plan.children())))


def _take_variables(spark: SparkSession, clone: Any, text: str) -> None:
    """Give a clone the variables of its session that a text may name: Spark does not copy variables."""
    manager = spark._jsparkSession.sessionState().catalogManager()
    if spark.version.startswith("3.") or manager.tempVariableManager().isEmpty():  # Spark 3.5 has no variables
        return
    mine, copied = manager.tempVariableManager(), clone.sessionState().catalogManager().tempVariableManager()
    for word in sorted({each.strip("`").lower() for each in _WORD.findall(text)}):
        name = seq(spark, [word])
        found = mine.get(name)
        if found.isDefined():
            copied.create(name, found.get(), True)


def _kind(plan: Any) -> str:
    return str(plan.getClass().getSimpleName())


def _is_command(spark: SparkSession, plan: Any) -> bool:
    kind = jvm_class(spark, "java.lang.Class").forName(f"{_PLANS}Command")
    return bool(kind.isInstance(plan)) or (_kind(plan) == "UnresolvedWith" and bool(kind.isInstance(plan.child())))


def _is_temporary(spark: SparkSession, plan: Any) -> bool:
    """Whether a statement changes a temporary view of a session."""
    child = plan.child()
    parts = child.nameParts() if _kind(child) == "UnresolvedIdentifier" else child.multipartIdentifier()
    return bool(spark._jsparkSession.sessionState().catalog().isTempView(parts))


def _viewed(spark: SparkSession, plan: Any) -> DataFrame:
    """Create a temporary view of an analyzed query."""
    frame = frame_of_plan(spark, plan.plan())
    names = [each._1() for each in items(plan.userSpecifiedColumns())]
    frame = frame.toDF(*names) if names else frame
    if "Global" in str(plan.viewType()):
        name = str(plan.name().table())
        (frame.createOrReplaceGlobalTempView if plan.replace() else frame.createGlobalTempView)(name)
    else:
        name = str(plan.name().quotedString())
        (frame.createOrReplaceTempView if plan.replace() else frame.createTempView)(name)
    return no_rows(spark)


def _cached(spark: SparkSession, plan: Any) -> DataFrame:
    """Keep the rows of an analyzed query as a temporary view."""
    frame, level = frame_of_plan(spark, plan.plan()), plan.options().get("storageLevel")
    frame.createTempView(quoted(str(plan.tempViewName())))
    frame.persist(
        getattr(StorageLevel, level.get().upper()) if level.isDefined() else StorageLevel.MEMORY_AND_DISK_DESER
    )
    if not plan.isLazy():
        frame.count()
    return no_rows(spark)
