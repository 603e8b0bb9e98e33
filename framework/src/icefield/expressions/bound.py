"""Bound expressions: the leaf class that all evaluators share, and functions that walk a bound tree.

A bound tree is made of ``And``, ``Or``, ``AlwaysTrue``, ``AlwaysFalse`` and ``BoundPredicate``; it has no ``Not``, so
"unknown" may count as "does not match" anywhere in it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import pyarrow as pa

from icefield.errors import InvalidExpression
from icefield.expressions.casting import internal_string
from icefield.expressions.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    Op,
    Or,
    conjunction,
    disjunction,
    leaves,
)
from icefield.expressions.literals import like_pattern, predicate_string, quoted
from icefield.types import DoubleType, FloatType, NestedField
from icefield.types.arrow.types import plain_array


class BoundPredicate(BooleanExpression):
    """A test of one field. ``path`` is its names from the top of the schema.

    ``value`` is an internal value of the field's type, a sorted tuple of values for IN and NOT_IN, or None. Never NaN.
    ``never_null``: whether the schema allows no null, neither in the field nor in a struct around it.
    """

    __slots__ = ("_arrow", "field", "never_null", "op", "path", "value")
    op: Op
    field: NestedField
    path: tuple[str, ...]
    value: Any
    never_null: bool
    _arrow: pa.Scalar | pa.Array | None

    def __init__(
        self, op: Op, field: NestedField, path: tuple[str, ...], value: Any = None, never_null: bool = False
    ) -> None:
        self._set("op", op)
        self._set("field", field)
        self._set("path", path)
        self._set("value", tuple(sorted(set(value))) if op.is_set and value is not None else value)
        self._set("never_null", never_null)
        self._set("_arrow", None)

    @property
    def is_floating(self) -> bool:
        """Whether the field may hold NaN."""
        return isinstance(self.field.field_type, FloatType | DoubleType)

    @property
    def arrow(self) -> pa.Scalar | pa.Array:
        """The value as an Arrow scalar, or as a sorted array for IN and NOT_IN. Built once."""
        if self._arrow is None:
            values = list(self.value) if self.op.is_set else [self.value]
            array = plain_array(values, self.field.field_type)
            self._set("_arrow", array if self.op.is_set else array[0])
        return self._arrow

    def replace(self, op: Op, value: Any = None) -> BoundPredicate:
        """Another test of the same field."""
        return BoundPredicate(op, self.field, self.path, value, self.never_null)

    def at(self, path: tuple[str, ...]) -> BoundPredicate:
        """The same test for data in which the field has another path and may be null.

        The values are shared, including their Arrow form: a long list is sorted and converted once, not for each file.
        """
        moved = BoundPredicate(self.op, self.field, path)
        moved._set("value", self.value)
        moved._set("_arrow", None if self.op.is_unary else self.arrow)
        return moved

    def _parts(self) -> tuple[Any, ...]:
        return (self.op, self.field, self.path, self.value, self.never_null)

    def _key(self) -> Hashable:
        return (self.op, self.field.field_id, self.field.field_type, self.path, self.value)

    def __invert__(self) -> BooleanExpression:
        return self.replace(self.op.negated, self.value)

    def __str__(self) -> str:
        if self.op.is_prefix:
            return predicate_string(self.op, self.path, (quoted(like_pattern(self.value)),))
        values = () if self.op.is_unary else self.value if self.op.is_set else (self.value,)
        return predicate_string(self.op, self.path, (internal_string(self.field.field_type, value) for value in values))


def map_leaves(
    expression: BooleanExpression, change: Callable[[BoundPredicate], BooleanExpression]
) -> BooleanExpression:
    """The expression with each predicate changed, simplified. Raises ``InvalidExpression`` if it is not bound."""
    if isinstance(expression, And):
        return conjunction(map_leaves(child, change) for child in expression.children)
    if isinstance(expression, Or):
        return disjunction(map_leaves(child, change) for child in expression.children)
    if isinstance(expression, BoundPredicate):
        return change(expression)
    if list(leaves(expression)):
        raise not_bound(expression)
    return expression


def not_bound(expression: BooleanExpression) -> InvalidExpression:
    """The error for an expression that has to be bound first."""
    return InvalidExpression(f"expression is not bound to a schema: {type(expression).__name__}; call bind() first")


def is_bound(expression: BooleanExpression) -> bool:
    """Whether an expression is bound to a schema."""
    if isinstance(expression, And | Or):
        return all(map(is_bound, expression.children))
    return isinstance(expression, BoundPredicate | AlwaysTrue | AlwaysFalse)


def bound_leaves(expression: BooleanExpression) -> list[BoundPredicate]:
    """The predicates of a bound expression. Raises ``InvalidExpression`` if it is not bound."""
    found = []
    for leaf in leaves(expression):
        if not isinstance(leaf, BoundPredicate):
            raise not_bound(leaf)
        found.append(leaf)
    return found


def field_ids(expression: BooleanExpression) -> frozenset[int]:
    """The ids of the fields that a bound expression tests."""
    return frozenset(leaf.field.field_id for leaf in bound_leaves(expression))
