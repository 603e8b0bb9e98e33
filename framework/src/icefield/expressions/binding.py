"""Binding: finds the columns of an expression in a schema and casts its literals to their types.

Predicates that the schema alone decides are folded: ``is null`` of a required column, a literal outside the type's
range, an empty list. A comparison that every value passes becomes ``is not null``, since a null never matches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from icefield.errors import InvalidArgument, InvalidExpression
from icefield.expressions.bound import BoundPredicate
from icefield.expressions.casting import Beyond, Cast, cast
from icefield.expressions.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    Not,
    Op,
    Or,
    conjunction,
    disjunction,
)
from icefield.expressions.literals import Literal
from icefield.expressions.predicates import Reference, UnboundPredicate
from icefield.schema import Schema
from icefield.types import DoubleType, FloatType, NestedField, StringType, StructType, UnknownType

_COMPARISONS: Final = frozenset({Op.LT, Op.LT_EQ, Op.GT, Op.GT_EQ, Op.EQ, Op.NOT_EQ})


def bind(schema: Schema | StructType, expression: BooleanExpression, case_sensitive: bool = True) -> BooleanExpression:
    """The expression over the fields of a schema, without ``Not`` (see ``icefield.expressions.bound``).

    Bound predicates stay as they are. Raises ``InvalidExpression`` for a column that is absent or inside a list or map,
    and for a literal that does not fit the column's type.
    """
    whole = schema if isinstance(schema, Schema) else Schema(*schema.fields)
    return _bind(expression, _ColumnLookup(whole, case_sensitive), False)


def _bind(expression: BooleanExpression, columns: _ColumnLookup, negate: bool) -> BooleanExpression:
    match expression:
        case Not():
            return _bind(expression.child, columns, not negate)
        case And() | Or():
            join = conjunction if isinstance(expression, And) is not negate else disjunction
            return join([_bind(child, columns, negate) for child in expression.children])
        case UnboundPredicate():
            return _bind_predicate(expression, columns, negate)
    return ~expression if negate else expression


@dataclass(frozen=True, slots=True)
class _BoundColumn:
    """A field, its path, and whether the field or a struct around it is nullable."""

    field: NestedField
    path: tuple[str, ...]
    nullable: bool

    def leaf(self, op: Op, value: object = None) -> BooleanExpression:
        return BoundPredicate(op, self.field, self.path, value, not self.nullable)

    def is_null(self) -> BooleanExpression:
        if isinstance(self.field.field_type, UnknownType):
            return AlwaysTrue()
        return self.leaf(Op.IS_NULL) if self.nullable else AlwaysFalse()

    def not_null(self) -> BooleanExpression:
        if isinstance(self.field.field_type, UnknownType):
            return AlwaysFalse()
        return self.leaf(Op.NOT_NULL) if self.nullable else AlwaysTrue()


class _ColumnLookup(dict[Reference, _BoundColumn]):
    """The columns of a schema, each looked up once."""

    def __init__(self, schema: Schema, case_sensitive: bool) -> None:
        self._schema = schema
        self._case_sensitive = case_sensitive

    def __missing__(self, term: Reference) -> _BoundColumn:
        schema = self._schema
        try:
            field = schema.find_field(term.name, self._case_sensitive)
            path = schema.accessor_path(field.field_id)
        except InvalidArgument as error:
            raise InvalidExpression(f"cannot filter on column {term}: {error.message}", field=str(term)) from None
        step: int | None = field.field_id
        nullable = False
        while step is not None:
            nullable = nullable or not schema.find_field(step).required
            step = schema.parent_of(step)
        column = self[term] = _BoundColumn(field, path, nullable)
        return column


def _bind_predicate(predicate: UnboundPredicate, columns: _ColumnLookup, negate: bool) -> BooleanExpression:
    column = columns[predicate.term]
    op = predicate.op.negated if negate else predicate.op
    try:
        if op in _COMPARISONS:
            return _compare(column, op, predicate.literals[0])
        match op:
            case Op.IS_NULL:
                return column.is_null()
            case Op.NOT_NULL:
                return column.not_null()
            case Op.IS_NAN | Op.NOT_NAN:
                if isinstance(column.field.field_type, FloatType | DoubleType):
                    return column.leaf(op)
                return AlwaysFalse() if op is Op.IS_NAN else AlwaysTrue()
            case Op.IN | Op.NOT_IN:
                return _search(column, op, predicate.literals)
        return _match_prefix(column, op, predicate.literals[0])
    except InvalidExpression as error:
        data = {"field": str(predicate.term), "field_id": column.field.field_id}
        raise InvalidExpression(f"column {predicate.term}: {error.message}", **data) from None


def _compare(column: _BoundColumn, op: Op, literal: Literal) -> BooleanExpression:
    if isinstance(column.field.field_type, UnknownType):
        return AlwaysFalse()
    found = cast(column.field.field_type, literal)
    if isinstance(found, Cast) and found.exact:
        return column.leaf(op, found.value)
    if op in (Op.EQ, Op.NOT_EQ):
        return AlwaysFalse() if op is Op.EQ else column.not_null()
    below = op in (Op.LT, Op.LT_EQ)
    if isinstance(found, Beyond):
        return column.not_null() if below is (found is Beyond.ABOVE) else AlwaysFalse()
    return column.leaf(Op.LT_EQ if below else Op.GT, found.value)


def _search(column: _BoundColumn, op: Op, literals: tuple[Literal, ...]) -> BooleanExpression:
    if not literals:
        return AlwaysFalse() if op is Op.IN else AlwaysTrue()
    if isinstance(column.field.field_type, UnknownType):
        return AlwaysFalse()
    casts = (cast(column.field.field_type, literal) for literal in literals)
    values = {found.value for found in casts if isinstance(found, Cast) and found.exact}
    if not values:
        return AlwaysFalse() if op is Op.IN else column.not_null()
    if len(values) == 1:
        return column.leaf(Op.EQ if op is Op.IN else Op.NOT_EQ, values.pop())
    return column.leaf(op, values)


def _match_prefix(column: _BoundColumn, op: Op, start: Literal) -> BooleanExpression:
    if isinstance(column.field.field_type, UnknownType):
        return AlwaysFalse()
    if not isinstance(column.field.field_type, StringType):
        raise InvalidExpression(f"only a string starts with something, not a {column.field.field_type}")
    if start == "":
        return column.not_null() if op is Op.STARTS_WITH else AlwaysFalse()
    return column.leaf(op, start)
