"""Iceberg's types as Spark's, and back.

Spark has no UUID, no fixed-length binary and no nanoseconds: a ``uuid`` is its string, ``fixed`` is binary, a
nanosecond timestamp is the long of nanoseconds since the epoch. ``timestamp`` is ``TIMESTAMP_NTZ`` and ``timestamptz``
is ``TIMESTAMP``; ``geometry`` and ``geography`` are their WKB.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from icefield import Schema
from icefield import types as iceberg
from icefield.errors import InvalidArgument, UnsupportedFeature
from pyspark.sql import types as spark

# Spark 3.5 has neither type, and 4.0 has no time type: columns of a missing type are not supported.
TIME: type[spark.DataType] | None = getattr(spark, "TimeType", None)
VARIANT: type[spark.DataType] | None = getattr(spark, "VariantType", None)

_SIMPLE: dict[type[iceberg.IcebergType], spark.DataType] = {
    iceberg.BooleanType: spark.BooleanType(),
    iceberg.IntegerType: spark.IntegerType(),
    iceberg.LongType: spark.LongType(),
    iceberg.FloatType: spark.FloatType(),
    iceberg.DoubleType: spark.DoubleType(),
    iceberg.DateType: spark.DateType(),
    iceberg.TimestampType: spark.TimestampNTZType(),
    iceberg.TimestamptzType: spark.TimestampType(),
    iceberg.TimestampNanoType: spark.LongType(),
    iceberg.TimestamptzNanoType: spark.LongType(),
    iceberg.StringType: spark.StringType(),
    iceberg.UUIDType: spark.StringType(),
    iceberg.FixedType: spark.BinaryType(),
    iceberg.BinaryType: spark.BinaryType(),
    iceberg.GeometryType: spark.BinaryType(),
    iceberg.GeographyType: spark.BinaryType(),
    iceberg.UnknownType: spark.NullType(),
}
if TIME is not None:
    _SIMPLE[iceberg.TimeType] = TIME()  # of microseconds
if VARIANT is not None:
    _SIMPLE[iceberg.VariantType] = VARIANT()


def to_spark_schema(schema: Schema) -> spark.StructType:
    """An Iceberg schema as Spark's; a column's doc becomes its comment."""
    return _struct(schema.as_struct())


def to_spark_type(kind: iceberg.IcebergType) -> spark.DataType:
    """An Iceberg type as Spark's. Raises ``UnsupportedFeature`` for a type that Spark lacks."""
    if isinstance(kind, iceberg.StructType):
        return _struct(kind)
    if isinstance(kind, iceberg.ListType):
        return spark.ArrayType(to_spark_type(kind.element.field_type), not kind.element.required)
    if isinstance(kind, iceberg.MapType):
        key, value = to_spark_type(kind.key.field_type), to_spark_type(kind.value.field_type)
        return spark.MapType(key, value, not kind.value.required)
    if isinstance(kind, iceberg.DecimalType):
        return spark.DecimalType(kind.precision, kind.scale)
    found = _SIMPLE.get(type(kind))
    if found is None:
        raise UnsupportedFeature(f"this Spark has no type for {kind}; leave the column out with columns=[…]")
    return found


def from_spark_schema(schema: spark.StructType, *, optional: bool = False) -> Schema:
    """A Spark schema as Iceberg's, with ids from 1 on, for creating a table.

    ``optional``: every column, nested field, element and value may hold nulls, even if Spark's schema requires it.
    """
    if optional:
        schema = all_nullable(schema)
    numbers = iter(range(1, 2**31))
    reserved = [next(numbers) for _ in schema.fields]  # a level's ids come before the ids of nested fields
    return Schema(*(_field(field, number, numbers) for field, number in zip(schema.fields, reserved, strict=True)))


def comment_of(field: iceberg.NestedField) -> dict[str, str]:
    """The metadata of a column of Spark's: the doc of a field as its comment."""
    return {"comment": field.doc} if field.doc else {}


def all_nullable(kind: Any) -> Any:
    """A type of Spark with every part nullable."""
    if isinstance(kind, spark.StructType):
        fields = (spark.StructField(one.name, all_nullable(one.dataType), True, one.metadata) for one in kind.fields)
        return spark.StructType(list(fields))
    if isinstance(kind, spark.ArrayType):
        return spark.ArrayType(all_nullable(kind.elementType), True)
    if isinstance(kind, spark.MapType):
        return spark.MapType(all_nullable(kind.keyType), all_nullable(kind.valueType), True)
    return kind


def _struct(kind: iceberg.StructType) -> spark.StructType:
    fields = []
    for field in kind.fields:
        metadata = comment_of(field)
        fields.append(spark.StructField(field.name, to_spark_type(field.field_type), not field.required, metadata))
    return spark.StructType(fields)


def _field(field: spark.StructField, number: int, numbers: Iterator[int]) -> iceberg.NestedField:
    doc = (field.metadata or {}).get("comment")
    kind = _from_spark(field.dataType, numbers, field.name)
    return iceberg.NestedField(number, field.name, kind, required=_required(kind, field.nullable), doc=doc)


def _required(kind: iceberg.IcebergType, nullable: bool) -> bool:
    return not nullable and not isinstance(kind, iceberg.UnknownType)


def _from_spark(kind: spark.DataType, numbers: Iterator[int], name: str) -> iceberg.IcebergType:
    if isinstance(kind, spark.StructType):
        reserved = [next(numbers) for _ in kind.fields]
        fields = (_field(field, number, numbers) for field, number in zip(kind.fields, reserved, strict=True))
        return iceberg.StructType(*fields)
    if isinstance(kind, spark.ArrayType):
        number = next(numbers)
        element = _from_spark(kind.elementType, numbers, name)
        return iceberg.ListType(number, element, _required(element, kind.containsNull))
    if isinstance(kind, spark.MapType):
        key, value = next(numbers), next(numbers)
        made = (_from_spark(kind.keyType, numbers, name), _from_spark(kind.valueType, numbers, name))
        return iceberg.MapType(key, made[0], value, made[1], _required(made[1], kind.valueContainsNull))
    if isinstance(kind, spark.DecimalType):
        return iceberg.DecimalType(kind.precision, kind.scale)
    if isinstance(kind, spark.ByteType | spark.ShortType):
        return iceberg.IntegerType()
    found = _FROM_SPARK.get(type(kind))
    if found is None:
        raise InvalidArgument(f"Iceberg has no type for Spark's {kind.simpleString()} (column '{name}'); cast it first")
    return found


_FROM_SPARK: dict[type[spark.DataType], iceberg.IcebergType] = {
    spark.BooleanType: iceberg.BooleanType(),
    spark.IntegerType: iceberg.IntegerType(),
    spark.LongType: iceberg.LongType(),
    spark.FloatType: iceberg.FloatType(),
    spark.DoubleType: iceberg.DoubleType(),
    spark.DateType: iceberg.DateType(),
    spark.TimestampNTZType: iceberg.TimestampType(),
    spark.TimestampType: iceberg.TimestamptzType(),
    spark.StringType: iceberg.StringType(),
    spark.VarcharType: iceberg.StringType(),
    spark.CharType: iceberg.StringType(),
    spark.BinaryType: iceberg.BinaryType(),
    spark.NullType: iceberg.UnknownType(),
}
if TIME is not None:
    _FROM_SPARK[TIME] = iceberg.TimeType()
if VARIANT is not None:
    _FROM_SPARK[VARIANT] = iceberg.VariantType()
