"""Groups of Parquet files as data frames of Spark's own reader, under the columns of the table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import Any

from icefield.expressions import AlwaysTrue
from icefield.types import NestedField, UUIDType
from pyspark.sql import Column, DataFrame, SparkSession, functions
from pyspark.sql import types as spark_types

from icefield_spark.jvm import is_connected, jvm_class, seq
from icefield_spark.quoting import quoted
from icefield_spark.roads.choosing import (
    FILE,
    LAST_UPDATED,
    OF_FILES,
    PARTITION,
    POS,
    ROW_ID,
    RelationFiles,
    ScanColumns,
)
from icefield_spark.roads.columns import FileColumn, children_of
from icefield_spark.roads.conditions import condition
from icefield_spark.roads.literals import literal
from icefield_spark.roads.reach import OPTIONS
from icefield_spark.settings import at_least
from icefield_spark.types import all_nullable, comment_of, to_spark_type

_LISTED_BY_JOB = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_NO_VALUE_SETS = {"parquet.filter.dictionary.enabled": "false", "parquet.filter.bloom.enabled": "false"}
_NO_BOUNDS = {"parquet.filter.stats.enabled": "false", "parquet.filter.columnindex.enabled": "false"}
_FLOATS = (spark_types.FloatType, spark_types.DoubleType)
_MANY = 64
_POSITION = "_metadata.row_index"
_UUID_PARTS = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))


def lane_frame(spark: SparkSession, wanted: ScanColumns, group: RelationFiles, order: list[str]) -> DataFrame:
    """The rows of a group's files that match the filter. ``order``: the names of the columns in the wanted order."""
    held = group.held.values()
    asked = {each.asked.name: each.asked for each in held}
    schema = spark_types.StructType(list(asked.values()))
    # The driver looks files up itself: a Spark job for it takes seconds.
    with at_least(spark, _LISTED_BY_JOB, len(group.paths), 32):
        reader = spark.read.schema(schema).options(**_options(list(asked.values()), group.has_nans, group.is_old))
        frame = _parquet(spark, reader, group.paths)
    if schema != all_nullable(schema):
        frame = _as_required(spark, frame, schema)
    made = {column.field_id: _made(column, group) for column in wanted.fields}
    conditions = []
    if not isinstance(wanted.row_filter, AlwaysTrue):
        tops = {column.name: made[column.field_id] for column in wanted.fields}
        conditions.append(condition(wanted.row_filter, lambda path: reduce(Column.getField, path[1:], tops[path[0]])))
    if group.deleted is not None:  # after the filter, which leaves fewer rows to look up
        conditions.append(group.deleted.is_kept(spark))
    if conditions:
        frame = frame.where(reduce(and_, conditions))
    columns = {column.name: _named(column, made[column.field_id], group) for column in wanted.columns}
    return frame.select([columns[name] for name in order])


def _parquet(spark: SparkSession, reader: Any, paths: list[str]) -> DataFrame:
    """The frame of files. PySpark sends a list to the JVM item by item, a string at once."""
    if is_connected(spark) or len(paths) < _MANY:
        found: DataFrame = reader.parquet(*paths)
        return found
    listed = jvm_class(spark, "java.util.regex.Pattern").compile("\0").split("\0".join(paths))
    return DataFrame(reader._jreader.parquet(listed), spark)


def _as_required(spark: SparkSession, frame: DataFrame, schema: spark_types.StructType) -> DataFrame:
    """A relation of files under columns that are not null where the schema says so, as their footers do.

    Spark's readers make every column nullable, and no function of its API undoes this.
    """
    relation = frame._jdf.queryExecution().analyzed()
    fields = jvm_class(spark, "org.apache.spark.sql.types.DataType").fromJson(schema.json()).fields()
    columns = []
    for at, new in enumerate(fields):
        old = relation.output().apply(at)
        columns.append(
            old.copy(old.name(), new.dataType(), new.nullable(), old.metadata(), old.exprId(), old.qualifier())
        )
    parts = [relation.productElement(at) for at in range(relation.productArity())]
    parts[1] = seq(spark, columns)
    dataset = jvm_class(spark, frame._jdf.getClass().getName())
    return DataFrame(dataset.ofRows(frame._jdf.sparkSession(), relation.copy(*parts)), spark)


def _options(fields: Sequence[spark_types.StructField], has_nans: bool, is_old: bool) -> dict[str, str]:
    found = dict(OPTIONS)
    # Spark converts dates in pushed filters by Java's old calendar, which lacks 5 to 14 October 1582.
    if is_old:
        return found | _NO_VALUE_SETS | _NO_BOUNDS
    # Parquet's dictionaries and Bloom filters distinguish -0.0 from 0.0, which SQL treats as equal: a filter on zero
    # would leave out row groups (seen with Spark 4.3).
    if any(_holds_floats(each.dataType) for each in fields):
        found |= _NO_VALUE_SETS
    # Bounds in Parquet leave NaN out, which for Spark is greater than every number. ``nanvl`` in ``_made`` keeps
    # filters on whole columns away from Parquet, and this option keeps filters on fields of structs away.
    if has_nans and any(_holds_floats(each.dataType) for each in fields if not isinstance(each.dataType, _FLOATS)):
        found |= _NO_BOUNDS
    return found


def _holds_floats(kind: spark_types.DataType) -> bool:
    if isinstance(kind, spark_types.StructType):
        return any(_holds_floats(each.dataType) for each in kind.fields)
    if isinstance(kind, spark_types.MapType):
        return _holds_floats(kind.keyType) or _holds_floats(kind.valueType)
    if isinstance(kind, spark_types.ArrayType):
        return _holds_floats(kind.elementType)
    return isinstance(kind, _FLOATS)


def _made(column: NestedField, group: RelationFiles) -> Column:
    """A column of the table, computed from the columns of the files."""
    found = group.held.get(column.field_id)
    if found is not None and column.field_id not in OF_FILES:
        made = _held(found, column)
        return functions.nanvl(made, functions.lit(math.nan).cast(found.wanted)) if _hides_nans(found, group) else made
    made = _known(column, found, group)
    # Spark sees that ``made`` is never null, which would be wrong for an optional column. It drops this condition
    # later.
    return made if column.required else functions.when(functions.lit(True), made)


def _hides_nans(found: FileColumn, group: RelationFiles) -> bool:
    return group.has_nans and isinstance(found.wanted, _FLOATS)


def _named(column: NestedField, made: Column, group: RelationFiles) -> Column:
    """A column under its name and comment. A column with its name in the files stays: see docs/internals/spark.md."""
    comment = comment_of(column)
    return made if not comment and _is_named(column, group) else made.alias(column.name, metadata=comment)


def _is_named(column: NestedField, group: RelationFiles) -> bool:
    """Whether files hold a column under its own name and type, so that it is read as it is."""
    found = group.held.get(column.field_id)
    if found is None or column.field_id in OF_FILES or _hides_nans(found, group):
        return False
    return found.asked.name == column.name and found.asked.dataType == found.wanted


def _known(column: NestedField, found: FileColumn | None, group: RelationFiles) -> Column:
    """A column that is not simply read: it is constant for a file, or computed from the positions of rows."""
    if column.field_id == FILE:
        return _location(*group.prefixes)
    if column.field_id == POS:
        return functions.expr(f"coalesce({_POSITION}, -1L)")  # which is never null
    constant = group.constants[column.field_id]
    if column.field_id == PARTITION:
        return _partition(column, constant)
    if column.field_id in (ROW_ID, LAST_UPDATED):
        return _lineage(column, found, constant)
    return literal(column.field_type, constant)


def _location(of_table: str, of_spark: str) -> Column:
    """The location of a row's file as the table spells it."""
    spelt, rest = "_metadata.file_path", f"substring(_metadata.file_path, {len(of_spark) + 1})"
    if of_spark == "file://":  # which Spark shortens
        rest = f"IF(startswith({spelt}, 'file:///'), {rest}, substring({spelt}, {len('file:') + 1}))"
    return functions.concat(functions.lit(of_table), functions.expr(rest))


def _partition(column: NestedField, values: tuple[Any, ...]) -> Column:
    children = zip(children_of(column.field_type), values, strict=True)
    made = functions.struct(*(literal(child.field_type, value).alias(child.name) for child, value in children))
    return made.cast(to_spark_type(column.field_type))


def _held(found: FileColumn, column: NestedField) -> Column:
    read = functions.col(quoted(found.asked.name))
    if isinstance(column.field_type, UUIDType):
        digits = functions.lower(functions.hex(read))
        parts = [functions.substring(digits, start, length) for start, length in _UUID_PARTS]
        return reduce(lambda left, right: functions.concat(left, functions.lit("-"), right), parts)
    return read if found.asked.dataType == found.wanted else read.cast(found.wanted)


def _lineage(column: NestedField, found: FileColumn | None, inherited: Any) -> Column:
    if inherited is None:
        return functions.lit(None).cast("bigint")
    made = functions.expr(f"{_POSITION} + {inherited}L" if column.field_id == ROW_ID else f"{inherited[0]}L")
    return made if found is None else functions.coalesce(_held(found, column), made)
