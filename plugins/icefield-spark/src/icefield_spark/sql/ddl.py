"""Creating and dropping tables and namespaces."""

from __future__ import annotations

from dataclasses import replace as replace_fields
from typing import Any

from icefield import Catalog, Schema
from icefield.abc import CatalogAbility
from icefield.errors import (
    InvalidArgument,
    NamespaceExists,
    NoSuchNamespace,
    NoSuchTable,
    TableExists,
    UnsupportedFeature,
)
from icefield.writing import WriteContext
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from icefield_spark.executors import for_executors
from icefield_spark.missing import no_table
from icefield_spark.sql import terms, views
from icefield_spark.sql.columns import (
    check_distinct,
    check_partition,
    column_of,
    equal_to,
    partition_of,
    spelling_of,
)
from icefield_spark.sql.context import Context
from icefield_spark.sql.defaults import with_defaults
from icefield_spark.sql.parsing import Cursor
from icefield_spark.types import from_spark_schema
from icefield_spark.writing import BUFFER_BYTES, check_fits, stage

_OURS = ("ICEBERG", "ICEFIELD")
_FORMATS = ("PARQUET", "ORC", "AVRO")
SHORT = {"bucket": "bucket", "truncate": "trunc"}
"""What Java names a field after where a table is created: its column and this, without the number."""
_CREATE, _REPLACE, _CREATE_OR_REPLACE = "CREATE", "REPLACE", "CREATE OR REPLACE"


def create(context: Context, cursor: Cursor) -> DataFrame:
    """``CREATE TABLE``, ``CREATE NAMESPACE`` and ``CREATE VIEW``; the cursor stands after CREATE."""
    replaces = cursor.takes("OR", "REPLACE")
    if cursor.takes_one_of("NAMESPACE", "DATABASE", "SCHEMA"):
        return _create_namespace(context, cursor)
    if cursor.takes("VIEW"):
        return views.create(context, cursor, replaces=replaces)
    external = cursor.takes("EXTERNAL")
    if not cursor.takes("TABLE"):
        return context.passed(cursor)
    return _create_table(context, cursor, _CREATE_OR_REPLACE if replaces else _CREATE, external=external)


def replace(context: Context, cursor: Cursor) -> DataFrame:
    """``REPLACE TABLE``; the cursor stands after REPLACE."""
    cursor.expect("TABLE")
    return _create_table(context, cursor, _REPLACE)


def _create_table(context: Context, cursor: Cursor, how: str, *, external: bool = False) -> DataFrame:
    if_not_exists = cursor.takes("IF", "NOT", "EXISTS")
    parts = cursor.names("the name of a table")
    if cursor.takes("LIKE"):
        return _create_like(context, cursor, parts, if_not_exists)
    columns: StructType | None = None
    defaults: dict[str, str] = {}
    if cursor.sees("("):
        columns, defaults = terms.column_list(cursor)
    options: dict[str, Any] = {"properties": {}}
    provider = None
    partitions: list[tuple[str, ...]] = []
    while not cursor.is_over and not cursor.sees("AS") and not cursor.sees("SELECT") and not cursor.sees("WITH"):
        if cursor.takes("USING"):
            provider = cursor.name("the name of a format").upper()
        elif cursor.takes("PARTITIONED", "BY"):
            typed, partitions = _partitioning(cursor.enclosed())
            if typed:
                columns = StructType([*(columns or StructType()).fields, *typed.fields])
        elif cursor.takes("TBLPROPERTIES"):
            options["properties"].update(terms.properties(cursor))
        elif cursor.takes("LOCATION"):
            options["location"] = cursor.string("a location")
        elif cursor.takes("COMMENT"):
            options["properties"]["comment"] = cursor.string("a comment")
        elif not context.names.is_place(parts):
            return context.passed(cursor)
        else:
            raise cursor.unexpected("USING, PARTITIONED BY, TBLPROPERTIES, LOCATION, COMMENT or AS")
    if provider is not None and provider not in _OURS:
        if not context.names.is_place(parts):
            return context.passed(cursor)
        if provider not in _FORMATS:
            raise UnsupportedFeature(
                f"USING {provider.lower()} makes no table of the catalog '{context.catalog.name}', which has the "
                f"namespace: take iceberg, parquet, orc or avro, or name it spark_catalog.{parts[-2]}.{parts[-1]}"
            )
        options["properties"].setdefault("write.format.default", provider.lower())
    if not context.names.is_place(parts):
        if provider is None:
            return context.passed(cursor)
        raise NoSuchNamespace(f"no namespace {'.'.join(parts[:-1])} in the catalog '{context.catalog.name}'")
    if external and "location" not in options:
        raise InvalidArgument(f"CREATE EXTERNAL TABLE takes a LOCATION: {'.'.join(parts)} has none")
    name = context.names.local(parts)
    there = context.catalog.table_exists(name)
    if how == _REPLACE and not there:
        raise no_table(context.catalog, name)
    if how == _CREATE and there:
        if if_not_exists:
            return context.nothing()
        raise TableExists(f"table {'.'.join(name)} exists already in catalog '{context.catalog.name}'", table=name)
    begin = context.catalog.replace_table_transaction if there else context.catalog.create_table_transaction
    if cursor.is_over:
        if columns is None:
            raise InvalidArgument("a table needs columns: CREATE TABLE t (id bigint, ...), or AS SELECT")
        check_distinct(context, columns.names)
        made = with_defaults(context.spark, from_spark_schema(columns), defaults)
        partitions = _spelt(context, made, partitions)
        with begin(name, made, partition_spec=partitions, **options):
            return context.nothing()
    cursor.takes("AS")
    if columns is not None:
        raise InvalidArgument("a table that is created AS SELECT has the columns of the query; leave out the others")
    frame = context.queries.frame(cursor.rest())
    check_distinct(context, frame.schema.names)
    made = from_spark_schema(frame.schema, optional=True)
    partitions = _spelt(context, made, partitions)
    with begin(name, made, partition_spec=partitions, **options) as transaction:
        written = WriteContext.from_metadata(transaction.shape, transaction.context.io)
        task = for_executors(replace_fields(written, workers=1, buffer_bytes=BUFFER_BYTES))
        check_fits(task, frame.schema)
        stage(transaction, context.write(frame, task, transaction), None)
    return context.nothing()


def _create_like(context: Context, cursor: Cursor, parts: tuple[str, ...], if_not_exists: bool) -> DataFrame:
    model = context.table(cursor.names("the name of a table"))
    if model is None or not context.names.is_place(parts):
        return context.passed(cursor)
    cursor.expect_end()
    name = context.names.local(parts)
    if if_not_exists and context.catalog.table_exists(name):
        return context.nothing()
    context.catalog.create_table(
        name,
        model.schema(),
        partition_spec=model.spec(),
        sort_order=model.sort_order(),
        properties={**model.properties, "format-version": model.format_version},
    )
    return context.nothing()


def drop(context: Context, cursor: Cursor) -> DataFrame:
    """``DROP TABLE``, ``DROP NAMESPACE`` and ``DROP VIEW``; the cursor stands after DROP."""
    if cursor.takes_one_of("NAMESPACE", "DATABASE", "SCHEMA"):
        return _drop_namespace(context, cursor)
    if cursor.takes("VIEW"):
        return views.drop(context, cursor)
    if not cursor.takes("TABLE"):
        return context.passed(cursor)
    if_exists = cursor.takes("IF", "EXISTS")
    parts = cursor.names("the name of a table")
    purge = cursor.takes("PURGE")
    cursor.expect_end()
    table = context.table(parts)
    if table is not None:
        context.catalog.drop_table(table.name(), purge=purge)
        return context.nothing()
    if not context.names.is_known(parts):
        return context.passed(cursor)
    if if_exists:
        return context.nothing()
    if context.names.view(parts) is not None:
        raise NoSuchTable(f"{'.'.join(parts)} is a view, which DROP VIEW drops", table=parts)
    raise no_table(context.catalog, context.names.local(parts))


def truncate(context: Context, cursor: Cursor) -> DataFrame:
    """``TRUNCATE TABLE``; the cursor stands after TRUNCATE."""
    cursor.expect("TABLE")
    parts = cursor.names("the name of a table")
    table = context.table(parts)
    if table is None:
        return context.passed(cursor)
    given = partition_of(cursor)
    cursor.expect_end()
    schema = table.schema()
    values = {column_of(context, schema, name): value for name, value in given.items() if value is not None}
    check_partition(context, table, values)
    table.delete(equal_to(context, schema, values))
    return context.nothing()


def _create_namespace(context: Context, cursor: Cursor) -> DataFrame:
    if_not_exists = cursor.takes("IF", "NOT", "EXISTS")
    parts = cursor.names("a namespace")
    if parts[0] == "spark_catalog":
        return context.passed(cursor)
    local = parts[1:] if context.names.is_catalog(parts[0]) else parts
    given: dict[str, str] = {}
    while not cursor.is_over:
        if cursor.takes("COMMENT"):
            given["comment"] = cursor.string()
        elif cursor.takes("LOCATION"):
            given["location"] = cursor.string()
        elif cursor.takes("WITH"):
            if not (cursor.takes("DBPROPERTIES") or cursor.takes("PROPERTIES")):
                raise cursor.unexpected("DBPROPERTIES")
            given.update(terms.properties(cursor))
        else:
            raise cursor.unexpected("COMMENT, LOCATION or WITH DBPROPERTIES")
    try:
        context.catalog.create_namespace(local, given)
    except NamespaceExists:
        if not if_not_exists:
            raise
    return context.nothing()


def _drop_namespace(context: Context, cursor: Cursor) -> DataFrame:
    if_exists = cursor.takes("IF", "EXISTS")
    parts = cursor.names("a namespace")
    cascade = cursor.takes_one_of("CASCADE", "RESTRICT") == "CASCADE"
    cursor.expect_end()
    local = context.namespace(parts)
    if local is None:
        if not context.names.is_catalog(parts[0]):
            return context.passed(cursor)
        if if_exists:
            return context.nothing()
        raise NoSuchNamespace(f"no namespace {'.'.join(parts)}")
    if cascade:
        drop_all(context.catalog, local)
    context.catalog.drop_namespace(local)
    return context.nothing()


def drop_all(catalog: Catalog, namespace: tuple[str, ...]) -> None:
    """Drop what is in a namespace. Files of tables stay, as with DROP TABLE."""
    for inner in catalog.list_namespaces(namespace) if _nests(catalog) else ():
        drop_all(catalog, inner)
        catalog.drop_namespace(inner)
    for name in catalog.list_tables(namespace):
        catalog.drop_table(name)
    for name in catalog.list_views(namespace) if CatalogAbility.VIEWS in catalog.backend.abilities else ():
        catalog.drop_view(name)


def _nests(catalog: Catalog) -> bool:
    return CatalogAbility.NESTED_NAMESPACES in catalog.backend.abilities


def _partitioning(cursor: Cursor) -> tuple[StructType | None, list[tuple[str, ...]]]:
    """Take what a table is partitioned by: terms, or columns with their types, which then are columns of it, too."""
    first = Cursor(cursor.statement, cursor.at, cursor.end)
    first.names("a column or a transform")
    if first.is_over or first.sees(",") or first.sees("("):
        return None, [_partition_field(item) for item in cursor.items()]
    columns, defaults = terms.column_list(cursor)
    if defaults:
        raise InvalidArgument("a column in PARTITIONED BY has no DEFAULT; name it among the columns")
    return columns, [(name, "identity") for name in columns.names]


def _spelt(context: Context, schema: Schema, fields: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Terms of a partition spec with columns as the schema spells them, and fields named after them."""
    made = []
    for column, transform, *names in fields:
        own = spelling_of(context, schema, column)
        made.append((own, transform, *(own + name[len(column) :] for name in names)))
    return made


def _partition_field(item: Cursor) -> tuple[str, ...]:
    """Take a term; its field is named as Java names it where a table is created: without a bucket's number."""
    column, transform = terms.term(item)
    item.expect_end()
    kind = transform.split("[")[0]
    return (column, transform, f"{column}_{SHORT[kind]}") if kind in SHORT else (column, transform)
