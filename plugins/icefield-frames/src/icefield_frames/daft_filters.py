"""Expressions of Daft as filters of Iceberg. Daft applies each expression itself: filters only leave rows out."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from icefield.errors import InvalidExpression

from icefield_frames.filters import (
    MIRRORED,
    UNKNOWN,
    Comparison,
    Path,
    Translated,
    Translator,
    check_depth,
    joined,
)

_COMPARISONS: Final[dict[str, Comparison]] = {
    "equal": "==",
    "not_equal": "!=",
    "less_than": "<",
    "less_than_or_equal": "<=",
    "greater_than": ">",
    "greater_than_or_equal": ">=",
}
_LITERALS: Final = (bool, int, float, str, bytes, Decimal, dt.date, dt.datetime, dt.time)


def translated(expression: Any, translator: Translator) -> Translated:
    """The filter for an expression, as far as there is one."""
    return _FilterVisitor(translator).of(expression)


class _FilterVisitor:
    """The visitor that Daft calls with the parts of an expression. Its methods return filters."""

    def __init__(self, translator: Translator, *, negated: bool = False, depth: int = 0) -> None:
        self._translator, self._negated, self._depth = translator, negated, depth

    def of(self, expression: Any, *, negated: bool | None = None) -> Translated:
        """The filter for an expression, one level further down."""
        if not check_depth(self._depth):
            return UNKNOWN
        inner = _FilterVisitor(
            self._translator, negated=self._negated if negated is None else negated, depth=self._depth + 1
        )
        try:
            found: Translated = expression._expr.accept(inner)
        except (
            ValueError,
            LookupError,
            TypeError,
            ArithmeticError,
            RecursionError,
            InvalidExpression,
            pa.ArrowException,
        ):
            return UNKNOWN
        return found

    def visit_(self, name: str, arguments: list[Any]) -> Translated:
        """A function, such as a comparison."""
        match name, arguments:
            case (("and" | "or"), [left, right]):
                return joined([self.of(left), self.of(right)], every=(name == "and") is not self._negated)
            case "not", [inner]:
                return self.of(inner, negated=not self._negated)
            case (("is_null" | "not_null"), [inner]):
                negated = self._negated is not (name == "not_null")
                return self._translator.is_null(_path(inner), negated=negated)
            case "is_nan", [inner]:
                return self._translator.is_nan(_path(inner), negated=self._negated)
            case "starts_with", [inner, prefix]:
                value = _literal(prefix)
                return self._translator.starts_with(_path(inner), value.as_py(), negated=self._negated)
            case "between", [inner, low, high]:
                path = _path(inner)
                parts = [self._compared(">=", path, low), self._compared("<=", path, high)]
                return joined(parts, every=not self._negated)
            case "is_in", [inner, list(items)]:
                values = [_literal(item) for item in items]
                return self._translator.among(_path(inner), _without_zero(values), negated=self._negated)
        operator = _COMPARISONS.get(name)
        if operator is None:
            return UNKNOWN
        left, right = arguments
        if left._expr.accept(_LeafVisitor()) is _LITERAL:
            return self._compared(MIRRORED[operator], _path(right), left)
        return self._compared(operator, _path(left), right)

    def visit_col(self, name: str) -> Translated:
        """A column of booleans."""
        return self._translator.flag((name,), negated=self._negated)

    def visit_alias(self, expression: Any, alias: str) -> Translated:
        """A named expression."""
        return self.of(expression)

    def _other(self, *_: Any) -> Translated:
        return UNKNOWN

    visit_lit = visit_cast = visit_try_cast = visit_coalesce = visit_function = _other

    def _compared(self, operator: Comparison, path: Path, value: Any) -> Translated:
        (found,) = _without_zero([_literal(value)])
        return self._translator.compare(operator, path, found, negated=self._negated)


_COLUMN: Final = "column"
_LITERAL: Final = "literal"


class _LeafVisitor:
    """The visitor of a column or a literal: it returns the kind, and keeps the name or the value."""

    def __init__(self) -> None:
        self.found: Any = None

    def visit_col(self, name: str) -> str | None:
        self.found = name
        return _COLUMN

    def visit_lit(self, value: Any) -> str | None:
        self.found = value
        return _LITERAL

    def _other(self, *_: Any) -> str | None:
        return None

    visit_ = visit_alias = visit_cast = visit_try_cast = visit_coalesce = visit_function = _other


def _path(expression: Any) -> Path:
    """The name of a column. Raises ``LookupError`` for other expressions."""
    leaf = _LeafVisitor()
    if expression._expr.accept(leaf) is not _COLUMN:
        raise LookupError("an expression that is no column")
    return (leaf.found,)


def _literal(expression: Any) -> pa.Scalar:
    """The value of a literal. Raises ``LookupError`` for other expressions, and for null."""
    leaf = _LeafVisitor()
    if expression._expr.accept(leaf) is not _LITERAL or not isinstance(leaf.found, _LITERALS):
        raise LookupError("an expression that is no literal")
    return pa.scalar(leaf.found)


def _without_zero(values: list[pa.Scalar]) -> list[pa.Scalar]:
    """Literals, none of them a zero of a float, whose signs Daft tells apart. Raises ``LookupError``."""
    if any(pa.types.is_floating(value.type) and value.as_py() == 0.0 for value in values):
        raise LookupError("a zero with a sign")
    return values
