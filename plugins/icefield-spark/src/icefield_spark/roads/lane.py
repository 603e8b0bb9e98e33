"""Groups of Parquet files as data frames of Spark's own reader, under the columns of the table."""

# See docs/decisions/0096.

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any

from icefield.expressions import AlwaysTrue
from icefield.types import NestedField, UUIDType
from pyspark.sql import Column, DataFrame, SparkSession, functions
from pyspark.sql import types as spark_types

from icefield_spark.roads.choosing import FILE, LAST_UPDATED, PARTITION, POS, ROW_ID, Group, Wanted
from icefield_spark.roads.columns import Held, children_of
from icefield_spark.roads.conditions import condition
from icefield_spark.roads.literals import literal
from icefield_spark.roads.reach import OPTIONS

_LISTED_BY_JOB = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_NO_VALUE_SETS = {"parquet.filter.dictionary.enabled": "false", "parquet.filter.bloom.enabled": "false"}
_WHOLE = 1 << 30
_POSITION = "_metadata.row_index"
_UUID_PARTS = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))


def lane_frame(spark: SparkSession, wanted: Wanted, group: Group, order: list[str]) -> DataFrame:
    """The rows of a group's files that match the filter. ``order``: the names of the columns, as they are wanted."""
    held = group.held.values()
    asked = {each.asked.name: each.asked for each in held}
    with _listed_at_once(spark, len(group.paths)):
        reader = spark.read.schema(spark_types.StructType(list(asked.values()))).options(**_options(asked.values()))
        frame = reader.parquet(*group.paths)
    made = {column.field_id: _made(column, group) for column in wanted.fields}
    if not isinstance(wanted.row_filter, AlwaysTrue):
        tops = {column.name: made[column.field_id] for column in wanted.fields}
        frame = frame.where(condition(wanted.row_filter, lambda path: reduce(Column.getField, path[1:], tops[path[0]])))
    columns = {column.name: made[column.field_id].alias(column.name) for column in wanted.columns}
    return frame.select([columns[name] for name in order])


def _options(fields: Iterable[spark_types.StructField]) -> dict[str, str]:
    # Parquet's dictionaries and Bloom filters tell -0.0 from 0.0, which for SQL are equal: a filter on zero would leave
    # out row groups (seen with Spark 4.3).
    return OPTIONS if not any(_holds_floats(each.dataType) for each in fields) else {**OPTIONS, **_NO_VALUE_SETS}


def _holds_floats(kind: spark_types.DataType) -> bool:
    if isinstance(kind, spark_types.StructType):
        return any(_holds_floats(each.dataType) for each in kind.fields)
    if isinstance(kind, spark_types.MapType):
        return _holds_floats(kind.keyType) or _holds_floats(kind.valueType)
    if isinstance(kind, spark_types.ArrayType):
        return _holds_floats(kind.elementType)
    return isinstance(kind, spark_types.FloatType | spark_types.DoubleType)


def _made(column: NestedField, group: Group) -> Column:
    """A column of the table out of what the files have."""
    found = group.held.get(column.field_id)
    if column.field_id == FILE:
        return _location(*group.prefixes)
    if column.field_id == POS:
        return functions.col(_POSITION)
    if column.field_id == PARTITION:
        return _partition(column, group.constants[column.field_id])
    if column.field_id in (ROW_ID, LAST_UPDATED):
        return _lineage(column, found, group.constants[column.field_id])
    if found is None:
        return literal(column.field_type, group.constants[column.field_id])
    return _held(found, column)


def _location(of_table: str, of_spark: str) -> Column:
    """The location of a row's file as the table spells it."""
    spelt = functions.col("_metadata.file_path")
    rest = functions.substring(spelt, len(of_spark) + 1, _WHOLE)
    if of_spark == "file://":  # which Spark shortens
        rest = functions.when(spelt.startswith("file:///"), rest).otherwise(
            functions.substring(spelt, len("file:") + 1, _WHOLE)
        )
    return functions.concat(functions.lit(of_table), rest)


def _partition(column: NestedField, values: tuple[Any, ...]) -> Column:
    children = zip(children_of(column.field_type), values, strict=True)
    return functions.struct(*(literal(child.field_type, value).alias(child.name) for child, value in children))


def _held(found: Held, column: NestedField) -> Column:
    read = functions.col(_quoted(found.asked.name))
    if isinstance(column.field_type, UUIDType):
        digits = functions.lower(functions.hex(read))
        parts = [functions.substring(digits, start, length) for start, length in _UUID_PARTS]
        return reduce(lambda left, right: functions.concat(left, functions.lit("-"), right), parts)
    return read if _nullable(found.asked.dataType) == _nullable(found.wanted) else read.cast(_nullable(found.wanted))


def _lineage(column: NestedField, found: Held | None, inherited: Any) -> Column:
    null = functions.lit(None).cast("bigint")
    if inherited is None:
        return null
    stored = null if found is None else _held(found, column)
    if column.field_id == ROW_ID:
        return functions.coalesce(stored, functions.col(_POSITION) + functions.lit(inherited).cast("bigint"))
    return functions.coalesce(stored, functions.lit(inherited[0]).cast("bigint"))


def _nullable(kind: spark_types.DataType) -> spark_types.DataType:
    """A type of which every part may be null, as those of files are for Spark."""
    if isinstance(kind, spark_types.StructType):
        fields = [spark_types.StructField(each.name, _nullable(each.dataType)) for each in kind.fields]
        return spark_types.StructType(fields)
    if isinstance(kind, spark_types.ArrayType):
        return spark_types.ArrayType(_nullable(kind.elementType))
    if isinstance(kind, spark_types.MapType):
        return spark_types.MapType(_nullable(kind.keyType), _nullable(kind.valueType))
    return kind


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def _listed_at_once(spark: SparkSession, files: int) -> Iterator[None]:
    """Let the driver look files up itself: a Spark job for it takes seconds."""
    before = spark.conf.get(_LISTED_BY_JOB, None)
    if files <= int(before or 32):
        yield
        return
    spark.conf.set(_LISTED_BY_JOB, str(files))
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_LISTED_BY_JOB)
        else:
            spark.conf.set(_LISTED_BY_JOB, before)
