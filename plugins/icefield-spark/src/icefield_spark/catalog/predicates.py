"""Filters that Spark pushes to a scan, as filters of the kernel."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from icefield import expressions as kernel
from icefield.expressions import BooleanExpression, conjunction

Described = Mapping[str, Any]
"""An expression as the Java classes describe it: a column, a literal or a function of others."""

_COMPARISONS: dict[str, Any] = {
    "=": kernel.EqualTo,
    "<>": kernel.NotEqualTo,
    "<": kernel.LessThan,
    "<=": kernel.LessThanOrEqual,
    ">": kernel.GreaterThan,
    ">=": kernel.GreaterThanOrEqual,
}
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_EPOCH = datetime(1970, 1, 1)
_CONVERSIONS: dict[str, Any] = {
    "boolean": lambda text: text == "true",
    "date": lambda text: date(1970, 1, 1) + timedelta(days=int(text)),
    "timestamp": lambda text: (_EPOCH + timedelta(microseconds=int(text))).replace(tzinfo=UTC),
    "timestamp_ntz": lambda text: _EPOCH + timedelta(microseconds=int(text)),
    "float": float,
    "double": float,
    "string": str,
    **dict.fromkeys(("byte", "short", "integer", "long"), int),
}


class Inexact(Exception):
    """A predicate that the kernel has no equal for."""


def filter_of(predicates: Iterable[Described]) -> BooleanExpression:
    """A filter that holds of each row for which all the predicates hold; it may hold of others."""
    return conjunction([_loose(predicate) for predicate in predicates])


def exact_filter_of(predicates: Iterable[Described]) -> BooleanExpression | None:
    """The filter that holds of a row if and only if all the predicates do; None where there is none for certain."""
    try:
        return conjunction([_exact(predicate) for predicate in predicates])
    except Inexact:
        return None


def _loose(predicate: Described) -> BooleanExpression:
    name, arguments = predicate.get("function"), predicate.get("arguments", ())
    if name == "AND":
        return conjunction([_loose(each) for each in arguments])
    if name == "OR":
        return kernel.Or(*map(_loose, arguments))
    try:
        return _exact(predicate)
    except Inexact:
        return kernel.AlwaysTrue()


def _exact(predicate: Described) -> BooleanExpression:
    name, arguments = predicate.get("function"), predicate.get("arguments", ())
    if name == "ALWAYS_TRUE":
        return kernel.AlwaysTrue()
    if name == "ALWAYS_FALSE":
        return kernel.AlwaysFalse()
    if name == "AND":
        return conjunction([_exact(each) for each in arguments])
    if name == "OR":
        return kernel.Or(*map(_exact, arguments))
    if name == "NOT":
        return kernel.Not(_exact(arguments[0]))
    if "column" in predicate:
        return kernel.EqualTo(tuple(predicate["column"]), True)
    if name in _COMPARISONS:
        left, right = arguments
        if "column" in right:
            left, right, name = right, left, _MIRRORED[name]
        return _COMPARISONS[name](_column(left), _value(right))
    column, values = _column(arguments[0]), arguments[1:]
    if name == "<=>":
        return kernel.IsNull(column) if values[0].get("value", ...) is None else kernel.EqualTo(column, _value(values[0]))
    if name == "IN":
        return kernel.In(column, [_value(each) for each in values])
    if name == "IS_NULL":
        return kernel.IsNull(column)
    if name == "IS_NOT_NULL":
        return kernel.NotNull(column)
    if name == "STARTS_WITH":
        return kernel.StartsWith(column, _value(values[0]))
    raise Inexact(name)


def _column(expression: Described) -> tuple[str, ...]:
    if "column" not in expression:
        raise Inexact("no column")
    return tuple(expression["column"])


def _value(expression: Described) -> Any:
    kind = expression.get("type")
    if kind is None:
        raise Inexact("no literal")
    if kind == "binary":
        return base64.b64decode(expression["bytes"])
    value = expression["value"]
    convert = Decimal if kind.startswith("decimal") else _CONVERSIONS.get(kind)
    if value is None or convert is None:
        raise Inexact(kind)
    try:
        return convert(value)
    except (ValueError, OverflowError):  # a year beyond those of Python
        raise Inexact(kind) from None
