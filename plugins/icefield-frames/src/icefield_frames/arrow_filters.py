"""Expressions of pyarrow as filters of Iceberg. An expression in a form that is not known is not translated."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from icefield.errors import InvalidExpression
from icefield.expressions import BooleanExpression
from icefield.schema import Schema
from icefield.types import DoubleType, FloatType

from icefield_frames.arrow_nodes import ArrowCall, ArrowField, ArrowNode, arrow_nodes
from icefield_frames.filters import (
    ALL,
    MIRRORED,
    NONE,
    UNKNOWN,
    Comparison,
    Path,
    Translated,
    Translator,
    check_depth,
    filter_of,
    is_nan,
    joined,
    type_at,
)

_COMPARISONS: Final[dict[str, Comparison]] = {
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_FUNCTIONS: Final[dict[Comparison, Any]] = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_FALSE_FOR_NULL: Final = (0, 1)
"""The values of ``null_matching_behavior`` that make null no member of a set without null."""

_SKIPS_NULL: Final = 1
"""The value of ``null_matching_behavior`` that makes null no member of a set with null."""

_UNKNOWN_FORMS: Final = (InvalidExpression, ValueError, LookupError, RecursionError, pa.ArrowException)


def translated(expression: pc.Expression, translator: Translator) -> Translated:
    """The filter for an expression, as far as there is one."""
    try:
        return _translated(arrow_nodes(expression), translator, negated=False)
    except _UNKNOWN_FORMS:
        return UNKNOWN


def from_arrow(expression: pc.Expression, schema: Schema) -> BooleanExpression:
    """The filter of a table that an expression stands for. Raises ``InvalidExpression`` if there is none."""
    found = translated(expression, Translator(schema, schema, nan_is_greatest=False))
    return filter_of(found, expression, lambda: columns_of(expression) or (), schema)


def columns_of(expression: pc.Expression) -> set[str] | None:
    """The names of the top-level columns that an expression refers to; None if they are not known."""
    try:
        return field_names(arrow_nodes(expression))
    except _UNKNOWN_FORMS:
        return None


def with_greatest_nan(expression: pc.Expression, columns: Schema) -> pc.Expression:
    """The expression as SQL engines mean it: NaN equals itself and is the greatest number, IN is unknown for null.

    An expression with parts that no engine hands on is left as it is.
    """
    try:
        return _rebuilt(arrow_nodes(expression), columns)
    except _UNKNOWN_FORMS:
        return expression


def field_names(node: ArrowNode) -> set[str]:
    """The names of the top-level columns that an expression refers to."""
    if isinstance(node, ArrowField):
        return {node.path[0]}
    return set().union(*map(field_names, node.arguments)) if isinstance(node, ArrowCall) else set()


def _rebuilt(node: ArrowNode, columns: Schema) -> pc.Expression:
    if isinstance(node, ArrowField):
        return pc.field(node.path)
    if not isinstance(node, ArrowCall):
        return pc.scalar(node)
    match node.function, node.arguments:
        case "and_kleene", (first, second):
            return _rebuilt(first, columns) & _rebuilt(second, columns)
        case "or_kleene", (first, second):
            return _rebuilt(first, columns) | _rebuilt(second, columns)
        case "invert", (inner,):
            return ~_rebuilt(inner, columns)
        case "is_valid", (inner,):
            return _rebuilt(inner, columns).is_valid()
        case "is_null", (inner,) if not node.option("nan_is_null"):
            return _rebuilt(inner, columns).is_null()
        case "is_nan", (inner,):
            return _rebuilt(inner, columns).is_nan()
        case "if_else", (first, second, third):
            return pc.if_else(*(_rebuilt(each, columns) for each in (first, second, third)))
        case "is_in", (ArrowField(path),):
            return _member(path, node.value_set, columns)
        case function, (ArrowField(path), pa.Scalar() as value) if function in _COMPARISONS:
            return _ordered(_COMPARISONS[function], path, value, columns)
        case function, (pa.Scalar() as value, ArrowField(path)) if function in _COMPARISONS:
            return _ordered(MIRRORED[_COMPARISONS[function]], path, value, columns)
    raise ValueError(f"no known part of a filter: {node.function}")


def _member(path: Path, values: pa.Array, columns: Schema) -> pc.Expression:
    """Membership as by IN of SQL: null for null, and for no member of values with a null."""
    null, known = pc.scalar(pa.scalar(None, pa.bool_())), values.drop_null()
    if isinstance(type_at(columns, path), FloatType | DoubleType):
        found = reduce(or_, (_compared("==", path, value) for value in known), pc.scalar(False))
    else:
        found = pc.if_else(pc.field(path).is_valid(), pc.field(path).isin(known), null)
    return found | null if values.null_count else found


def _ordered(operator: Comparison, path: Path, value: pa.Scalar, columns: Schema) -> pc.Expression:
    if isinstance(type_at(columns, path), FloatType | DoubleType):
        return _compared(operator, path, value)
    return _FUNCTIONS[operator](pc.field(path), value)


def _compared(operator: Comparison, path: Path, value: pa.Scalar) -> pc.Expression:
    """A comparison of a column of floats; null for null."""
    column = pc.field(path)
    nan = column.is_nan()
    if not is_nan(value):
        found = _FUNCTIONS[operator](column, value)
        return found | nan if operator in (">", ">=") else found
    if operator in ("==", ">="):
        return nan
    if operator in ("!=", "<"):
        return ~nan
    return nan | ~nan if operator == "<=" else nan & ~nan


def _translated(node: ArrowNode, translator: Translator, *, negated: bool, depth: int = 0) -> Translated:
    if isinstance(node, ArrowField):
        return translator.flag(node.path, negated=negated)
    if not check_depth(depth):
        return UNKNOWN
    if not isinstance(node, ArrowCall):
        return _constant(node.as_py(), negated=negated)
    try:
        return _known(node, translator, negated=negated, depth=depth)
    except _UNKNOWN_FORMS:
        return UNKNOWN


def _known(node: ArrowCall, translator: Translator, *, negated: bool, depth: int) -> Translated:
    match node.function, node.arguments:
        case (("and_kleene" | "or_kleene"), (first, second)):
            parts = [_translated(each, translator, negated=negated, depth=depth + 1) for each in (first, second)]
            return joined(parts, every=(node.function == "and_kleene") is not negated)
        case "invert", (inner,):
            return _translated(inner, translator, negated=not negated, depth=depth + 1)
        case "is_valid", (ArrowField(path),):
            return translator.is_null(path, negated=not negated)
        case "is_null", (ArrowField(path),):
            null = translator.is_null(path, negated=negated)
            if not (node.option("nan_is_null") and translator.has_nan(path)):
                return null
            return joined([null, translator.is_nan(path, negated=negated)], every=negated)
        case "is_nan", (ArrowField(path),):
            return translator.is_nan(path, negated=negated)
        case "starts_with", (ArrowField(path),) if not node.option("ignore_case"):
            return translator.starts_with(path, node.option("pattern"), negated=negated)
        case "is_in", (ArrowField(path),):
            return _among(node, path, translator, negated=negated)
        case "if_else", (
            ArrowCall("is_valid", (ArrowField(tested),)),
            ArrowCall("is_in", (ArrowField(path),)) as inner,
            pa.Scalar() as other,
        ):
            if tested == path and not other.is_valid:
                return _among(inner, path, translator, negated=negated, null=False)
        case function, (ArrowField(path), pa.Scalar() as value) if function in _COMPARISONS:
            return translator.compare(_COMPARISONS[function], path, value, negated=negated)
        case function, (pa.Scalar() as value, ArrowField(path)) if function in _COMPARISONS:
            return translator.compare(MIRRORED[_COMPARISONS[function]], path, value, negated=negated)
    return UNKNOWN


def _among(
    node: ArrowCall, path: Path, translator: Translator, *, negated: bool, null: bool | None = None
) -> Translated:
    matching, values = node.option("null_matching_behavior"), node.value_set
    if null is None and translator.nan_is_greatest:  # IN of SQL: unknown for null, and beside a null that is given
        if negated and values.null_count:
            return NONE
        return translator.among(path, values.drop_null(), negated=negated)
    if values.null_count and (matching not in _FALSE_FOR_NULL or null is not None):
        return UNKNOWN
    if null is None:
        null = matching in _FALSE_FOR_NULL
    found = translator.among(path, values.drop_null(), negated=negated, null=null)
    if not values.null_count or matching == _SKIPS_NULL:
        return found
    return joined([found, translator.is_null(path, negated=negated)], every=negated)


def _constant(value: Any, *, negated: bool) -> Translated:
    return ALL if value is not None and bool(value) is not negated else NONE
