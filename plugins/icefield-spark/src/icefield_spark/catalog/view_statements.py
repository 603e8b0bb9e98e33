"""Statements on views of a catalog, by the plans that Spark's parser makes of them.

Spark asks catalogs for views from version 4.3 on. Earlier versions parse the statements, but ask no catalog.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from icefield import View
from icefield.errors import InvalidArgument, NoSuchView, UnsupportedFeature, ViewExists
from pyspark.sql import SparkSession

from icefield_spark.catalog.commands import CatalogCommand
from icefield_spark.catalog.shown_views import created, described, shown_properties
from icefield_spark.catalog.views import COMMENT, Draft, SessionViews, own_properties
from icefield_spark.jvm import items, jvm_class, seq
from icefield_spark.sql.view_plans import refuse_variables

_SHOWN: Final = "namespace STRING NOT NULL, viewName STRING NOT NULL, isTemporary BOOLEAN NOT NULL"
_DESCRIBED: Final = "col_name STRING NOT NULL, data_type STRING NOT NULL, comment STRING"
_PROPERTIES: Final = "key STRING NOT NULL, value STRING NOT NULL"
_CREATED: Final = "createtab_stmt STRING NOT NULL"
_PATTERNS: Final = "org.apache.spark.sql.catalyst.util.StringUtils"
KINDS: Final = (
    "AlterViewAs", "CreateView", "DescribeRelation", "DropView", "RenameTable", "SetViewProperties", "ShowCreateTable",
    "ShowTableProperties", "ShowViews", "UnsetViewProperties",
)  # fmt: skip
"""Classes of plans of statements that may be on a view."""


def is_of_namespace(plan: Any) -> bool:
    """Whether the name in a statement is the name of a namespace."""
    return _kind(plan) == "ShowViews"


def name_in(spark: SparkSession, plan: Any) -> tuple[str, ...] | None:
    """The name in a statement; None for a name of Spark's alone, such as a temporary view."""
    child = plan.child()
    kind = _kind(child)
    if kind in ("CurrentNamespace", "CurrentNamespace$"):
        return ()
    if kind == "UnresolvedIdentifier":
        parts = child.nameParts()
    elif kind in ("UnresolvedNamespace", "UnresolvedTableOrView", "UnresolvedView"):
        parts = child.multipartIdentifier()
    else:
        return None
    found = tuple(map(str, items(parts)))
    if is_of_namespace(plan) or not spark._jsparkSession.sessionState().catalog().isTempView(parts):
        return found
    return None


def found(spark: SparkSession, views: SessionViews, plan: Any, name: tuple[str, ...]) -> CatalogCommand | None:
    """The command of a statement. ``name``: the name in the statement, in the catalog's form.

    None if the statement is on a table, or if the name does not exist.
    """
    kind = _kind(plan)
    statement = _ViewStatement(spark, views, plan, name)
    commands = {
        "AlterViewAs": CatalogCommand(statement.query),
        "CreateView": CatalogCommand(statement.create),
        "DropView": CatalogCommand(statement.drop),
        "SetViewProperties": CatalogCommand(statement.set_properties),
        "ShowViews": CatalogCommand(statement.show, _SHOWN),
        "UnsetViewProperties": CatalogCommand(statement.unset_properties),
    }
    if kind in commands:
        return commands[kind]
    if kind == "RenameTable":
        return CatalogCommand(statement.rename) if plan.isView() else None
    view = views.loaded(name)
    if view is None:
        return None
    if kind == "DescribeRelation":
        return CatalogCommand(lambda: described(views.name, view, bool(plan.isExtended())), _DESCRIBED)
    if kind == "ShowCreateTable":
        return CatalogCommand(lambda: [[created(views.name, view)]], _CREATED)
    return CatalogCommand(lambda: statement.properties(view), _PROPERTIES)


class _ViewStatement:
    """A statement of a session on a view, or on the views of a namespace."""

    def __init__(self, spark: SparkSession, views: SessionViews, plan: Any, name: tuple[str, ...]) -> None:
        self._spark = spark
        self._views = views
        self._plan = plan
        self._name = name

    def create(self) -> None:
        """Create a view of the query."""
        plan = self._plan
        view = self._views.loaded(self._name)
        if view is not None and plan.allowExisting():
            return
        if view is not None and not plan.replace():
            raise ViewExists(f"view {'.'.join(self._name)} already exists", view=self._name)
        if not plan.originalText().isDefined():
            raise UnsupportedFeature("a view that stays is created by SQL, which it keeps")
        properties = _map(plan.properties())
        if plan.comment().isDefined():
            properties[COMMENT] = plan.comment().get()
        named = [(each._1(), each._2().get() if each._2().isDefined() else None)
                 for each in items(plan.userSpecifiedColumns())]  # fmt: skip
        draft = self._draft(plan.originalText().get(), named, properties)
        (draft.on_create if view is None else draft.on_replace)(None)

    def query(self) -> None:
        """Give a view another query."""
        self._draft(self._plan.originalText(), [], own_properties(self._view().properties)).on_replace(None)

    def _draft(self, text: str, named: Sequence[tuple[str, str | None]], properties: dict[str, str]) -> Draft:
        """A view that may be stored: its query was checked, and Spark analyzed it."""
        session, query = self._spark._jsparkSession, self._plan.query()
        manager = session.sessionState().catalogManager()
        given = {
            "name": self._name,
            "text": text,
            "catalog": manager.currentCatalog().name(),
            "namespace": list(manager.currentNamespace()),
            "properties": properties,
        }
        draft = Draft(self._views, given)
        draft.on_describe(None)
        draft.on_check(query)
        self._refuse_temporary_views(draft)
        analyzer = session.sessionState().analyzer()
        analyzed = analyzer.execute(query)
        analyzer.checkAnalysis(analyzed)
        refuse_variables(self._spark, analyzed, ".".join(self._name))
        schema = json.loads(analyzed.schema().json())
        given["query_columns"] = [field["name"] for field in schema["fields"]]
        given["schema"] = _named(schema, named)
        return draft

    def _refuse_temporary_views(self, draft: Draft) -> None:
        known = self._spark._jsparkSession.sessionState().catalog()
        for parts in draft.read:
            if known.isTempView(seq(self._spark, parts)):
                raise InvalidArgument(
                    f"view {'.'.join(self._name)} stays, and cannot read the temporary view {'.'.join(parts)}"
                )

    def drop(self) -> None:
        """Drop a view."""
        if not self._views.drop(self._name) and not self._plan.ifExists():
            raise self._missing()

    def rename(self) -> None:
        """Rename a view; a name with one part stays in the view's namespace."""
        new = tuple(map(str, items(self._plan.newName())))
        local = new[1:] if len(new) > 2 and new[0] == self._views.name else new
        self._views.catalog.rename_view(self._view().name, local if len(local) > 1 else (*self._name[:-1], *local))

    def set_properties(self) -> None:
        """Set properties."""
        self._view().set_properties(_map(self._plan.properties()))

    def unset_properties(self) -> None:
        """Remove properties."""
        view, keys = self._view(), [str(each) for each in items(self._plan.propertyKeys())]
        absent = sorted(set(keys) - view.properties.keys())
        if absent and not self._plan.ifExists():
            raise InvalidArgument(f"view {'.'.join(self._name)} has no property {', '.join(absent)}")
        view.set_properties({}, keys)

    def show(self) -> list[tuple[str, str, bool]]:
        """The views of the namespace, and the temporary ones of the session."""
        wanted = self._plan.pattern().get() if self._plan.pattern().isDefined() else "*"
        names = seq(self._spark, self._views.names(self._name))
        fitting = jvm_class(self._spark, _PATTERNS).filterPattern(names, wanted)
        temporary = self._spark._jsparkSession.sessionState().catalog().listLocalTempViews(wanted)
        shown = [(".".join(self._name), name, False) for name in sorted(map(str, items(fitting)))]
        return shown + [("", str(each.table()), True) for each in items(temporary)]

    def properties(self, view: View) -> list[tuple[str, str]]:
        """The properties of a view, or only the requested property."""
        shown = shown_properties(view)
        if not self._plan.propertyKey().isDefined():
            return sorted(shown.items())
        key = str(self._plan.propertyKey().get())
        name = ".".join((self._views.name, *self._name))
        return [(key, shown.get(key, f"View {name} does not have property: {key}"))]

    def _view(self) -> View:
        view = self._views.loaded(self._name)
        if view is None:
            raise self._missing()
        return view

    def _missing(self) -> NoSuchView:
        return NoSuchView(f"no view {'.'.join(self._name)} in the catalog '{self._views.name}'", view=self._name)


def _kind(plan: Any) -> str:
    return str(plan.getClass().getSimpleName())


def _map(found: Any) -> dict[str, str]:
    """A map of Scala's."""
    return {str(each._1()): str(each._2()) for each in items(found.toSeq())}


def _named(schema: Any, named: Sequence[tuple[str, str | None]]) -> Any:
    """The columns of a query under the names and with the comments that a view gives them."""
    fields = schema["fields"]
    if not named:
        return schema
    if len(named) != len(fields):
        raise InvalidArgument(f"the view is given {len(named)} columns, and its query has {len(fields)}")
    made = []
    for field, (name, comment) in zip(fields, named, strict=True):
        metadata = {} if comment is None else {"comment": comment}
        made.append({**field, "name": name, "metadata": metadata})
    return {**schema, "fields": made}
