"""The rows of a view: what its query may be, and its columns as the view states them."""

# See docs/decisions/0140.

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from icefield import View
from icefield.errors import InvalidArgument
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as functions
from pyspark.sql import types as spark
from sqlglot import exp

from icefield_spark.types import to_spark_schema
from icefield_spark.writing import CASE_SENSITIVE

DIALECT: Final = "spark"

QUERY_COLUMNS: Final = "spark.query-column-names"
"""The property of a view that states the names of its query's columns, as Iceberg's Java runtime writes it."""

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
    """The columns of a view's query, with the names, types and comments that the view states.

    They are found by the names that they had when the view was made, as Spark finds those of its own views: the tables
    of the query may have their columns in another order now, and more of them. A view of an engine that does not state
    these names has its columns by their places. Raises ``InvalidArgument`` where a column is not there, where it is not
    clear which one is meant, and where the values of one do not fit the type that the view states.
    """
    stated, given = to_spark_schema(view.schema()).fields, frame.schema.fields
    name = ".".join(view.name)
    if len(given) < len(stated):
        raise InvalidArgument(
            f"view {name} states {len(stated)} columns, and its query has {len(given)} now: replace the view"
        )
    fold = str if frame.sparkSession.conf.get(CASE_SENSITIVE, "false") == "true" else str.lower
    names = [fold(field.name) for field in given]
    own = [fold(field.name) for field in stated]
    places = places_of(name, names, own, view.properties.get(QUERY_COLUMNS), fold)
    numbered = frame.toDF(*(f"c{number}" for number in range(len(given))))
    columns = [
        _column(functions.col(f"c{place}"), given[place], wanted, name)
        for place, wanted in zip(places, stated, strict=True)
    ]
    return numbered.select(*columns)


def places_of(
    view: str, names: Sequence[str], own: Sequence[str], made_from: str | None, fold: Callable[[str], str]
) -> Sequence[int]:
    """Which of a query's columns are a view's, by the names of both. ``made_from``: those the query had once."""
    in_place = range(len(own))
    then = [fold(each) for each in (made_from or "").split(",")]
    if fold(made_from or "") == ",".join(names[: len(own)]):  # a name may hold a comma
        then = list(names[: len(own)])
    now = Counter(names)
    if made_from is not None and len(then) == len(own):
        once = Counter(then)
        missing = next((each for each in then if now[each] != once[each]), None)
        if missing is None:
            # Of several columns of one name each keeps its turn.
            every: dict[str, list[int]] = {}
            for place in reversed(range(len(names))):
                every.setdefault(names[place], []).append(place)
            return [every[each].pop() for each in then]
        if list(names[: len(own)]) == list(own):  # another engine replaced the view and left the old names
            return in_place
        raise InvalidArgument(
            f"view {view} was made from {once[missing]} column(s) '{missing}' of its query, which has "
            f"{now[missing]} now: replace the view"
        )
    if list(names[: len(own)]) != list(own) and all(now[each] == 1 for each in own):
        raise InvalidArgument(
            f"view {view} states the columns {', '.join(own)}, and its query gives {', '.join(names)} now, in another "
            "order; whether they are meant by name or by place is not known: replace the view"
        )
    return in_place


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
