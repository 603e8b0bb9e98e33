"""The columns of a table that a Spark schema asks for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from icefield import Schema
from icefield import types as iceberg
from icefield.errors import InvalidArgument
from icefield.types import METADATA_COLUMNS
from pyspark.sql import types as spark

from icefield_spark.types import to_spark_schema


def selected_fields(schema: Schema, wanted: spark.StructType) -> tuple[Any, ...]:
    """The fields to read for a Spark schema: columns, parts of nested ones, metadata columns.

    A name means a column of exactly that name, dots and all.
    """
    names: list[Any] = []
    by_name = {field.name: field for field in schema.fields}
    for asked in wanted.fields:
        found = by_name.get(asked.name)
        if found is not None:
            names += _paths(found.field_type, asked.dataType, (asked.name,))
        elif asked.name in METADATA_COLUMNS:
            names.append(asked.name)
        else:
            raise InvalidArgument(
                f"the table has no column '{asked.name}'; it has {', '.join(list(by_name)[:20])}", column=asked.name
            )
    if not names:
        raise InvalidArgument("the schema names no column")
    return tuple(names)


def check_columns(projection: Schema, wanted: spark.StructType) -> None:
    """Raise ``InvalidArgument`` unless the columns read have the types that a Spark schema says.

    A required column of the table may be nullable in Spark's schema, but not the reverse.
    """
    _check_struct(to_spark_schema(projection), wanted, "")


def _paths(have: iceberg.IcebergType, wanted: spark.DataType, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The fields of a column that a Spark type asks for; the whole column if the two differ in form."""
    if isinstance(have, iceberg.StructType) and isinstance(wanted, spark.StructType) and wanted.fields:
        by_name = {field.name: field.field_type for field in have.fields}
        for asked in wanted.fields:
            found = by_name.get(asked.name)
            if found is None:
                raise InvalidArgument(f"column '{'.'.join(path)}' has no field '{asked.name}'", column=".".join(path))
            yield from _paths(found, asked.dataType, (*path, asked.name))
    elif isinstance(have, iceberg.ListType) and isinstance(wanted, spark.ArrayType):
        yield from _paths(have.element.field_type, wanted.elementType, (*path, "element"))
    elif isinstance(have, iceberg.MapType) and isinstance(wanted, spark.MapType):
        yield (*path, "key")
        yield from _paths(have.value.field_type, wanted.valueType, (*path, "value"))
    else:
        yield path


def _check(have: spark.DataType, wanted: spark.DataType, name: str) -> None:
    if isinstance(have, spark.StructType) and isinstance(wanted, spark.StructType):
        _check_struct(have, wanted, f"{name}.")
    elif isinstance(have, spark.ArrayType) and isinstance(wanted, spark.ArrayType):
        _check_null(have.containsNull, wanted.containsNull, f"{name}.element")
        _check(have.elementType, wanted.elementType, f"{name}.element")
    elif isinstance(have, spark.MapType) and isinstance(wanted, spark.MapType):
        _check(have.keyType, wanted.keyType, f"{name}.key")
        _check_null(have.valueContainsNull, wanted.valueContainsNull, f"{name}.value")
        _check(have.valueType, wanted.valueType, f"{name}.value")
    elif have != wanted:
        raise InvalidArgument(f"column '{name}' is {have.simpleString()}, not {wanted.simpleString()}", column=name)


def _check_struct(have: spark.StructType, wanted: spark.StructType, prefix: str) -> None:
    by_name = {field.name: field for field in have.fields}
    for asked in wanted.fields:
        found = by_name[asked.name]
        _check_null(found.nullable, asked.nullable, prefix + asked.name)
        _check(found.dataType, asked.dataType, prefix + asked.name)


def _check_null(may_be: bool, may_be_said: bool, name: str) -> None:
    if may_be and not may_be_said:
        raise InvalidArgument(f"column '{name}' may hold nulls in the table and is said not to", column=name)
