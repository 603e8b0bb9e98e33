"""Filters as the protocol's JSON writes them, read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Or,
    StartsWith,
)
from icefield.schema import Schema
from icefield.types import BinaryType, FixedType, NestedField

_UNARY: Final[dict[str, Callable[[Any], BooleanExpression]]] = {
    "is-null": IsNull,
    "not-null": NotNull,
    "is-nan": IsNaN,
    "not-nan": NotNaN,
}
_COMPARISONS: Final[dict[str, Callable[[Any, Any], BooleanExpression]]] = {
    "lt": LessThan,
    "lt-eq": LessThanOrEqual,
    "gt": GreaterThan,
    "gt-eq": GreaterThanOrEqual,
    "eq": EqualTo,
    "not-eq": NotEqualTo,
    "starts-with": StartsWith,
    "not-starts-with": NotStartsWith,
}
_SETS: Final[dict[str, Callable[[Any, Any], BooleanExpression]]] = {"in": In, "not-in": NotIn}
_MAX_PARTS: Final = 10_000
_TURNED: Final = {"lt": "gt", "lt-eq": "gt-eq", "gt": "lt", "gt-eq": "lt-eq", "eq": "eq", "not-eq": "not-eq"}


def check_size(given: Any) -> None:
    """Raise ``InvalidArgument`` for a filter of more parts than one may have, before any is read."""
    count, left = 0, [given]
    while left:
        each = left.pop()
        count += 1
        if count > _MAX_PARTS:
            raise InvalidArgument(f"a filter has up to {_MAX_PARTS:,} predicates and what joins them; test with 'in'")
        if isinstance(each, dict):
            left += [each[name] for name in ("left", "right", "child") if isinstance(each.get(name), dict)]


def filter_from_json(given: Any, schema: Schema, case_sensitive: bool = True) -> BooleanExpression:
    """The filter that JSON states, over columns of a schema. Raises ``InvalidArgument``, ``UnsupportedFeature``."""
    return _FilterReader(schema, case_sensitive).read(given)


class _FilterReader:
    def __init__(self, schema: Schema, case_sensitive: bool) -> None:
        self._schema = schema
        self._case_sensitive = case_sensitive

    def read(self, given: Any) -> BooleanExpression:
        if isinstance(given, bool):
            return AlwaysTrue() if given else AlwaysFalse()
        if not isinstance(given, dict):
            raise InvalidArgument("a filter is true, false or an object with 'type'")
        kind = given.get("type")
        match kind:
            case "true" | "false":
                return self.read(kind == "true")
            case "not":
                return Not(self.read(given.get("child")))
            case "and" | "or":
                join = And if kind == "and" else Or
                return join(self.read(given.get("left")), self.read(given.get("right")))
        if not isinstance(kind, str):
            raise InvalidArgument("an object of a filter has a string as its 'type'")
        if kind in _UNARY:
            return _UNARY[kind](self._column(_operand(given)).path)
        if kind in _SETS:
            values = given.get("values")
            if not isinstance(values, list):
                raise InvalidArgument(f"'{kind}' in a filter has 'values', a list")
            column = self._column(_operand(given))
            return _SETS[kind](column.path, [column.literal(value) for value in values])
        if kind in _COMPARISONS:
            return self._comparison(kind, given)
        raise InvalidArgument(f"a filter has no '{kind:.40}'; it has {', '.join([*_UNARY, *_COMPARISONS, *_SETS])}")

    def _comparison(self, kind: str, given: dict[str, Any]) -> BooleanExpression:
        if "left" not in given and "right" not in given:
            term, value = given.get("term"), given.get("value")
        else:
            term, value = given.get("left"), given.get("right")
            if _is_reference(value):
                if _is_reference(term) or kind not in _TURNED:
                    raise UnsupportedFeature("a filter compares a column with a value, the column on the left")
                kind, term, value = _TURNED[kind], value, term
        column = self._column(term)
        return _COMPARISONS[kind](column.path, column.literal(value))

    def _column(self, term: Any) -> _FilterColumn:
        name: Any = term
        if isinstance(term, dict):
            if term.get("type") != "reference":
                raise UnsupportedFeature("a filter for a plan tests columns, not transforms or functions of them")
            name = term.get("id", term.get("name", term.get("term")))
        if not isinstance(name, str | int) or isinstance(name, bool):
            raise InvalidArgument("a predicate of a filter names its column: a string, or a reference")
        field = self._schema.find_field(name, self._case_sensitive)
        return _FilterColumn(field, self._schema.name_path(field.field_id))


class _FilterColumn:
    """A column of a predicate: its type determines the meaning of literals."""

    def __init__(self, field: NestedField, path: tuple[str, ...]) -> None:
        self.path = path
        self._field = field

    def literal(self, given: Any) -> Any:
        """The value of a literal: bytes are written as hexadecimal digits, all else as the kernel reads it."""
        value = given.get("value") if isinstance(given, dict) and given.get("type") == "literal" else given
        if isinstance(value, dict | list):
            raise InvalidArgument(f"column {self._field.name} is compared with a value of the wrong kind")
        if isinstance(self._field.field_type, BinaryType | FixedType) and isinstance(value, str):
            try:
                return bytes.fromhex(value)
            except ValueError as error:
                raise InvalidArgument(f"a value for column {self._field.name} is no hexadecimal string") from error
        return value


def _operand(given: dict[str, Any]) -> Any:
    return given["child"] if "child" in given else given.get("term")


def _is_reference(given: Any) -> bool:
    return isinstance(given, dict) and given.get("type") != "literal"
