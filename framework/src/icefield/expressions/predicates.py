"""The predicates that a user builds, each a test of one column: ``GreaterThan("id", 5)``.

``term`` is a column's full name, its path as a tuple, or a ``Reference``. ``icefield.expressions.literals`` describes
the values that a literal may have.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from icefield.errors import InvalidExpression
from icefield.expressions.expressions import BooleanExpression, Op
from icefield.expressions.literals import (
    Literal,
    like_pattern,
    literal,
    literal_key,
    literal_string,
    name_string,
    predicate_string,
    quoted,
)


@dataclass(frozen=True, slots=True, repr=False)
class Reference:
    """A column by its full name, the fields of a struct joined by dots (``"address.city"``), or by its path.

    ``name`` is the full name, or the path (a tuple) where a name in it is empty or has a dot itself. Raises
    ``InvalidExpression``.
    """

    name: str | tuple[str, ...]

    def __post_init__(self) -> None:
        name = self.name
        if not isinstance(name, str | tuple) or not name or not all(isinstance(part, str) for part in name):
            raise InvalidExpression("a column is named by a string that is not empty, or by a tuple of names")
        if isinstance(name, tuple) and all(part and "." not in part for part in name):
            name = ".".join(name)
        elif isinstance(name, str) and not all(name.split(".")):
            name = (name,)
        object.__setattr__(self, "name", name)

    def __repr__(self) -> str:
        return f"Reference({self.name!r})"

    def __str__(self) -> str:
        return name_string(self.name)


class UnboundPredicate(BooleanExpression):
    """A test ``op`` of the column ``term``, not yet looked up in a schema."""

    __slots__ = ("term",)
    op: ClassVar[Op]
    term: Reference

    def __init__(self, term: str | tuple[str, ...] | Reference) -> None:
        self._set("term", term if isinstance(term, Reference) else Reference(term))

    @property
    def literals(self) -> tuple[Literal, ...]:
        """The literals that the column is compared with: none, one or several."""
        return ()

    def _parts(self) -> tuple[Any, ...]:
        return (self.term.name,)

    def __invert__(self) -> BooleanExpression:
        return PREDICATES[self.op.negated](*self._parts())

    def __str__(self) -> str:
        return predicate_string(self.op, self.term.name, map(literal_string, self.literals))


class _LiteralPredicate(UnboundPredicate):
    """Compares a column with one literal (``icefield.expressions.literals.literal`` lists the accepted values)."""

    __slots__ = ("literal",)
    literal: Literal

    def __init__(self, term: str | tuple[str, ...] | Reference, literal: Any) -> None:
        UnboundPredicate.__init__(self, term)
        self._set("literal", _literal_of(self.term, literal))

    @property
    def literals(self) -> tuple[Literal, ...]:
        return (self.literal,)

    def _parts(self) -> tuple[Any, ...]:
        return (self.term.name, self.literal)

    def _key(self) -> Hashable:
        return (self.term.name, literal_key(self.literal))


class _SetPredicate(UnboundPredicate):
    """Looks for a column's value among literals. Equal literals are kept once, and their order is irrelevant."""

    __slots__ = ("_literals",)
    _literals: tuple[Literal, ...]

    def __init__(self, term: str | tuple[str, ...] | Reference, literals: Iterable[Any]) -> None:
        UnboundPredicate.__init__(self, term)
        if isinstance(literals, str | bytes):
            raise InvalidExpression(f"column {self.term}: give a list of literals, not one string")
        if not isinstance(literals, Iterable):
            raise InvalidExpression(f"column {self.term}: give a list of literals, not {literals!r}")
        unique = {literal_key(value): value for value in (_literal_of(self.term, item) for item in literals)}
        self._set("_literals", tuple(unique.values()))

    @property
    def literals(self) -> tuple[Literal, ...]:
        return self._literals

    def _parts(self) -> tuple[Any, ...]:
        return (self.term.name, self._literals)

    def _key(self) -> Hashable:
        return (self.term.name, frozenset(map(literal_key, self._literals)))


class _PrefixPredicate(_LiteralPredicate):
    """Compares the start of a string column."""

    __slots__ = ()

    def __init__(self, term: str | tuple[str, ...] | Reference, literal: Any) -> None:
        _LiteralPredicate.__init__(self, term, literal)
        if not isinstance(self.literal, str):
            raise InvalidExpression(f"column {self.term}: only a string can be the start of a string")

    def __str__(self) -> str:
        return predicate_string(self.op, self.term.name, (quoted(like_pattern(str(self.literal))),))


def _literal_of(term: Reference, value: Any) -> Literal:
    try:
        return literal(value)
    except InvalidExpression as error:
        raise InvalidExpression(f"column {term}: {error.message}") from None


class IsNull(UnboundPredicate):
    """The column or a struct around it is null."""

    __slots__ = ()
    op = Op.IS_NULL


class NotNull(UnboundPredicate):
    """The column has a value."""

    __slots__ = ()
    op = Op.NOT_NULL


class IsNaN(UnboundPredicate):
    """The column is NaN. Never matches a type without NaN."""

    __slots__ = ()
    op = Op.IS_NAN


class NotNaN(UnboundPredicate):
    """The column is not NaN; a null matches."""

    __slots__ = ()
    op = Op.NOT_NAN


class EqualTo(_LiteralPredicate):
    """column = literal."""

    __slots__ = ()
    op = Op.EQ


class NotEqualTo(_LiteralPredicate):
    """column != literal."""

    __slots__ = ()
    op = Op.NOT_EQ


class LessThan(_LiteralPredicate):
    """column < literal. NaN is not less than anything."""

    __slots__ = ()
    op = Op.LT


class LessThanOrEqual(_LiteralPredicate):
    """column <= literal. NaN does not match."""

    __slots__ = ()
    op = Op.LT_EQ


class GreaterThan(_LiteralPredicate):
    """column > literal. NaN does not match (IEEE 754)."""

    __slots__ = ()
    op = Op.GT


class GreaterThanOrEqual(_LiteralPredicate):
    """column >= literal. NaN does not match (IEEE 754)."""

    __slots__ = ()
    op = Op.GT_EQ


class In(_SetPredicate):
    """The column equals one of the literals."""

    __slots__ = ()
    op = Op.IN


class NotIn(_SetPredicate):
    """The column equals none of the literals."""

    __slots__ = ()
    op = Op.NOT_IN


class StartsWith(_PrefixPredicate):
    """The string starts with the literal."""

    __slots__ = ()
    op = Op.STARTS_WITH


class NotStartsWith(_PrefixPredicate):
    """The string does not start with the literal."""

    __slots__ = ()
    op = Op.NOT_STARTS_WITH


PREDICATES: Final[dict[Op, Callable[..., UnboundPredicate]]] = {
    kind.op: kind
    for kind in (
        IsNull, NotNull, IsNaN, NotNaN, EqualTo, NotEqualTo, LessThan, LessThanOrEqual, GreaterThan,
        GreaterThanOrEqual, In, NotIn, StartsWith, NotStartsWith,
    )
}  # fmt: skip
"""The class of each operator."""
