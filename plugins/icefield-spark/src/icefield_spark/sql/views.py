"""Views that the catalog keeps: creating, changing and dropping them, and what is said of them."""

# See docs/decisions/0140.

from __future__ import annotations

from icefield import View
from icefield.errors import InvalidArgument, NoSuchView, UnsupportedFeature, ViewExists
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from icefield_spark.quoting import literal, quoted, spelt
from icefield_spark.sql import terms
from icefield_spark.sql.context import Context
from icefield_spark.sql.parsing import Cursor
from icefield_spark.sql.view_rows import DIALECT, QUERY_COLUMNS
from icefield_spark.types import from_spark_schema, to_spark_schema

Described = tuple[str, str, str | None]

# What Iceberg's Java runtime keeps among the properties of a view, under its names.
MADE_BY, CHANGED_BY, COMMENT = "create_engine_version", "engine_version", "comment"
KEPT = frozenset({QUERY_COLUMNS, MADE_BY, CHANGED_BY, COMMENT})


def create(context: Context, cursor: Cursor, *, replaces: bool) -> DataFrame:
    """``CREATE VIEW`` of one that stays; the cursor stands after VIEW."""
    if_not_exists = cursor.takes("IF", "NOT", "EXISTS")
    if replaces and if_not_exists:
        raise InvalidArgument("CREATE VIEW has OR REPLACE or IF NOT EXISTS, not both")
    parts = cursor.names("the name of a view")
    columns = [_column(item) for item in cursor.enclosed().items()] if cursor.sees("(") else None
    given: dict[str, str] = {}
    while not cursor.is_over and not cursor.sees("AS"):
        if cursor.takes("COMMENT"):
            given[COMMENT] = cursor.string("a comment")
        elif cursor.takes("TBLPROPERTIES"):
            given.update(terms.properties(cursor))
        else:
            raise cursor.unexpected("COMMENT, TBLPROPERTIES or AS")
    cursor.expect("AS")
    query = cursor.rest()
    if not query:
        raise cursor.unexpected("a query")
    catalog, name, namespace = context.catalog, context.names.local(parts), context.names.namespace
    if if_not_exists and catalog.view_exists(name):
        return context.nothing()
    rows = context.queries.rows_of_view(name, query, namespace).schema
    engine = f"Spark {context.spark.version}"
    given = {QUERY_COLUMNS: ",".join(rows.names), CHANGED_BY: engine, **given}
    schema = from_spark_schema(_named(rows, columns), optional=True)
    sql = {DIALECT: query}
    if replaces and catalog.view_exists(name):
        catalog.load_view(name).replace(schema, sql, default_namespace=namespace, properties=given)
        return context.nothing()
    try:
        catalog.create_view(name, schema, sql, default_namespace=namespace, properties={MADE_BY: engine, **given})
    except ViewExists:
        if not (replaces or if_not_exists):
            raise
        if replaces:  # somebody else was first
            catalog.load_view(name).replace(schema, sql, default_namespace=namespace, properties=given)
    return context.nothing()


def drop(context: Context, cursor: Cursor) -> DataFrame:
    """``DROP VIEW``; the cursor stands after VIEW."""
    if_exists = cursor.takes("IF", "EXISTS")
    parts = cursor.names("the name of a view")
    cursor.expect_end()
    view = context.names.view(parts)
    if view is not None:
        context.catalog.drop_view(view.name)
        return context.nothing()
    if not context.names.is_known(parts):
        return context.passed(cursor)
    if if_exists:
        return context.nothing()
    raise _missing(context, parts)


def alter(context: Context, cursor: Cursor) -> DataFrame:
    """``ALTER VIEW``: another name, other properties; the cursor stands after VIEW."""
    parts = cursor.names("the name of a view")
    view = context.names.view(parts)
    if view is None:
        if context.names.is_known(parts):
            raise _missing(context, parts)
        return context.passed(cursor)
    if cursor.takes("RENAME", "TO"):
        target = cursor.names("the new name")
        cursor.expect_end()
        local = context.names.local(target) if len(target) > 1 else (*view.name[:-1], *target)
        context.catalog.rename_view(view.name, local)
    elif cursor.takes("SET", "TBLPROPERTIES"):
        given = terms.properties(cursor)
        cursor.expect_end()
        view.set_properties(given)
    elif cursor.takes("UNSET", "TBLPROPERTIES"):
        if_exists = cursor.takes("IF", "EXISTS")
        keys = terms.keys(cursor)
        cursor.expect_end()
        absent = sorted(set(keys) - view.properties.keys())
        if absent and not if_exists:
            raise InvalidArgument(f"view {'.'.join(parts)} has no property {', '.join(absent)}")
        view.set_properties({}, keys)
    elif cursor.sees("AS"):
        raise UnsupportedFeature(
            "ALTER VIEW ... AS is not supported: CREATE OR REPLACE VIEW gives a view another query"
        )
    else:
        raise cursor.unexpected("RENAME TO, SET TBLPROPERTIES or UNSET TBLPROPERTIES")
    return context.nothing()


def described(context: Context, view: View, extended: bool) -> list[Described]:
    """What ``DESCRIBE`` says of a view: name, type and comment of each column."""
    rows: list[Described] = [
        (field.name, field.dataType.simpleString(), _comment(field) or "")
        for field in to_spark_schema(view.schema()).fields
    ]
    if not extended:
        return rows
    place = quoted(view.metadata.current_version().default_catalog or context.catalog.name, *view.default_namespace)
    columns = ", ".join(filter(None, view.properties.get(QUERY_COLUMNS, "").split(",")))
    properties = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in own_properties(view))
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


def created(context: Context, view: View) -> str:
    """The statement that creates a view."""
    columns = []
    for field in to_spark_schema(view.schema()).fields:
        comment = _comment(field)
        name = spelt(field.name)
        columns.append(name + (f" COMMENT {literal(comment)}" if comment else ""))
    lines = [f"CREATE VIEW {spelt(context.catalog.name, *view.name)} (", "  " + ",\n  ".join(columns) + ")"]
    if COMMENT in view.properties:
        lines.append(f"COMMENT {literal(view.properties[COMMENT])}")
    listed = ",\n  ".join(f"{literal(key)} = {literal(value)}" for key, value in own_properties(view))
    if listed:
        lines.append(f"TBLPROPERTIES (\n  {listed})")
    return "\n".join([*lines, f"AS\n{view.sql_for(DIALECT)}\n"])


def own_properties(view: View) -> list[tuple[str, str]]:
    """The properties that somebody gave a view, sorted."""
    return sorted((key, value) for key, value in view.properties.items() if key not in KEPT)


def reserved_properties(view: View) -> dict[str, str]:
    """What Spark shows in addition to the properties of a view, as Java's runtime does."""
    return {
        "location": view.metadata.location,
        "provider": "iceberg",
        "format-version": str(view.metadata.format_version),
    }


def _column(item: Cursor) -> tuple[str, str | None]:
    """Take a column of a list: its name and its comment."""
    name = item.name("a column")
    comment = item.string("a comment") if item.takes("COMMENT") else None
    item.expect_end()
    return name, comment


def _named(rows: StructType, columns: list[tuple[str, str | None]] | None) -> StructType:
    if columns is None:
        return rows
    if len(columns) != len(rows.fields):
        raise InvalidArgument(f"the view is given {len(columns)} columns, and its query has {len(rows.fields)}")
    return StructType(
        [
            StructField(name, field.dataType, field.nullable, {} if comment is None else {"comment": comment})
            for (name, comment), field in zip(columns, rows.fields, strict=True)
        ]
    )


def _comment(field: StructField) -> str | None:
    return (field.metadata or {}).get("comment")


def _missing(context: Context, parts: tuple[str, ...]) -> NoSuchView:
    return NoSuchView(f"no view {'.'.join(parts)} in the catalog '{context.catalog.name}'", view=parts)
