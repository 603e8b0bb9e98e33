"""Spark's filters as Icefield's expressions.

Spark takes NaN for equal to itself and greater than every number, so a comparison of floats is widened where the two
disagree, and given back to Spark, which decides. A filter on a column that Spark spells in another type (uuid, fixed,
nanoseconds) is not taken.
"""

from __future__ import annotations

import math
from typing import Any

from icefield import IcefieldError, Schema
from icefield import expressions as icefield
from icefield import types as iceberg
from pyspark.sql import datasource as spark

_COMPARISONS = {
    spark.EqualTo: icefield.EqualTo,
    spark.LessThan: icefield.LessThan,
    spark.LessThanOrEqual: icefield.LessThanOrEqual,
    spark.GreaterThan: icefield.GreaterThan,
    spark.GreaterThanOrEqual: icefield.GreaterThanOrEqual,
}
_GREATER = (spark.GreaterThan, spark.GreaterThanOrEqual)
_OTHER_IN_SPARK = (
    iceberg.UUIDType,
    iceberg.FixedType,
    iceberg.TimeType,
    iceberg.TimestampNanoType,
    iceberg.TimestamptzNanoType,
    iceberg.GeometryType,
    iceberg.GeographyType,
    iceberg.VariantType,
)


def to_expression(found: spark.Filter, schema: Schema) -> tuple[icefield.BooleanExpression, bool] | None:
    """A filter as an expression, and whether the expression decides alone; None when it cannot be taken.

    An expression that does not decide alone matches more rows than the filter, never fewer.
    """
    try:
        made = _translate(found, schema)
        if made is None:
            return None
        icefield.bind(schema, made[0])  # what does not fit the schema is Spark's to judge
    except IcefieldError:
        return None
    return made


def _translate(found: spark.Filter, schema: Schema) -> tuple[icefield.BooleanExpression, bool] | None:
    if isinstance(found, spark.Not):
        inner = _translate(found.child, schema)
        # Only what decides alone may be negated: the opposite of "more rows" is fewer.
        return (icefield.Not(inner[0]), True) if inner is not None and inner[1] else None
    name = ".".join(found.attribute)
    kind = schema.find_field(name).field_type
    if isinstance(found, spark.IsNull):
        return icefield.IsNull(name), True
    if isinstance(found, spark.IsNotNull):
        return icefield.NotNull(name), True
    if isinstance(kind, _OTHER_IN_SPARK) or kind.is_nested:
        return None
    is_float = isinstance(kind, iceberg.FloatType | iceberg.DoubleType)
    if isinstance(found, spark.In):
        return _in(name, found.value, is_float)
    if isinstance(found, spark.StringStartsWith):
        return icefield.StartsWith(name, found.value), True
    comparison = _COMPARISONS.get(type(found))
    if comparison is None or found.value is None or _is_nan(found.value):
        return None
    made = comparison(name, found.value)
    if is_float:
        return (icefield.Or(made, icefield.IsNaN(name)) if isinstance(found, _GREATER) else made), False
    return made, True


def _in(name: str, values: Any, is_float: bool) -> tuple[icefield.BooleanExpression, bool] | None:
    known = [value for value in values if value is not None]
    if not known or any(map(_is_nan, known)):
        return None
    # A null in the list can make Spark's IN null but never true, so that it matters only under NOT.
    return icefield.In(name, known), len(known) == len(values) and not is_float


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
