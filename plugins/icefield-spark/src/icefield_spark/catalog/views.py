"""Views of a session's catalog: what Spark is told of one, and what becomes of those that it makes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from icefield import Catalog, Schema, View
from icefield.abc import CatalogAbility
from icefield.errors import InvalidArgument, NoSuchNamespace, NoSuchView, NotSupportedByCatalog, UnsupportedFeature
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from icefield_spark.catalog.bridge import Remote, reply
from icefield_spark.catalog.configuration import PREFIX
from icefield_spark.jvm import settings_of
from icefield_spark.sql.view_plans import check_stored, check_text
from icefield_spark.sql.view_rows import DIALECT, QUERY_COLUMNS
from icefield_spark.sql.views import CHANGED_BY, COMMENT, KEPT, MADE_BY
from icefield_spark.types import from_spark_schema, to_spark_schema

_CURRENT_SETTINGS: Final = "spark.sql.legacy.useCurrentConfigsForView"
_FIXED: Final = {"spark.sql.variable.substitute": "false", "spark.sql.runSQLOnFiles": "false"}
"""Settings that no view is read without: its text is what was checked, and a name is never the path of a file."""

_OF_SPARK: Final = frozenset({"owner", "collation", "provider", "location", "external", "table_type"})


class StoredView(Remote):
    """A view as Spark is told of it."""

    def __init__(self, spark: SparkSession, name: tuple[str, ...], text: str, described: dict[str, Any]) -> None:
        self._spark = spark
        self._name = ".".join(name)
        self._text = text
        self._described = described

    def on_describe(self, _: None) -> str:
        """Its query, its columns, and where and how Spark looks names up."""
        check_text(self._text, self._name)
        if self._spark.conf.get(_CURRENT_SETTINGS, "false") == "true":
            raise UnsupportedFeature(
                f"view {self._name} is not read while {_CURRENT_SETTINGS} is true: Spark would read it without the "
                "settings that keep a view from reading files"
            )
        return reply({"text": self._text, "configs": {**self._settings(), **_FIXED}, **self._described})

    def on_check(self, plan: Any) -> None:
        """Refuse a query that no view may have, by the plan that Spark's parser made of it."""
        check_stored(plan, self._name)

    def _settings(self) -> dict[str, str]:
        """The settings of the session: a view is read as the statement is that names it."""
        return {
            name: value
            for name, value in settings_of(self._spark).items()
            if name.startswith("spark.sql.") and not name.startswith(PREFIX)
        }


class Draft(StoredView):
    """A view that Spark makes, which is stored once its query was looked through."""

    def __init__(self, views: Views, given: dict[str, Any]) -> None:
        self._views = views
        self._given = given
        self._path = tuple(given["name"])
        super().__init__(views.spark, self._path, given["text"], given)

    def on_create(self, _: None) -> None:
        """Create it."""
        properties = {**self._properties(), MADE_BY: self._engine()}
        self._views.catalog.create_view(self._path, *self._query(), properties=properties, **self._place())

    def on_replace(self, _: None) -> None:
        """Make the view that is there this one."""
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
        """Where names are looked up that name no catalog or namespace; the catalog's own name is each session's."""
        catalog = self._given["catalog"]
        elsewhere = None if catalog == self._views.name else catalog
        return {"default_namespace": tuple(self._given["namespace"]), "default_catalog": elsewhere}

    def _properties(self) -> dict[str, str]:
        columns = ",".join(self._given["query_columns"])
        return {QUERY_COLUMNS: columns, CHANGED_BY: self._engine(), **_own(self._given["properties"])}

    def _engine(self) -> str:
        return f"Spark {self._views.spark.version}"


class Views:
    """The views of a catalog, for one session."""

    def __init__(self, spark: SparkSession, catalog: Catalog, name: str) -> None:
        """``name``: that of the catalog in the session."""
        self.spark = spark
        self.catalog = catalog
        self.name = name

    def find(self, name: tuple[str, ...]) -> StoredView | None:
        """The view of a name; None where there is none."""
        view = self.loaded(name)
        if view is None:
            return None
        schema = to_spark_schema(view.schema())
        columns = view.properties.get(QUERY_COLUMNS, "").split(",")
        described = {
            "schema": json.loads(schema.json()),
            "query_columns": columns if len(columns) == len(schema.fields) and all(columns) else [],
            "catalog": view.metadata.current_version().default_catalog or self.name,
            "namespace": list(view.default_namespace),
            "properties": _own(view.properties),
        }
        return StoredView(self.spark, name, view.sql_for(DIALECT), described)

    def names(self, namespace: tuple[str, ...]) -> list[str]:
        """The names of the views of a namespace."""
        return [each[-1] for each in self.catalog.list_views(namespace)] if self._are_kept() else []

    def drop(self, name: tuple[str, ...]) -> bool:
        """Drop a view; whether there was one."""
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

    def _are_kept(self) -> bool:
        return CatalogAbility.VIEWS in self.catalog.backend.abilities


def _own(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that somebody gave a view. Spark takes some names for its own, which are no view's to state."""
    return {
        key: value
        for key, value in properties.items()
        if not key.startswith("view.") and (key == COMMENT or key not in _OF_SPARK | KEPT)
    }
