"""``SHOW`` and ``DESCRIBE``: what is there, with Spark's columns."""

from __future__ import annotations

import fnmatch

from icefield import Table
from icefield.errors import UnsupportedFeature
from icefield.metadata import is_memory
from icefield.partitioning import PartitionField
from pyspark.sql import DataFrame
from pyspark.sql import types as spark
from sqlglot.tokenizer_core import TokenType

from icefield_spark.quoting import literal, quoted, spelt
from icefield_spark.sql import views
from icefield_spark.sql.columns import column_of
from icefield_spark.sql.context import Context
from icefield_spark.sql.parsing import Cursor
from icefield_spark.sql.properties import shown_properties, source_sql
from icefield_spark.transforms import parted
from icefield_spark.types import to_spark_schema

_QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "(")
_CREATED = "createtab_stmt string NOT NULL"
_DESCRIBED = "col_name string NOT NULL, data_type string NOT NULL, comment string"
_VIEW_KINDS = "namespace string NOT NULL, viewName string NOT NULL, isTemporary boolean NOT NULL"
_TABLE_KINDS = "namespace string NOT NULL, tableName string NOT NULL, isTemporary boolean NOT NULL"


def show(context: Context, cursor: Cursor) -> DataFrame:
    """``SHOW ...``; the cursor stands after SHOW."""
    if cursor.takes("TABLES"):
        return _tables(context, cursor)
    if cursor.takes("VIEWS"):
        return _views(context, cursor)
    if cursor.takes_one_of("NAMESPACES", "DATABASES", "SCHEMAS"):
        return _namespaces(context, cursor)
    if cursor.takes("CATALOGS"):
        return _catalogs(context, cursor)
    if cursor.takes("CURRENT", "NAMESPACE"):
        cursor.expect_end()
        if not context.names.namespace:
            return context.passed(cursor)
        current = [context.catalog.name, ".".join(context.names.namespace)]
        return context.rows("catalog string NOT NULL, namespace string NOT NULL", [current])
    if cursor.sees("TABLE", "EXTENDED"):
        return _extended(context, cursor)
    if cursor.takes("CREATE", "TABLE"):
        parts = cursor.names("the name of a table")
        table, view = context.table_or_view(parts)
        if view is not None:
            return context.rows(_CREATED, [[views.created(context, view)]])
        return context.passed(cursor) if table is None else _created(context, table)
    if cursor.takes("PARTITIONS"):
        parts = cursor.names("the name of a table")
        if context.table(parts) is None:
            return context.passed(cursor)
        return context.queries.frame(f"SELECT DISTINCT partition FROM {quoted(*parts)}.partitions")
    if cursor.takes("COLUMNS"):
        return _columns(context, cursor)
    if cursor.takes("TBLPROPERTIES"):
        return _properties(context, cursor)
    return context.passed(cursor)


def describe(context: Context, cursor: Cursor) -> DataFrame:
    """``DESCRIBE [TABLE] [EXTENDED]`` and ``DESCRIBE NAMESPACE``; the cursor stands after DESCRIBE."""
    if cursor.takes_one_of("NAMESPACE", "DATABASE", "SCHEMA"):
        return _namespace(context, cursor)
    if cursor.sees("FUNCTION"):
        return context.passed(cursor)
    of_query = Cursor(cursor.statement, cursor.at)
    if of_query.takes("QUERY") | any(of_query.sees(word) for word in _QUERIES):
        return context.queries.frame(of_query.rest(), "DESCRIBE QUERY ")
    cursor.takes("TABLE")
    extended = bool(cursor.takes_one_of("EXTENDED", "FORMATTED"))
    if cursor.is_over:
        return context.passed(cursor)
    parts = cursor.names("the name of a table")
    source = context.names.find(parts)
    view = context.names.view(parts) if source is None else None
    if view is not None:
        cursor.expect_end()
        return context.rows(_DESCRIBED, views.described(context, view, extended))
    if source is None:
        return context.passed(cursor)
    if source.about is not None:
        frame = context.queries.frame(f"SELECT * FROM {quoted(*parts)}")
        rows = [(field.name, field.dataType.simpleString(), None) for field in frame.schema.fields]
        return context.rows(_DESCRIBED, rows)
    if cursor.is_over:
        return context.rows(_DESCRIBED, _described(context, source.table, extended))
    name = column_of(context, source.table.schema(), cursor.name("a column"))
    if cursor.sees("."):
        raise UnsupportedFeature("DESCRIBE describes whole columns, not fields inside of them; DESCRIBE the table")
    cursor.expect_end()
    column = to_spark_schema(source.table.schema())[name]
    said = (column.metadata or {}).get("comment", "NULL")
    about = [("col_name", name), ("data_type", column.dataType.simpleString()), ("comment", said)]
    return context.rows("info_name string NOT NULL, info_value string NOT NULL", about)


def refresh(context: Context, cursor: Cursor) -> DataFrame:
    """``REFRESH TABLE``, for which nothing is to be done: each statement reads its tables anew."""
    cursor.takes("TABLE")
    ours = not cursor.is_over and cursor.statement.tokens[cursor.at].token_type is not TokenType.STRING
    if ours and context.names.find(cursor.names("the name of a table")) is not None:
        cursor.expect_end()
        return context.nothing()
    return context.passed(cursor)


def _described(context: Context, table: Table, extended: bool) -> list[tuple[str, str, str | None]]:
    columns = to_spark_schema(table.schema())
    rows: list[tuple[str, str, str | None]] = [
        (field.name, field.dataType.simpleString(), (field.metadata or {}).get("comment")) for field in columns.fields
    ]
    fields = [field for field in table.spec().fields if str(field.transform) != "void"]
    if fields and all(str(field.transform) == "identity" for field in fields):
        kinds = {name: kind for name, kind, _ in rows}
        rows += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")]
        names = [(_source(table, field), source_sql(table.schema(), field.source_id, field.name)) for field in fields]
        rows += [(spelling, kinds.get(name, ""), None) for name, spelling in names]
    elif fields:
        rows += [("", "", ""), ("# Partitioning", "", "")]
        rows += [(f"Part {number}", transform_sql(table, field), "") for number, field in enumerate(fields)]
    if extended:
        shown = {**table.properties, "format": f"iceberg/{table.properties.get('write.format.default', 'parquet')}"}
        properties = ",".join(f"{key}={value}" for key, value in sorted(shown.items()))
        rows += [
            ("", "", ""),
            ("# Detailed Table Information", "", ""),
            ("Name", ".".join((context.catalog.name, *table.name())), ""),
            ("Type", "MANAGED", ""),
            ("Location", table.location(), ""),
            ("Provider", "iceberg", ""),
            ("Table Properties", f"[{properties}]", ""),
        ]
    return rows


def _created(context: Context, table: Table) -> DataFrame:
    columns = [f"{spelt(field.name)} {_rest(field)}" for field in to_spark_schema(table.schema()).fields]
    lines = [f"CREATE TABLE {spelt(context.catalog.name, *table.name())} (", "  " + ",\n  ".join(columns) + ")"]
    lines.append("USING iceberg")
    fields = [field for field in table.spec().fields if str(field.transform) != "void"]
    if fields:
        lines.append(f"PARTITIONED BY ({', '.join(transform_sql(table, field) for field in fields)})")
    lines.append(f"LOCATION {literal(table.location())}")
    own = {key: value for key, value in table.properties.items() if not is_memory(key)}
    shown = {**own, "format-version": str(table.format_version)}
    listed = ",\n  ".join(f"{literal(key)} = {literal(value)}" for key, value in sorted(shown.items()))
    lines.append(f"TBLPROPERTIES (\n  {listed})")
    return context.rows(_CREATED, [["\n".join(lines)]])


def _written(kind: spark.DataType) -> str:
    """A type as Spark's statements write it, names of nested fields as they are."""
    if isinstance(kind, spark.StructType):
        return f"STRUCT<{', '.join(f'{spelt(each.name)}: {_rest(each)}' for each in kind.fields)}>"
    if isinstance(kind, spark.ArrayType):
        return f"ARRAY<{_written(kind.elementType)}>"
    if isinstance(kind, spark.MapType):
        return f"MAP<{_written(kind.keyType)}, {_written(kind.valueType)}>"
    return kind.simpleString().upper()


def _rest(field: spark.StructField) -> str:
    """What a statement says of a column after its name."""
    comment = (field.metadata or {}).get("comment")
    nulls = "" if field.nullable else " NOT NULL"
    return f"{_written(field.dataType)}{nulls}" + (f" COMMENT {literal(comment)}" if comment else "")


def transform_sql(table: Table, field: PartitionField) -> str:
    """A partition field as a statement writes it."""
    name, width, source = *parted(field.transform), source_sql(table.schema(), field.source_id, field.name)
    return source if name == "identity" else f"{name}({width}, {source})" if width else f"{name}s({source})"


def _source(table: Table, field: PartitionField) -> str:
    return table.schema().find_column_name(field.source_id) or field.name


def _catalogs(context: Context, cursor: Cursor) -> DataFrame:
    pattern = _pattern(cursor)
    found = {row[0] for row in context.spark.sql("SHOW CATALOGS").collect()} | {context.catalog.name}
    return context.rows("catalog string NOT NULL", [[name] for name in sorted(found) if _fits(name, pattern)])


def _tables(context: Context, cursor: Cursor) -> DataFrame:
    parts: tuple[str, ...] = ()
    if cursor.takes_one_of("IN", "FROM"):
        parts = cursor.names("a namespace")
    elif context.names.namespace:
        parts = context.names.namespace
    local = context.namespace(parts) if parts else None
    if local is None:
        return context.passed(cursor)
    pattern = _pattern(cursor)
    found = sorted(name[-1] for name in context.catalog.list_tables(local))
    return context.rows(_TABLE_KINDS, [(".".join(local), name, False) for name in found if _fits(name, pattern)])


def _extended(context: Context, cursor: Cursor) -> DataFrame:
    ahead = Cursor(cursor.statement, cursor.at + 2)
    named = ahead.names("a namespace") if ahead.takes_one_of("IN", "FROM") else context.names.namespace
    if not named or context.namespace(named) is None:
        return context.passed(cursor)
    raise UnsupportedFeature("SHOW TABLES IN … names the tables of a namespace, DESCRIBE EXTENDED says what one has")


def _views(context: Context, cursor: Cursor) -> DataFrame:
    parts = context.names.namespace
    if cursor.takes_one_of("IN", "FROM"):
        parts = cursor.names("a namespace")
    local = context.namespace(parts) if parts else None
    if local is None:
        return context.passed(cursor)
    pattern = _pattern(cursor)
    found = sorted(name[-1] for name in context.catalog.list_views(local))
    rows = [(".".join(local), name, False) for name in found if _fits(name, pattern)]
    temporary = [row for row in context.spark.sql("SHOW VIEWS").collect() if row.isTemporary and not row.namespace]
    rows += [("", row.viewName, True) for row in temporary if _fits(row.viewName, pattern)]
    return context.rows(_VIEW_KINDS, rows)


def _namespaces(context: Context, cursor: Cursor) -> DataFrame:
    parts = cursor.names("a catalog") if cursor.takes_one_of("IN", "FROM") else (context.catalog.name,)
    local = context.namespace(parts)
    if local is None:
        return context.passed(cursor)
    pattern = _pattern(cursor)
    found = sorted(".".join(name) for name in context.catalog.list_namespaces(local))
    return context.rows("namespace string NOT NULL", [[name] for name in found if _fits(name, pattern)])


def _namespace(context: Context, cursor: Cursor) -> DataFrame:
    cursor.takes("EXTENDED")
    parts = cursor.names("a namespace")
    local = context.namespace(parts)
    if not local:
        return context.passed(cursor)
    given = context.catalog.load_namespace_properties(local)
    rows = [("Catalog Name", context.catalog.name), ("Namespace Name", ".".join(local))]
    rows += [(key, value) for key, value in sorted(given.items())]
    return context.rows("info_name string NOT NULL, info_value string", rows)


def _columns(context: Context, cursor: Cursor) -> DataFrame:
    if not cursor.takes_one_of("IN", "FROM"):
        raise cursor.unexpected("IN or FROM")
    parts = cursor.names("the name of a table")
    if cursor.takes_one_of("IN", "FROM"):
        parts = (*cursor.names("a namespace"), parts[-1])
    table, view = context.table_or_view(parts)
    named = view if table is None else table
    if named is None:
        return context.passed(cursor)
    return context.rows("col_name string NOT NULL", [[field.name] for field in named.schema().fields])


def _properties(context: Context, cursor: Cursor) -> DataFrame:
    parts = cursor.names("the name of a table")
    table, view = context.table_or_view(parts)
    if view is not None:
        shown = {**dict(views.own_properties(view)), **views.reserved_properties(view)}
    elif table is not None:
        shown = shown_properties(table.metadata)
    else:
        return context.passed(cursor)
    if cursor.sees("("):
        inner, name = cursor.enclosed(), ".".join((context.catalog.name, *context.names.local(parts)))
        key = inner.rest().strip().strip("'\"`")
        value = shown.get(key, f"{'View' if table is None else 'Table'} {name} does not have property: {key}")
        return context.rows("key string NOT NULL, value string NOT NULL", [(key, value)])
    return context.rows("key string NOT NULL, value string NOT NULL", sorted(shown.items()))


def _pattern(cursor: Cursor) -> str | None:
    cursor.takes("LIKE")
    found = None if cursor.is_over else cursor.string("a pattern")
    cursor.expect_end()
    return found


def _fits(name: str, pattern: str | None) -> bool:
    """Whether a name fits a pattern of Spark's: ``*`` for anything, ``|`` between choices, in any case."""
    if pattern is None:
        return True
    return any(fnmatch.fnmatchcase(name.lower(), each.strip().lower()) for each in pattern.split("|"))
