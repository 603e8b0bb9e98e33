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

from icefield_spark.quoting import quoted
from icefield_spark.roads.choosing import (
    LAST_UPDATED,
    OF_FILES,
    PARTITION,
    POS,
    ROW_ID,
    ScanColumns,
)
from icefield_spark.roads.columns import FileColumn, children_of
from icefield_spark.roads.conditions import condition
from icefield_spark.roads.groups import RelationFiles
from icefield_spark.roads.literals import in_json, literal
from icefield_spark.roads.reach import OPTIONS
from icefield_spark.roads.relations import relation_of, takes_constants
from icefield_spark.settings import at_least
from icefield_spark.types import comment_of, to_spark_type

_LISTED_BY_JOB = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_NO_VALUE_SETS = {"parquet.filter.dictionary.enabled": "false", "parquet.filter.bloom.enabled": "false"}
_NO_BOUNDS = {"parquet.filter.stats.enabled": "false", "parquet.filter.columnindex.enabled": "false"}
_FLOATS = (spark_types.FloatType, spark_types.DoubleType)
_POSITION = "_metadata.row_index"
_UUID_PARTS = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))


def lane_frame(spark: SparkSession, wanted: ScanColumns, group: RelationFiles, order: list[str]) -> DataFrame:
    """The rows of a group's files that match the filter. ``order``: the names of the columns in the wanted order."""
    held = group.held.values()
    schema = spark_types.StructType(list({each.asked.name: each.asked for each in held}.values()))
    constants = _Constants(group, wanted, schema)
    frame = _relation(spark, group, schema, constants)
    made = {column.field_id: _made(column, group, constants) for column in wanted.fields}
    conditions = []
    if not isinstance(wanted.row_filter, AlwaysTrue):
        tops = {column.name: made[column.field_id] for column in wanted.fields}
        conditions.append(condition(wanted.row_filter, lambda path: reduce(Column.getField, path[1:], tops[path[0]])))
    if group.deleted is not None:  # after the filter, which leaves fewer rows to look up
        conditions.append(group.deleted.is_kept(spark, constants.start))
    if conditions:
        frame = frame.where(reduce(and_, conditions))
    columns = {column.name: _named(column, made[column.field_id], group) for column in wanted.columns}
    return frame.select([columns[name] for name in order])


class _Constants:
    """The columns of a relation that are constant in each file, but not the same in all."""

    def __init__(self, group: RelationFiles, wanted: ScanColumns, held: spark_types.StructType) -> None:
        varying = [each for each in wanted.fields if each.field_id in group.constants and group.varies(each.field_id)]
        mark = "_"
        while any(name.lower().startswith(mark) for name in held.names):
            mark += "_"
        self._names = {each.field_id: f"{mark}{at}" for at, each in enumerate(varying)}
        self.start = f"{mark}start"
        fields = [
            spark_types.StructField(self._names[each.field_id], to_spark_type(each.field_type), not each.required)
            for each in varying
        ]
        values = [[in_json(each.field_type, value) for value in group.constants[each.field_id]] for each in varying]
        if group.deleted is not None:
            fields.append(spark_types.StructField(self.start, spark_types.IntegerType(), False))
            values.append(list(map(group.deleted.start, (task.file.file_path for task in group.tasks))))
        self.schema = spark_types.StructType(fields)
        self.values = list(zip(*values, strict=True)) if values else [()] * len(group.paths)

    def name(self, field_id: int) -> str | None:
        """The name of the column with a field's values; None if they are the same in all files."""
        return self._names.get(field_id)


def _relation(
    spark: SparkSession, group: RelationFiles, schema: spark_types.StructType, constants: _Constants
) -> DataFrame:
    options = _options(schema.fields, group.has_nans, group.is_old)
    if takes_constants(spark):
        files = [
            (path, task.file.file_size_in_bytes, values)
            for path, task, values in zip(group.paths, group.tasks, constants.values, strict=True)
        ]
        return relation_of(spark, schema, constants.schema, options, files)
    # The driver looks files up itself: a Spark job for it takes seconds.
    with at_least(spark, _LISTED_BY_JOB, len(group.paths), 32):
        return spark.read.schema(schema).options(**options).parquet(*group.paths)


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


def _made(column: NestedField, group: RelationFiles, constants: _Constants) -> Column:
    """A column of the table, computed from the columns of the files."""
    found = group.held.get(column.field_id)
    if found is not None and column.field_id not in OF_FILES:
        made = _held(found, column)
        return functions.nanvl(made, functions.lit(math.nan).cast(found.wanted)) if _hides_nans(found, group) else made
    made = _known(column, found, group, constants.name(column.field_id))
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


def _known(column: NestedField, found: FileColumn | None, group: RelationFiles, name: str | None) -> Column:
    """A column that is not simply read: it is constant for a file, or computed from the positions of rows.

    ``name``: of the relation's column with the values of the files, if these differ.
    """
    if column.field_id == POS:
        return functions.expr(f"coalesce({_POSITION}, -1L)")  # which is never null
    constant = group.constants[column.field_id][0]
    if column.field_id in (ROW_ID, LAST_UPDATED):
        same = "NULL" if constant is None else f"{constant}L"
        return _lineage(column, found, same if name is None else quoted(name))
    if name is not None:
        return functions.expr(quoted(name))
    if column.field_id == PARTITION:
        return _partition(column, constant)
    return literal(column.field_type, constant)


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


def _lineage(column: NestedField, found: FileColumn | None, inherited: str) -> Column:
    made = functions.expr(f"CAST({inherited} AS BIGINT)" + (f" + {_POSITION}" if column.field_id == ROW_ID else ""))
    return made if found is None else functions.coalesce(_held(found, column), made)
