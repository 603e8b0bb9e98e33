"""Evaluates a bound expression on one row of internal values, without Arrow: for a partition, not for data."""

from __future__ import annotations

import math
import operator
from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Any

from icefield.expressions.bound import BoundPredicate, not_bound
from icefield.expressions.expressions import AlwaysFalse, AlwaysTrue, And, BooleanExpression, Or
from icefield.expressions.operators import Op


def _among(value: Any, values: tuple[Any, ...]) -> bool:
    """Whether a sorted tuple contains a value."""
    place = bisect_left(values, value)
    return place < len(values) and bool(values[place] == value)


_TESTS: dict[Op, Callable[[Any, Any], bool]] = {
    Op.LT: operator.lt,
    Op.LT_EQ: operator.le,
    Op.GT: operator.gt,
    Op.GT_EQ: operator.ge,
    Op.EQ: operator.eq,
    Op.NOT_EQ: operator.ne,
    # Python compares strings by code point, which is the order of their UTF-8.
    Op.IN: lambda value, values: _among(value, values),
    Op.NOT_IN: lambda value, values: not _among(value, values),
    Op.STARTS_WITH: lambda value, start: value.startswith(start),
    Op.NOT_STARTS_WITH: lambda value, start: not value.startswith(start),
}


def row_matches(expression: BooleanExpression, row: Mapping[str, Any]) -> bool:
    """Whether a row matches; false where that is unknown. ``row`` holds internal values by column name.

    Raises ``InvalidExpression`` for an expression that is not bound.
    """
    match expression:
        case AlwaysTrue() | AlwaysFalse():
            return isinstance(expression, AlwaysTrue)
        case And():
            return all(row_matches(child, row) for child in expression.children)
        case Or():
            return any(row_matches(child, row) for child in expression.children)
        case BoundPredicate():
            return _leaf_matches(expression, row)
    raise not_bound(expression)


def _leaf_matches(leaf: BoundPredicate, row: Mapping[str, Any]) -> bool:
    value: Any = row
    for name in leaf.path:
        value = None if value is None else value[name]
    match leaf.op:
        case Op.IS_NULL:
            return value is None
        case Op.NOT_NULL:
            return value is not None
        case Op.IS_NAN | Op.NOT_NAN:
            return (value is not None and math.isnan(value)) is (leaf.op is Op.IS_NAN)
    return value is not None and _TESTS[leaf.op](value, leaf.value)
