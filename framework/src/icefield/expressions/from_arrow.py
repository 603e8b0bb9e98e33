"""Filters from expressions of ``pyarrow.compute``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import InvalidExpression
from icefield.expressions.arrow_nodes import ArrowCall, ArrowField, ArrowNode, arrow_nodes
from icefield.expressions.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression
from icefield.expressions.predicates import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    NotNull,
    Reference,
    StartsWith,
)

_COMPARISONS: Final[dict[str, tuple[Callable[..., Any], Callable[..., Any]]]] = {
    "equal": (EqualTo, EqualTo),
    "not_equal": (NotEqualTo, NotEqualTo),
    "less": (LessThan, GreaterThan),
    "less_equal": (LessThanOrEqual, GreaterThanOrEqual),
    "greater": (GreaterThan, LessThan),
    "greater_equal": (GreaterThanOrEqual, LessThanOrEqual),
}
"""The predicate of each comparison, with the column on its left side and on its right side."""


def from_arrow(given: pc.Expression) -> BooleanExpression:
    """The filter that a pyarrow expression stands for. Raises ``InvalidExpression`` for any other computation."""
    return _filter(arrow_nodes(given))


def _filter(node: ArrowNode) -> BooleanExpression:
    if isinstance(node, ArrowField):
        return EqualTo(Reference(node.path), True)
    if not isinstance(node, ArrowCall):
        return AlwaysTrue() if node.as_py() else AlwaysFalse()
    match node.function, node.arguments:
        case (("and_kleene" | "and"), (left, right)):
            return _filter(left) & _filter(right)
        case (("or_kleene" | "or"), (left, right)):
            return _filter(left) | _filter(right)
        case "invert", (inner,):
            return ~_filter(inner)
        case name, (ArrowField(path), pa.Scalar() as value) if name in _COMPARISONS:
            return _COMPARISONS[name][0](Reference(path), value)  # type: ignore[no-any-return]
        case name, (pa.Scalar() as value, ArrowField(path)) if name in _COMPARISONS:
            return _COMPARISONS[name][1](Reference(path), value)  # type: ignore[no-any-return]
        case "is_valid", (ArrowField(path),):
            return NotNull(Reference(path))
        case "is_nan", (ArrowField(path),):
            return IsNaN(Reference(path))
        case "is_null", (ArrowField(path),):
            column = Reference(path)
            return IsNull(column) | IsNaN(column) if node.option("nan_is_null") else IsNull(column)
        case "is_in", (ArrowField(path),) if node.option("null_matching_behavior") in (0, 1):
            column, given = Reference(path), node.value_set
            values = [each for each in given if each.is_valid]
            # For a null row, Arrow's answer is true or false, and never unknown.
            found = NotNull(column) & In(column, values) if values else AlwaysFalse()
            nulls = node.option("null_matching_behavior") == 0 and len(values) < len(given)
            return found | IsNull(column) if nulls else found
        case "starts_with", (ArrowField(path),) if not node.option("ignore_case"):
            return StartsWith(Reference(path), node.option("pattern"))
    computed = next((each for each in node.arguments if isinstance(each, ArrowCall)), node)
    raise InvalidExpression(
        f"'{computed.function}' of this pyarrow expression is no filter of a table: compare columns with literals, or "
        "filter the rows, such as scan.to_arrow().filter(expression)"
    )
