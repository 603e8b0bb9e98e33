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
from icefield.expressions import BooleanExpression, conjunction, disjunction
from icefield.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from icefield_spark.sql.calls import UNITS
from icefield_spark.sql.transform_filters import Buckets, filter_of_time, filter_of_truncated

NOT_EXACT = (
    "an overwrite replaces rows that comparisons of columns with constants state: the condition is none that Iceberg "
    "has; DELETE takes any condition"
)
"""Why a write refuses a condition."""

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
_OPPOSITES = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
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


_OWN = "icefield."
_NULLS = {"IS_NULL": True, "IS_NOT_NULL": False}
_OF_COLUMNS = frozenset({"<=>", "IN", "STARTS_WITH", *_NULLS})
_COMPARED_WITH_NAN: dict[str, Any] = {
    "=": kernel.IsNaN,
    ">=": kernel.IsNaN,
    "<>": lambda column: kernel.And(kernel.NotNaN(column), kernel.NotNull(column)),
    "<": lambda column: kernel.And(kernel.NotNaN(column), kernel.NotNull(column)),
    "<=": kernel.NotNull,
    ">": lambda column: kernel.AlwaysFalse(),
}


_COMPARED_ALIKE = (
    BinaryType, BooleanType, DateType, DecimalType, DoubleType, FloatType, IntegerType, LongType, StringType,
    TimestampType, TimestamptzType,
)  # fmt: skip
"""Types with an equal type in Spark: other types are strings, numbers or bytes there, which compare differently."""


class Inexact(Exception):
    """A predicate without an equivalent in the kernel."""


class Filters:
    """Translates predicates on the columns of a schema, by Spark's rules for null and NaN.

    For Spark NaN equals itself and is greater than every number; for the kernel it is neither.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def keeping(self, predicates: Iterable[Described]) -> BooleanExpression:
        """A filter that holds for each row that satisfies all the predicates; it may hold for other rows."""
        return conjunction([self._loose(predicate) for predicate in predicates])

    def exact(self, predicates: Iterable[Described]) -> BooleanExpression | None:
        """The filter that holds for a row if and only if all the predicates hold; None if no filter certainly does."""
        try:
            return conjunction([self._exact(predicate) for predicate in predicates])
        except Inexact:
            return None

    def buckets(self, predicates: Iterable[Described]) -> list[Buckets]:
        """The buckets with the rows for which all the predicates hold."""
        found = []
        for each in predicates:
            name, arguments = each.get("function"), each.get("arguments", ())
            if name == "AND":
                found += self.buckets(arguments)
            elif name in ("=", "IN"):
                called = [argument for argument in arguments if _function(argument) == "bucket"]
                given = [argument for argument in arguments if "type" in argument]
                if len(called) == 1 and len(given) == len(arguments) - 1:
                    found += self._buckets(called[0], given)
        return found

    def _buckets(self, call: Described, given: Iterable[Described]) -> list[Buckets]:
        count, column = call["arguments"]
        among = (each for each in given if each.get("value") is not None)
        try:
            return [Buckets(self._column(column), _value(count), frozenset(map(_value, among)))]
        except Inexact:
            return []

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

    def _exact(self, predicate: Described, truth: bool = True) -> BooleanExpression:
        """The filter for rows where a predicate is ``truth``; it excludes rows where the predicate is unknown."""
        name, arguments = predicate.get("function"), predicate.get("arguments", ())
        if "column" in predicate:
            return kernel.EqualTo(self._column(predicate), truth)
        if predicate.get("type") == "boolean" and predicate["value"] is not None:
            return kernel.AlwaysTrue() if _value(predicate) is truth else kernel.AlwaysFalse()
        if name in ("AND", "OR"):
            join = kernel.And if (name == "AND") is truth else kernel.Or
            return join(*(self._exact(each, truth) for each in arguments))
        if name == "NOT":
            return self._exact(arguments[0], not truth)
        if name in _COMPARISONS:
            left, right = arguments
            if "type" in left:
                left, right, name = right, left, _MIRRORED[name]
            return self._compared(left, name if truth else _OPPOSITES[name], _value(right))
        if name not in _OF_COLUMNS:
            raise Inexact(name)
        values = arguments[1:]
        if name == "IN" and _function(arguments[0]):
            parts = [self._compared(arguments[0], "=" if truth else "<>", _value(each)) for each in values]
            return disjunction(parts) if truth else conjunction(parts)
        column = self._column(arguments[0])
        if name in _NULLS:
            return kernel.IsNull(column) if _NULLS[name] is truth else kernel.NotNull(column)
        if name == "STARTS_WITH":
            return (kernel.StartsWith if truth else kernel.NotStartsWith)(column, _value(values[0]))
        if name == "IN":
            return self._among(column, [_value(each) for each in values], truth)
        if values[0].get("value", ...) is None:  # the function is <=>
            return kernel.IsNull(column) if truth else kernel.NotNull(column)
        found = self._compared(arguments[0], "=" if truth else "<>", _value(values[0]))
        return found if truth else kernel.Or(found, kernel.IsNull(column))

    def _column(self, expression: Described) -> tuple[str, ...]:
        path = tuple(expression.get("column", ()))
        if not path or not self._schema.has_field(path):
            raise Inexact("no column")
        if not isinstance(self._schema.find_field(path).field_type, _COMPARED_ALIKE):
            raise Inexact("a column that Spark has as another type")
        return path

    def _is_float(self, column: tuple[str, ...]) -> bool:
        return isinstance(self._schema.find_field(column).field_type, FloatType | DoubleType)

    def _compared(self, expression: Described, name: str, value: Any) -> BooleanExpression:
        if _function(expression):
            return self._rounded(expression, _COMPARISONS[name], value)
        column = self._column(expression)
        if not self._is_float(column):
            return _COMPARISONS[name](column, value)  # type: ignore[no-any-return]
        if isnan(value):
            return _COMPARED_WITH_NAN[name](column)  # type: ignore[no-any-return]
        found = _COMPARISONS[name](column, value)
        return kernel.Or(found, kernel.IsNaN(column)) if name in (">", ">=", "<>") else found

    def _rounded(self, call: Described, kind: Any, value: Any) -> BooleanExpression:
        """The filter for a comparison with a function that rounds a column down."""
        name, arguments = _function(call), call["arguments"]
        column = self._column(arguments[-1])
        type_ = self._schema.find_field(column).field_type
        found = None
        if name in UNITS:
            found = filter_of_time(kind, column, type_, UNITS[name], value)
        elif name == "truncate":
            found = filter_of_truncated(kind, column, type_, _value(arguments[0]), value)
        if found is None:
            raise Inexact(name)
        return found

    def _among(self, column: tuple[str, ...], values: list[Any], truth: bool) -> BooleanExpression:
        if not self._is_float(column):
            return kernel.In(column, values) if truth else kernel.NotIn(column, values)
        numbers = [each for each in values if not isnan(each)]
        has_nan = len(numbers) < len(values)
        if truth:
            found = kernel.In(column, numbers)
            return kernel.Or(found, kernel.IsNaN(column)) if has_nan else found
        outside = kernel.And(kernel.NotIn(column, numbers), kernel.NotNull(column))
        return kernel.And(outside, kernel.NotNaN(column)) if has_nan else kernel.Or(outside, kernel.IsNaN(column))


def _function(expression: Described) -> str:
    """The name of a function of the catalog, without the type after it; empty for other expressions."""
    name: str = expression.get("function", "")
    return name.partition("(")[0].removeprefix(_OWN) if name.startswith(_OWN) else ""


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
    except (ValueError, OverflowError):  # Python's years end at 9999
        raise Inexact(kind) from None
