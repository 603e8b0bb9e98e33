"""Spark's filters as Icefield's expressions.

Spark takes NaN for equal to itself and greater than every number, so a comparison of floats is widened where the two
disagree, and given back to Spark, which decides. So is a filter that is known only in part. A filter on a column that
Spark spells in another type is taken where the two spellings compare alike (a uuid with its text, fixed with binary),
else left to Spark (times, nanoseconds, geometries, variants).
"""

from __future__ import annotations

import math
import uuid
from typing import Any

from icefield import IcefieldError, Schema
from icefield import expressions as icefield
from icefield import types as iceberg
from pyspark.sql import datasource as spark

_ORDERED = {
    spark.LessThan: icefield.LessThan,
    spark.LessThanOrEqual: icefield.LessThanOrEqual,
    spark.GreaterThan: icefield.GreaterThan,
    spark.GreaterThanOrEqual: icefield.GreaterThanOrEqual,
}
_GREATER = (spark.GreaterThan, spark.GreaterThanOrEqual)
_OTHER_IN_SPARK = (
    iceberg.TimeType,
    iceberg.TimestampNanoType,
    iceberg.TimestamptzNanoType,
    iceberg.GeometryType,
    iceberg.GeographyType,
    iceberg.VariantType,
    iceberg.UnknownType,
)

Taken = tuple[icefield.BooleanExpression, bool]
"""An expression, and whether it decides alone. One that does not matches more rows than the filter, never fewer."""


def to_expression(found: spark.Filter, schema: Schema) -> Taken | None:
    """A filter as an expression, and whether the expression decides alone; None when it cannot be taken."""
    try:
        made = _translate(found, schema)
        if made is not None:
            icefield.bind(schema, made[0])  # what does not fit the schema is Spark's to judge
    except IcefieldError:
        return None
    return made


def _translate(found: spark.Filter, schema: Schema) -> Taken | None:
    if isinstance(found, spark.Not):
        inner = _translate(found.child, schema)
        # Only what decides alone may be negated: the opposite of "more rows" is fewer.
        return (icefield.Not(inner[0]), True) if inner is not None and inner[1] else None
    # The path, not its text: names may have dots.
    path = icefield.Reference(tuple(found.attribute))  # type: ignore[attr-defined]
    kind = schema.find_field(tuple(found.attribute)).field_type  # type: ignore[attr-defined]
    if isinstance(found, spark.IsNull):
        return icefield.IsNull(path), True
    if isinstance(found, spark.IsNotNull):
        return icefield.NotNull(path), True
    if isinstance(found, spark.EqualNullSafe) and found.value is None:
        return icefield.IsNull(path), True
    if isinstance(kind, _OTHER_IN_SPARK) or kind.is_nested:
        return None
    if isinstance(found, spark.In):
        return _in(path, kind, found.value)
    if isinstance(found, spark.EqualTo):
        return _in(path, kind, [found.value])
    if isinstance(found, spark.EqualNullSafe):
        return _null_safe(path, kind, found.value)
    if isinstance(found, spark.StringStartsWith) and isinstance(kind, iceberg.StringType):
        return icefield.StartsWith(path, found.value), True
    return _ordered(found, path, kind)


def _ordered(found: spark.Filter, path: icefield.Reference, kind: iceberg.IcebergType) -> Taken | None:
    comparison = _ORDERED.get(type(found))
    if comparison is None or isinstance(kind, iceberg.UUIDType):
        return None
    value = found.value  # type: ignore[attr-defined]
    if value is None or _is_nan(value):
        return None
    made = comparison(path, value)
    if _is_float(kind):
        return (icefield.Or(made, icefield.IsNaN(path)) if isinstance(found, _GREATER) else made), False
    return made, True


def _in(path: icefield.Reference, kind: iceberg.IcebergType, values: Any) -> Taken | None:
    """One of several values. A null among them can make Spark's IN unknown but never true: it matters under NOT."""
    known = [value for value in values if value is not None]
    numbers = [value for value in known if not _is_nan(value)]
    if not known or not all(_is_spelt_alike(kind, value) for value in numbers):
        return None
    tests: list[icefield.BooleanExpression] = []
    if numbers:
        tests.append(icefield.In(path, numbers))
    if len(numbers) < len(known):
        tests.append(icefield.IsNaN(path))
    made = tests[0] if len(tests) == 1 else icefield.Or(tests[0], tests[1])
    return made, len(known) == len(values) and not _is_float(kind)


def _null_safe(path: icefield.Reference, kind: iceberg.IcebergType, value: Any) -> Taken | None:
    """Equal, and false (not unknown) for null, so that its negation matches null."""
    equal = _in(path, kind, [value])
    return None if equal is None else (icefield.And(icefield.NotNull(path), equal[0]), equal[1])


def _is_spelt_alike(kind: iceberg.IcebergType, value: Any) -> bool:
    """Whether a value equals in Spark's spelling of the column just when it does in the column itself."""
    if not isinstance(kind, iceberg.UUIDType):
        return True
    try:
        return str(uuid.UUID(value)) == value
    except (ValueError, AttributeError, TypeError):
        return False


def _is_float(kind: iceberg.IcebergType) -> bool:
    return isinstance(kind, iceberg.FloatType | iceberg.DoubleType)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
