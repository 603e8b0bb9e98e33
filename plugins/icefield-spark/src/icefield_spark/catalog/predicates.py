"""Filters that Spark pushes to a scan, as filters of the kernel."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import isnan
from typing import Any

from icefield import Schema
from icefield import expressions as kernel
from icefield.expressions import BooleanExpression, conjunction
from icefield.types import DoubleType, FloatType

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


_CONSTANTS: dict[Any, BooleanExpression] = {"ALWAYS_TRUE": kernel.AlwaysTrue(), "ALWAYS_FALSE": kernel.AlwaysFalse()}
_OF_COLUMNS = frozenset({"<=>", "IN", "IS_NULL", "IS_NOT_NULL", "STARTS_WITH"})
_COMPARED_WITH_NAN: dict[str, Any] = {
    "=": kernel.IsNaN,
    ">=": kernel.IsNaN,
    "<>": lambda column: kernel.And(kernel.NotNaN(column), kernel.NotNull(column)),
    "<": lambda column: kernel.And(kernel.NotNaN(column), kernel.NotNull(column)),
    "<=": kernel.NotNull,
    # No value is greater: true of no row, and neither is the negation true of a null.
    ">": lambda column: kernel.And(kernel.IsNaN(column), kernel.NotNaN(column)),
}


class Inexact(Exception):
    """A predicate that the kernel has no equal for."""


class Filters:
    """Translates predicates on the columns of a schema, by Spark's rules for null and NaN.

    For Spark NaN equals itself and is greater than every number; for the kernel it is neither.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def keeping(self, predicates: Iterable[Described]) -> BooleanExpression:
        """A filter that holds of each row for which all the predicates hold; it may hold of others."""
        return conjunction([self._loose(predicate) for predicate in predicates])

    def exact(self, predicates: Iterable[Described]) -> BooleanExpression | None:
        """The filter that holds of a row if and only if all the predicates do; None where there is none for certain."""
        try:
            return conjunction([self._exact(predicate) for predicate in predicates])
        except Inexact:
            return None

    def _loose(self, predicate: Described) -> BooleanExpression:
        name, arguments = predicate.get("function"), predicate.get("arguments", ())
        if name == "AND":
            return conjunction([self._loose(each) for each in arguments])
        if name == "OR":
            return kernel.Or(*map(self._loose, arguments))
        if name == "IN":  # a null among the values keeps no row
            values = [each for each in arguments[1:] if each.get("value", ...) is not None]
            predicate = {**predicate, "arguments": [arguments[0], *values]}
        try:
            return self._exact(predicate)
        except Inexact:
            return kernel.AlwaysTrue()

    def _exact(self, predicate: Described) -> BooleanExpression:
        name, arguments = predicate.get("function"), predicate.get("arguments", ())
        if "column" in predicate:
            return kernel.EqualTo(_column(predicate), True)
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        if name == "AND":
            return conjunction([self._exact(each) for each in arguments])
        if name == "OR":
            return kernel.Or(*map(self._exact, arguments))
        if name == "NOT":
            return kernel.Not(self._exact(arguments[0]))
        if name in _COMPARISONS:
            left, right = arguments
            if "column" in right:
                left, right, name = right, left, _MIRRORED[name]
            return self._compared(_column(left), name, _value(right))
        if name not in _OF_COLUMNS:
            raise Inexact(name)
        column, values = _column(arguments[0]), arguments[1:]
        if name == "IS_NULL":
            return kernel.IsNull(column)
        if name == "IS_NOT_NULL":
            return kernel.NotNull(column)
        if name == "STARTS_WITH":
            return kernel.StartsWith(column, _value(values[0]))
        if name == "IN":
            return self._among(column, [_value(each) for each in values])
        if values[0].get("value", ...) is None:
            return kernel.IsNull(column)
        # A null is another value, so that the negation holds of it.
        return kernel.And(self._compared(column, "=", _value(values[0])), kernel.NotNull(column))

    def _is_float(self, column: tuple[str, ...]) -> bool:
        return isinstance(self._schema.find_field(column).field_type, FloatType | DoubleType)

    def _compared(self, column: tuple[str, ...], name: str, value: Any) -> BooleanExpression:
        if not self._is_float(column):
            return _COMPARISONS[name](column, value)  # type: ignore[no-any-return]
        if isnan(value):
            return _COMPARED_WITH_NAN[name](column)  # type: ignore[no-any-return]
        found = _COMPARISONS[name](column, value)
        return kernel.Or(found, kernel.IsNaN(column)) if name in (">", ">=", "<>") else found

    def _among(self, column: tuple[str, ...], values: list[Any]) -> BooleanExpression:
        if not self._is_float(column) or not any(map(isnan, values)):
            return kernel.In(column, values)
        return kernel.Or(kernel.In(column, [each for each in values if not isnan(each)]), kernel.IsNaN(column))


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
