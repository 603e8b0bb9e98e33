"""Bound filters as conditions of Spark that keep exactly the rows that the kernel's evaluation keeps."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import and_, or_

from icefield.expressions import AlwaysFalse, AlwaysTrue, And, BooleanExpression, BoundPredicate, Op, Or
from pyspark.sql import Column, functions

from icefield_spark.roads.columns import UnfitForSpark
from icefield_spark.roads.literals import literal

ColumnAt = Callable[[tuple[str, ...]], Column]
"""The column at a path of names from the top of the table's schema."""

_UNSUPPORTED = "the filter has a part that Spark does not know"


def condition(expression: BooleanExpression, column_at: ColumnAt) -> Column:
    """The filter as a condition. Raises ``UnfitForSpark`` for a filter that Spark evaluates differently."""
    if isinstance(expression, And | Or):
        join = and_ if isinstance(expression, And) else or_
        return reduce(join, (condition(child, column_at) for child in expression.children))
    if isinstance(expression, AlwaysTrue | AlwaysFalse):
        return functions.lit(isinstance(expression, AlwaysTrue))
    if isinstance(expression, BoundPredicate):
        return _leaf(expression, column_at(expression.path))
    raise UnfitForSpark(_UNSUPPORTED)


def _leaf(leaf: BoundPredicate, column: Column) -> Column:
    op = leaf.op
    if op is Op.IS_NULL:
        return column.isNull()
    if op is Op.NOT_NULL:
        return column.isNotNull()
    if op in (Op.IS_NAN, Op.NOT_NAN):
        found = functions.isnan(column) if leaf.is_floating else functions.lit(False)
        return found if op is Op.IS_NAN else ~found
    kind = leaf.field.field_type
    if op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
        starts = column.startswith(literal(kind, leaf.value))
        return starts if op is Op.STARTS_WITH else ~starts
    values = leaf.value if op.is_set else (leaf.value,)
    if leaf.is_floating and 0.0 in values:
        # Parquet's dictionaries distinguish -0.0 from 0.0. Spark does not push a condition on a sum down to them.
        column = column + functions.lit(0.0).cast("float" if str(kind) == "float" else "double")
    literals = [literal(kind, value) for value in values]
    if op is Op.IN:
        return column.isin(literals)
    if op is Op.NOT_IN:
        return ~column.isin(literals)
    found = _COMPARED[op](column, literals[0])
    if leaf.is_floating and op in (Op.GT, Op.GT_EQ):
        return found & ~functions.isnan(column)  # for Spark NaN is greater than every number
    return found


_COMPARED: dict[Op, Callable[[Column, Column], Column]] = {
    Op.EQ: lambda column, value: column == value,
    Op.NOT_EQ: lambda column, value: column != value,
    Op.LT: lambda column, value: column < value,
    Op.LT_EQ: lambda column, value: column <= value,
    Op.GT: lambda column, value: column > value,
    Op.GT_EQ: lambda column, value: column >= value,
}
