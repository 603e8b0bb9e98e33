"""Descriptions of tables for Spark: columns with their defaults, partition fields and properties."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from icefield import Schema
from icefield.errors import UnsupportedFeature
from icefield.metadata import TableMetadata
from icefield.partitioning import PartitionField
from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

from icefield_spark.catalog.bridge import reply
from icefield_spark.sql.calls import UNITS
from icefield_spark.sql.defaults import constant_of, with_defaults
from icefield_spark.sql.properties import shown_properties, source_sql
from icefield_spark.types import from_spark_schema, to_spark_schema

# The names under which Spark keeps a column's default for new rows, and its default for existing rows.
_NEW_ROWS, _OLD_ROWS = "CURRENT_DEFAULT", "EXISTS_DEFAULT"
_OF_A_TABLE = "icefield.default"
"""That a column has its default in a table: Spark keeps it for the columns of a query, and of a table made of that."""
_SPARKS_NAMES = {unit: function for function, unit in UNITS.items()}


def described(
    name: tuple[str, ...],
    metadata: TableMetadata,
    schema: Schema,
    *,
    version: str,
    metadata_columns: list[dict[str, Any]],
    writable: bool,
    streams: bool,
    lineage: bool,
) -> str:
    """Everything that Spark asks about a table, at once."""
    columns, is_whole = _columns(schema)
    return reply(
        {
            "name": ".".join(name),
            "path": list(name),
            "id": str(metadata.table_uuid),
            "version": version,
            "schema": columns.jsonValue(),
            "partitioning": partitioning(metadata.schema(), metadata.spec().fields),
            "properties": _properties(metadata),
            "metadata_columns": metadata_columns,
            "writable": writable and is_whole,
            "streams": streams,
            "lineage": lineage,
        }
    )


def created_schema(spark: SparkSession, columns: spark_types.StructType) -> Schema:
    """The columns of a table that Spark asks to create, with their defaults; columns of a query have none."""
    stated = [field for field in columns.fields if _OF_A_TABLE not in field.metadata]
    given = {field.name: field.metadata[_NEW_ROWS] for field in stated if _NEW_ROWS in field.metadata}
    return with_defaults(spark, from_spark_schema(columns), given)


def _columns(schema: Schema) -> tuple[spark_types.StructType, bool]:
    """Columns with their defaults, and whether Spark can hold every default; otherwise nothing is written."""
    columns, is_whole = to_spark_schema(schema), True
    for column, field in zip(columns.fields, schema.fields, strict=True):
        if field.write_default is None:
            continue
        try:
            constant = constant_of(field)
        except UnsupportedFeature:
            is_whole = False
        else:
            column.metadata = {**column.metadata, _NEW_ROWS: constant, _OLD_ROWS: constant, _OF_A_TABLE: True}
    return columns, is_whole


def partitioning(schema: Schema, fields: Iterable[PartitionField]) -> list[dict[str, Any]]:
    """Partition fields as Spark's transforms of columns, without those of the transform void."""
    found = []
    for field in fields:
        name, _, width = str(field.transform).partition("[")
        if name == "void":
            continue
        made: dict[str, Any] = {
            "transform": _SPARKS_NAMES.get(name, name),
            "column": source_sql(schema, field.source_id, field.name),
        }
        if width:
            made["width"] = int(width.rstrip("]"))
        found.append(made)
    return found


def _properties(metadata: TableMetadata) -> dict[str, str]:
    return {**shown_properties(metadata), "provider": "iceberg", "location": metadata.location}
