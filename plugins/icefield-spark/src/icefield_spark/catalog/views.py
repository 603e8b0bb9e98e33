"""Views of a session's catalog: their descriptions for Spark, and the views that Spark creates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from icefield import Catalog, Schema, View
from icefield.abc import ViewCatalog
from icefield.errors import InvalidArgument, NoSuchNamespace, NoSuchView, NotSupportedByCatalog, UnsupportedFeature
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from icefield_spark.catalog.bridge import Remote, reply
from icefield_spark.catalog.java_properties import PREFIX
from icefield_spark.jvm import jvm_class, settings_of
from icefield_spark.quoting import quoted
from icefield_spark.running import PARSER
from icefield_spark.sql.calls import SYSTEM
from icefield_spark.sql.view_plans import check_stored, check_text
from icefield_spark.types import from_spark_schema, to_spark_schema

DIALECT: Final = "spark"
# Properties of a view that Iceberg's Java runtime writes, under its names.
QUERY_COLUMNS: Final = "spark.query-column-names"
MADE_BY: Final = "create_engine_version"
COMMENT: Final = "comment"
CHANGED_BY: Final = "engine_version"
KEPT: Final = frozenset({QUERY_COLUMNS, MADE_BY, CHANGED_BY, COMMENT})

_CURRENT_SETTINGS: Final = "spark.sql.legacy.useCurrentConfigsForView"
_FIXED: Final = {"spark.sql.variable.substitute": "false", "spark.sql.runSQLOnFiles": "false"}
"""Settings for reading every view: Spark runs the text that was checked, and no name is the path of a file."""

_APART: Final = "icefield.query-column-names"
"""The property of a view that states the names of its query's columns as JSON, where one of them holds a comma."""
_MOST_READ: Final = 200
_OF_SPARK: Final = frozenset({"owner", "collation", "provider", "location", "external", "table_type"})


class StoredView(Remote):
    """The description of a view for Spark."""

    def __init__(self, views: SessionViews, name: tuple[str, ...], text: str, described: dict[str, Any]) -> None:
        self._views = views
        self._spark = views.spark
        self._path = name
        self._name = ".".join(name)
        self._text = text
        self._described = described
        self._paths: list[tuple[str, ...]] = []
        self.read: list[tuple[str, ...]] = []
        """The names that its query reads, as they stand there, once it was checked."""

    def on_describe(self, _: None) -> str:
        """The query and columns of the view, and the catalog, namespace and settings for looking up its names."""
        check_text(self._text, self._name)
        if self._spark.conf.get(_CURRENT_SETTINGS, "false") == "true":
            raise UnsupportedFeature(
                f"view {self._name} is not read while {_CURRENT_SETTINGS} is true: Spark would read it without the "
                "settings that keep a view from reading files"
            )
        return reply({"text": self._text, "configs": {**self._settings(), **_FIXED}, **self._described})

    def on_check(self, plan: Any) -> None:
        """Refuse a query that no view may have, by the plan that Spark's parser made of it."""
        place = self._described["catalog"], tuple(self._described["namespace"])
        self.read = check_stored(plan, self._name, self._views.functions(place[0]))
        self._paths = self._views.paths(self.read, *place)
        self._views.check_read(self._path, self._paths)

    def _settings(self) -> dict[str, str]:
        """The settings of the session, under which a view's query is read like the statement that names the view."""
        return {
            name: value
            for name, value in settings_of(self._spark).items()
            if name.startswith("spark.sql.") and not name.startswith(PREFIX)
        }


class Draft(StoredView):
    """A view that Spark creates, which is stored after its query was checked."""

    def __init__(self, views: SessionViews, given: dict[str, Any]) -> None:
        self._given = given
        super().__init__(views, tuple(given["name"]), given["text"], given)

    def on_check(self, plan: Any) -> None:
        """Refuse a query that no view may have.

        That includes a query of a file: Spark takes a name for a file if no table has it.
        """
        super().on_check(plan)
        views, catalog = self._views, self._given["catalog"]
        for name in {each for each in (self._paths if views.is_own(catalog) else self.read) if len(each) == 2}:
            if views.is_own(catalog):
                is_there = views.catalog.table_exists(name) or views.loaded(name) is not None
            else:
                is_there = self._spark.catalog.tableExists(quoted(*name))
            if not is_there:
                raise UnsupportedFeature(
                    f"view {self._name} reads {'.'.join(name)!r}, which is no table of the catalog"
                )

    def on_create(self, _: None) -> None:
        """Create it."""
        properties = {**self._properties(), MADE_BY: self._engine()}
        self._views.catalog.create_view(self._path, *self._query(), properties=properties, **self._place())

    def on_replace(self, _: None) -> None:
        """Replace the existing view by this one."""
        view = self._views.loaded(self._path)
        if view is None:
            raise NoSuchView(f"no view {'.'.join(self._path)} in the catalog '{self._views.name}'", view=self._path)
        properties = self._properties()
        gone = [key for key in view.properties if key not in properties and key not in KEPT]
        made = view.replace(*self._query(), properties=properties, **self._place())
        if gone:
            made.set_properties({}, gone)

    def _query(self) -> tuple[Schema, dict[str, str]]:
        schema = from_spark_schema(StructType.fromJson(self._given["schema"]), optional=True)
        return schema, {DIALECT: self._given["text"]}

    def _place(self) -> dict[str, Any]:
        """The default namespace and catalog of the view.

        The view's own catalog is left out, since each session has its own name for it.
        """
        catalog = self._given["catalog"]
        elsewhere = None if catalog == self._views.name else catalog
        return {"default_namespace": tuple(self._given["namespace"]), "default_catalog": elsewhere}

    def _properties(self) -> dict[str, str]:
        columns = self._given["query_columns"]
        stated = {
            QUERY_COLUMNS: ",".join(columns),
            CHANGED_BY: self._engine(),
            **own_properties(self._given["properties"]),
        }
        if any("," in each for each in columns):
            stated[_APART] = json.dumps(columns)
        return stated

    def _engine(self) -> str:
        return f"Spark {self._views.spark.version}"


class SessionViews:
    """The views of a catalog, for one session."""

    def __init__(self, spark: SparkSession, catalog: Catalog, name: str) -> None:
        """``name``: the catalog's name in the session."""
        self.spark = spark
        self.catalog = catalog
        self.name = name
        self._read: dict[tuple[str, ...], tuple[tuple[str, str, tuple[str, ...]], list[tuple[str, ...]]]] = {}

    def find(self, name: tuple[str, ...]) -> StoredView | None:
        """The view of a name; None if there is no view of the name."""
        view = self.loaded(name)
        if view is None:
            return None
        schema = to_spark_schema(view.schema())
        columns = _query_columns(view)
        described = {
            "schema": json.loads(schema.json()),
            "query_columns": columns if len(columns) == len(schema.fields) and all(columns) else [],
            "catalog": self._place(view),
            "namespace": list(view.default_namespace),
            "properties": own_properties(view.properties),
        }
        return StoredView(self, name, view.sql_for(DIALECT), described)

    def names(self, namespace: tuple[str, ...]) -> list[str]:
        """The names of the views of a namespace."""
        return [each[-1] for each in self.catalog.list_views(namespace)] if self._are_kept() else []

    def drop(self, name: tuple[str, ...]) -> bool:
        """Drop a view; return whether it existed."""
        try:
            self.catalog.drop_view(name)
        except NoSuchView:
            return False
        return True

    def loaded(self, name: tuple[str, ...]) -> View | None:
        """The view of a name as the catalog has it."""
        if len(name) < 2 or not self._are_kept():
            return None
        try:
            return self.catalog.load_view(name)
        except (NoSuchView, NoSuchNamespace, NotSupportedByCatalog, InvalidArgument):
            return None

    def is_own(self, catalog: str) -> bool:
        """Whether a name is a name of the catalog."""
        return catalog in (self.name, self.catalog.name)

    def functions(self, catalog: str) -> list[tuple[str, ...]]:
        """The qualifiers of Iceberg's functions in a view with that default catalog."""
        own = {self.name, self.catalog.name}
        return [*((each, SYSTEM) for each in own), *([(SYSTEM,)] if catalog in own else [])]

    def paths(self, read: list[tuple[str, ...]], catalog: str, namespace: tuple[str, ...]) -> list[tuple[str, ...]]:
        """The names that a view reads, as the catalog has them, without names in other catalogs."""
        own, found = {self.name, self.catalog.name}, []
        for parts in read:
            if len(parts) > 2 and parts[0] in own:
                found.append(parts[1:])
            elif catalog in own:
                found.append(parts if len(parts) > 1 else (*namespace, *parts))
        return found

    def check_read(self, view: tuple[str, ...], read: list[tuple[str, ...]]) -> None:
        """Refuse a view that reads itself, or too many other views: Spark reads a view again at each mention.

        Raises ``InvalidArgument``.
        """
        counts: dict[tuple[str, ...], int] = {}

        def count(names: list[tuple[str, ...]], above: tuple[tuple[str, ...], ...]) -> int:
            found = 0
            for name in names:
                if name in above:
                    raise InvalidArgument(f"view {'.'.join(name)} is made from itself")
                if name not in counts:
                    inner = self._read_by(name)
                    counts[name] = 0 if inner is None else 1 + count(inner, (*above, name))
                found += counts[name]
                if found > _MOST_READ or len(above) > _MOST_READ:
                    raise InvalidArgument(f"view {'.'.join(view)} reads too many views: at most {_MOST_READ} others")
            return found

        count(read, (view,))

    def _read_by(self, name: tuple[str, ...]) -> list[tuple[str, ...]] | None:
        """The names that a view reads; None if the name is not a view."""
        view = self.loaded(name)
        if view is None:
            return None
        text, catalog, namespace = key = view.sql_for(DIALECT), self._place(view), view.default_namespace
        if name not in self._read or self._read[name][0] != key:
            # The session that is analyzing a statement stays the active one.
            plan = getattr(jvm_class(self.spark, PARSER), "MODULE$").parsePlan(text)
            self._read[name] = (
                key,
                self.paths(check_stored(plan, ".".join(name), self.functions(catalog)), catalog, namespace),
            )
        return self._read[name][1]

    def _place(self, view: View) -> str:
        """The catalog in which a view's names are looked up, under the session's name for it."""
        return view.metadata.current_version().default_catalog or self.name

    def _are_kept(self) -> bool:
        return isinstance(self.catalog.backend, ViewCatalog)


def _query_columns(view: View) -> list[str]:
    """The names that the columns of a view's query had when it was made. Another engine may have changed it since."""
    stated = str(view.properties.get(QUERY_COLUMNS, ""))
    with suppress(ValueError, TypeError):
        apart = json.loads(view.properties.get(_APART, ""))
        if isinstance(apart, list) and ",".join(apart) == stated:
            return apart
    return stated.split(",")


def own_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that users set on a view, without names that Spark reserves for itself."""
    return {
        key: value
        for key, value in properties.items()
        if not key.startswith("view.") and (key == COMMENT or key not in _OF_SPARK | KEPT | {_APART})
    }
