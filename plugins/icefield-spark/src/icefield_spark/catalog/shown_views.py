"""Output of statements that show a catalog's views."""

from __future__ import annotations

from icefield import View
from pyspark.sql.types import StructField

from icefield_spark.catalog.views import COMMENT, DIALECT, KEPT, MADE_BY, QUERY_COLUMNS
from icefield_spark.quoting import literal, quoted, spelt
from icefield_spark.types import to_spark_schema

Described = tuple[str, str, str | None]


def described(catalog: str, view: View, extended: bool) -> list[Described]:
    """The output of ``DESCRIBE`` for a view of a catalog of that name: name, type and comment of each column."""
    rows: list[Described] = [
        (field.name, field.dataType.simpleString(), _comment(field) or "")
        for field in to_spark_schema(view.schema()).fields
    ]
    if not extended:
        return rows
    place = quoted(view.metadata.current_version().default_catalog or catalog, *view.default_namespace)
    columns = ", ".join(filter(None, view.properties.get(QUERY_COLUMNS, "").split(",")))
    properties = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in _own(view))
    return [
        *rows,
        ("", "", ""),
        ("# Detailed View Information", "", ""),
        ("Comment", view.properties.get(COMMENT, ""), ""),
        ("View Catalog and Namespace", place, ""),
        ("View Query Output Columns", f"[{columns}]", ""),
        ("View Properties", f"[{properties}]", ""),
        ("Created By", view.properties.get(MADE_BY, ""), ""),
    ]


def created(catalog: str, view: View) -> str:
    """The statement that creates a view of a catalog of that name."""
    columns = []
    for field in to_spark_schema(view.schema()).fields:
        comment = _comment(field)
        name = spelt(field.name)
        columns.append(name + (f" COMMENT {literal(comment)}" if comment else ""))
    lines = [f"CREATE VIEW {spelt(catalog, *view.name)} (", "  " + ",\n  ".join(columns) + ")"]
    if COMMENT in view.properties:
        lines.append(f"COMMENT {literal(view.properties[COMMENT])}")
    listed = ",\n  ".join(f"{literal(key)} = {literal(value)}" for key, value in _own(view))
    if listed:
        lines.append(f"TBLPROPERTIES (\n  {listed})")
    return "\n".join([*lines, f"AS\n{view.sql_for(DIALECT)}\n"])


def _own(view: View) -> list[tuple[str, str]]:
    """The properties that users set on a view, sorted."""
    return sorted((key, value) for key, value in view.properties.items() if key not in KEPT)


def shown_properties(view: View) -> dict[str, str]:
    """The properties of a view, and the properties that Java's runtime shows in addition."""
    return {
        **dict(_own(view)),
        "location": view.metadata.location,
        "provider": "iceberg",
        "format-version": str(view.metadata.format_version),
    }


def _comment(field: StructField) -> str | None:
    return (field.metadata or {}).get("comment")
