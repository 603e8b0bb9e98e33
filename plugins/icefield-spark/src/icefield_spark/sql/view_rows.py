"""The rows of a view: what its query may be, and its columns as the view states them."""

# See docs/decisions/0140.

from __future__ import annotations

from typing import Final

from icefield import View
from icefield.errors import InvalidArgument
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as functions
from pyspark.sql import types as spark
from sqlglot import exp

from icefield_spark.types import to_spark_schema

DIALECT: Final = "spark"

_WIDER: Final = (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType, spark.FloatType, spark.DoubleType)
_DIGITS: Final[dict[type[spark.DataType], int]] = {
    spark.ByteType: 3,
    spark.ShortType: 5,
    spark.IntegerType: 10,
    spark.LongType: 20,
}


def check_query(tree: exp.Expr, name: str) -> None:
    """Raise ``InvalidArgument`` for what is no query."""
    if not isinstance(tree, exp.Query | exp.Values):
        raise InvalidArgument(f"view {name} is not a query")


def as_stated(frame: DataFrame, view: View) -> DataFrame:
    """The columns of a view's query by their places, with the names, types and comments that the view states.

    Columns that the query has more of, since a table was given some, are left out. Raises ``InvalidArgument`` where it
    has fewer, or one whose values another type may not hold.
    """
    stated, given = to_spark_schema(view.schema()).fields, frame.schema.fields
    name = ".".join(view.name)
    if len(given) < len(stated):
        raise InvalidArgument(
            f"view {name} states {len(stated)} columns, and its query has {len(given)} now: replace the view"
        )
    numbered = frame.toDF(*(f"c{number}" for number in range(len(given))))
    columns = [
        _column(functions.col(f"c{number}"), mine, wanted, name)
        for number, (mine, wanted) in enumerate(zip(given, stated, strict=False))
    ]
    return numbered.select(*columns)


def _column(column: Column, given: spark.StructField, stated: spark.StructField, name: str) -> Column:
    if given.dataType.simpleString() != stated.dataType.simpleString():
        if not _fits(given.dataType, stated.dataType):
            raise InvalidArgument(
                f"view {name} states column '{stated.name}' as {stated.dataType.simpleString()}, and its query gives "
                f"{given.dataType.simpleString()} now: replace the view"
            )
        column = column.cast(stated.dataType)
    comment = (stated.metadata or {}).get("comment")
    return column.alias(stated.name, metadata={} if comment is None else {"comment": comment})


def _fits(given: spark.DataType, stated: spark.DataType) -> bool:
    """Whether a type holds all values of another, as Spark sees it."""
    if isinstance(given, spark.NullType) or given.simpleString() == stated.simpleString():
        return True
    if isinstance(given, spark.ArrayType) and isinstance(stated, spark.ArrayType):
        return _fits(given.elementType, stated.elementType)
    if isinstance(given, spark.MapType) and isinstance(stated, spark.MapType):
        return _fits(given.keyType, stated.keyType) and _fits(given.valueType, stated.valueType)
    if isinstance(given, spark.StructType) and isinstance(stated, spark.StructType):
        pairs = zip(given.fields, stated.fields, strict=False)
        return given.names == stated.names and all(_fits(one.dataType, other.dataType) for one, other in pairs)
    if isinstance(stated, spark.StringType):
        return not isinstance(given, spark.ArrayType | spark.MapType | spark.StructType)
    if isinstance(stated, spark.DecimalType):
        return _holds(given, stated)
    if type(given) in _WIDER and type(stated) in _WIDER:
        return _WIDER.index(type(given)) <= _WIDER.index(type(stated))
    return isinstance(given, spark.DateType) and isinstance(stated, spark.TimestampType | spark.TimestampNTZType)


def _holds(given: spark.DataType, stated: spark.DecimalType) -> bool:
    if isinstance(given, spark.DecimalType):
        return stated.scale >= given.scale and stated.precision - stated.scale >= given.precision - given.scale
    return stated.precision - stated.scale >= _DIGITS.get(type(given), stated.precision + 1)
