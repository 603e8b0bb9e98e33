"""Defaults of columns, as constants of Spark's and as values of Iceberg's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from typing import Any

from icefield import Schema
from icefield import types as iceberg
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.types import NestedField
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import types as spark

from icefield_spark.quoting import constant, spelt_type
from icefield_spark.running import run_sql
from icefield_spark.types import to_spark_type

_AT_ONCE = 500
"""How many constants a query of Spark's computes."""


def value_of(session: SparkSession, expression: str, kind: spark.DataType) -> Any:
    """The value of a constant expression of Spark, cast to a type. Raises ``InvalidArgument`` if it is not constant."""
    try:
        made = run_sql(session, f"SELECT CAST(({expression}) AS {spelt_type(kind)})").collect()[0][0]
    except PySparkException as error:
        message = str(error).strip().splitlines()[0]
        raise InvalidArgument(f"{expression:.200} is no constant of type {kind.simpleString()}: {message}") from error
    return _in_utc(made, kind)


def values_of(session: SparkSession, strings: Sequence[str | None], kinds: Sequence[spark.DataType]) -> list[Any]:
    """Strings as values of Spark's types; None for a string that is not a value of its type."""
    made: list[Any] = []
    for start in range(0, len(strings), _AT_ONCE):
        pieces = [
            f"try_cast({'NULL' if string is None else constant(string)} AS {spelt_type(kind)})"
            for string, kind in zip(strings[start : start + _AT_ONCE], kinds[start : start + _AT_ONCE], strict=True)
        ]
        made += run_sql(session, f"SELECT {', '.join(pieces)}").collect()[0]
    return [_in_utc(value, kind) for value, kind in zip(made, kinds, strict=True)]


def _in_utc(value: Any, kind: spark.DataType) -> Any:
    """An instant with a time zone: Spark returns it as wall-clock time of the process, without a zone."""
    return value.astimezone(UTC) if isinstance(kind, spark.TimestampType) and value is not None else value


def with_defaults(session: SparkSession, schema: Schema, given: Mapping[str, str]) -> Schema:
    """The columns of a table that is to be created, with their defaults."""
    if not given:
        return schema
    fields: list[NestedField] = []
    for field in schema.fields:
        if field.name in given:
            value = value_of(session, given[field.name], to_spark_type(field.field_type))
            field = replace(field, initial_default=value, write_default=value)
        fields.append(field)
    return Schema(*fields)


def default_of(schema: Schema, path: tuple[str, ...], value: str) -> str:
    """A value that a statement gives a column; where that is DEFAULT, the column's default."""
    if value.strip().upper() != "DEFAULT":
        return value
    if len(path) > 1:
        raise UnsupportedFeature(f"'{'.'.join(path)}' has no default: only whole columns have one")
    return constant_of(schema.find_field(path))


def constant_of(field: NestedField) -> str:
    """The write default of a column, as Spark's expression of its type; a null if it has no default."""
    kind, value = field.field_type, field.write_default
    name = spelt_type(to_spark_type(kind))
    if value is None:
        return f"CAST(NULL AS {name})"
    match kind:
        case iceberg.BooleanType() | iceberg.IntegerType() | iceberg.LongType() | iceberg.DecimalType():
            return f"CAST('{value}' AS {name})"
        case iceberg.FloatType() | iceberg.DoubleType():
            return f"CAST('{value!r}' AS {name})"
        case iceberg.StringType():
            return constant(value)
        case iceberg.DateType():
            return f"date_from_unix_date({value})"
        case iceberg.TimestamptzType():
            return f"timestamp_micros({value}L)"
        case iceberg.BinaryType() | iceberg.FixedType():
            return f"X'{value.hex()}'"
    raise UnsupportedFeature(
        f"no constant of Spark's is the default of column '{field.name}', which is {kind}: give the column a value"
    )
