"""Statements on stored views for Spark before 4.3, which reads the views of a catalog and changes none.

A statement arrives as the plan that Spark's parser made of it.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from icefield import Catalog, View
from icefield.errors import InvalidArgument, NoSuchView, UnsupportedFeature
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from icefield_spark.catalog.views import COMMENT, MADE_BY, QUERY_COLUMNS, Draft, Views, own_properties
from icefield_spark.jvm import items
from icefield_spark.quoting import literal, quoted, spelt
from icefield_spark.sql.context import no_rows
from icefield_spark.sql.sources import Names
from icefield_spark.sql.view_plans import check_text
from icefield_spark.types import to_spark_schema

_DESCRIBED: Final = "col_name string NOT NULL, data_type string NOT NULL, comment string"
_PROPERTIES: Final = "key string NOT NULL, value string NOT NULL"
_LISTED: Final = "namespace string NOT NULL, viewName string NOT NULL, isTemporary boolean NOT NULL"


class OlderViews:
    """Answers one statement on views of a catalog."""

    def __init__(self, spark: SparkSession, catalog: Catalog, names: Names, name: str, *, is_current: bool) -> None:
        """``name``: that of the catalog in the session where statements are analyzed; ``is_current``: without one."""
        self._spark = spark
        self._catalog = catalog
        self._names = names
        self._name = name
        self._is_current = is_current

    def answer(self, plan: Any, analyzed: Callable[[Any], Any]) -> DataFrame | None:
        """What a statement gives; None where it is on no view of the catalog. ``analyzed`` resolves a plan."""
        kind = str(plan.getClass().getSimpleName())
        if kind == "CreateView":
            return self._created(plan, analyzed)
        if kind == "ShowViews":
            return self._listed(plan)
        answer = _ANSWERS.get(kind)
        if answer is None or (kind == "RenameTable" and not plan.isView()):
            return None
        subject = plan.child() if kind != "DescribeRelation" else plan.relation()
        is_dropped = kind == "DropView"
        parts = _strings(subject.nameParts() if is_dropped else subject.multipartIdentifier())
        if not self._is_named(parts):
            return None
        view = self._names.view(parts)
        if view is not None:
            return answer(self, view, plan)
        if is_dropped and self._names.is_known(parts):
            if plan.ifExists():
                return no_rows(self._spark)
            raise NoSuchView(f"no view {'.'.join(parts)} in the catalog '{self._catalog.name}'", view=parts)
        return None

    def _is_named(self, parts: tuple[str, ...]) -> bool:
        """Whether a name is looked up in the catalog."""
        return self._is_current or (bool(parts) and self._names.is_catalog(parts[0]))

    def _created(self, plan: Any, analyzed: Callable[[Any], Any]) -> DataFrame | None:
        parts = _strings(plan.child().nameParts())
        if not self._is_named(parts) or not self._names.is_place(parts):
            return None
        name = self._names.local(parts)
        is_there = self._catalog.view_exists(name)
        if is_there and plan.allowExisting():
            return no_rows(self._spark)
        comment = plan.comment()
        given: dict[str, Any] = {
            "name": list(name),
            "text": str(plan.originalText().get()),
            "catalog": self._name,
            "namespace": list(self._names.namespace),
            "properties": _mapping(plan.properties()) | ({COMMENT: comment.get()} if comment.isDefined() else {}),
            "schema": {},
            "query_columns": [],
        }
        check_text(given["text"], ".".join(name))
        draft = Draft(Views(self._spark, self._catalog, self._name), given)
        draft.on_check(plan.query())
        rows = StructType.fromJson(json.loads(analyzed(plan.query()).schema().json()))
        columns = [(str(each._1()), each._2()) for each in items(plan.userSpecifiedColumns())]
        given["query_columns"], given["schema"] = rows.names, _named(rows, columns).jsonValue()
        if is_there and plan.replace():
            draft.on_replace(None)
        else:
            draft.on_create(None)
        return no_rows(self._spark)

    def _listed(self, plan: Any) -> DataFrame | None:
        above = plan.namespace()
        parts = _strings(above.multipartIdentifier()) if _has(above, "multipartIdentifier") else ()
        local = parts[1:] if parts and self._names.is_catalog(parts[0]) else parts or self._names.namespace
        if not local or not self._is_named(parts) or not self._names.is_namespace(local):
            return None
        pattern = str(plan.pattern().get()).lower() if plan.pattern().isDefined() else "*"
        stored = sorted(each[-1] for each in self._catalog.list_views(local))
        temporary = [row.viewName for row in self._spark.sql("SHOW VIEWS").collect() if row.isTemporary]
        rows = [(".".join(local), each, False) for each in stored] + [("", each, True) for each in temporary]
        shown = [row for row in rows if any(fnmatch.fnmatchcase(row[1].lower(), p) for p in pattern.split("|"))]
        return self._frame(shown, _LISTED)

    def _dropped(self, view: View, plan: Any) -> DataFrame:
        self._catalog.drop_view(view.name)
        return no_rows(self._spark)

    def _renamed(self, view: View, plan: Any) -> DataFrame:
        parts = _strings(plan.newName())
        name = self._names.local(parts) if len(parts) > 1 else (*view.name[:-1], *parts)
        self._catalog.rename_view(view.name, name)
        return no_rows(self._spark)

    def _given_another_query(self, view: View, plan: Any) -> DataFrame:
        raise UnsupportedFeature("ALTER VIEW … AS takes Spark 4.3: CREATE OR REPLACE VIEW gives a view another query")

    def _set(self, view: View, plan: Any) -> DataFrame:
        view.set_properties(_mapping(plan.properties()))
        return no_rows(self._spark)

    def _unset(self, view: View, plan: Any) -> DataFrame:
        keys = _strings(plan.propertyKeys())
        absent = sorted(set(keys) - view.properties.keys())
        if absent and not plan.ifExists():
            raise InvalidArgument(f"view {'.'.join(view.name)} has no property {', '.join(absent)}")
        view.set_properties({}, keys)
        return no_rows(self._spark)

    def _described(self, view: View, plan: Any) -> DataFrame:
        fields = to_spark_schema(view.schema()).fields
        rows = [(field.name, field.dataType.simpleString(), _comment(field) or "") for field in fields]
        if plan.isExtended():
            place = quoted(view.metadata.current_version().default_catalog or self._name, *view.default_namespace)
            columns = ", ".join(filter(None, view.properties.get(QUERY_COLUMNS, "").split(",")))
            rows += [
                ("", "", ""),
                ("# Detailed View Information", "", ""),
                ("Comment", view.properties.get(COMMENT, ""), ""),
                ("View Catalog and Namespace", place, ""),
                ("View Query Output Columns", f"[{columns}]", ""),
                ("View Properties", f"[{_spelt_properties(view, ', ')}]", ""),
                ("Created By", view.properties.get(MADE_BY, ""), ""),
            ]
        return self._frame(rows, _DESCRIBED)

    def _shown(self, view: View, plan: Any) -> DataFrame:
        """The statement that creates a view."""
        columns = []
        for field in to_spark_schema(view.schema()).fields:
            comment = _comment(field)
            columns.append(spelt(field.name) + (f" COMMENT {literal(comment)}" if comment else ""))
        lines = [f"CREATE VIEW {spelt(self._name, *view.name)} (", "  " + ",\n  ".join(columns) + ")"]
        if COMMENT in view.properties:
            lines.append(f"COMMENT {literal(view.properties[COMMENT])}")
        listed = _spelt_properties(view, ",\n  ")
        lines += [f"TBLPROPERTIES (\n  {listed})"] if listed else []
        return self._frame([("\n".join([*lines, f"AS\n{view.sql_for('spark')}\n"]),)], "createtab_stmt string NOT NULL")

    def _properties(self, view: View, plan: Any) -> DataFrame:
        shown = own_properties(view.properties)
        if plan.propertyKey().isDefined():
            key = str(plan.propertyKey().get())
            shown = {key: shown.get(key, f"View {'.'.join(view.name)} does not have property: {key}")}
        return self._frame(sorted(shown.items()), _PROPERTIES)

    def _frame(self, rows: Iterable[tuple[Any, ...]], columns: str) -> DataFrame:
        return self._spark.createDataFrame(list(rows), columns)


_ANSWERS: Final[Mapping[str, Callable[[OlderViews, View, Any], DataFrame]]] = {
    "AlterViewAs": OlderViews._given_another_query,
    "DescribeRelation": OlderViews._described,
    "DropView": OlderViews._dropped,
    "RenameTable": OlderViews._renamed,
    "SetViewProperties": OlderViews._set,
    "ShowCreateTable": OlderViews._shown,
    "ShowTableProperties": OlderViews._properties,
    "UnsetViewProperties": OlderViews._unset,
}


def _has(plan: Any, method: str) -> bool:
    """Whether an object of the JVM has a method."""
    return any(each.getName() == method for each in plan.getClass().getMethods())


def _strings(sequence: Any) -> tuple[str, ...]:
    return tuple(map(str, items(sequence)))


def _mapping(found: Any) -> dict[str, str]:
    return {str(each._1()): str(each._2()) for each in items(found.toSeq())}


def _named(rows: StructType, columns: list[tuple[str, Any]]) -> StructType:
    """The columns of a query under the names and with the comments that a statement gives them."""
    if not columns:
        return rows
    if len(columns) != len(rows.fields):
        raise InvalidArgument(f"the view is given {len(columns)} columns, and its query has {len(rows.fields)}")
    return StructType(
        [
            StructField(name, field.dataType, field.nullable, {"comment": said.get()} if said.isDefined() else {})
            for (name, said), field in zip(columns, rows.fields, strict=True)
        ]
    )


def _comment(field: StructField) -> str | None:
    return (field.metadata or {}).get("comment")


def _spelt_properties(view: View, between: str) -> str:
    own = sorted((key, value) for key, value in own_properties(view.properties).items() if key != COMMENT)
    return between.join(f"{literal(key)} = {literal(value)}" for key, value in own)
