"""The expressions that a user builds: ``And(EqualTo("kind", "a"), GreaterThan("id", 5))``.

They are immutable, hashable and picklable, know nothing of a schema, and ``str`` writes them in the form that
``icefield.expressions.parse`` reads. Logic is three-valued as in SQL: a null never matches a comparison, nor its
negation; ``is null``, ``is nan`` and their negations are never unknown (a null is not NaN). ``&``, ``|`` and ``~``
combine and simplify; the classes keep what they are given.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import FrozenInstanceError
from typing import Any, ClassVar, Final

from icefield.errors import InvalidExpression
from icefield.expressions.literals import Literal, literal, literal_key, literal_text, quoted
from icefield.expressions.operators import Op
from icefield.expressions.text import like_pattern, name_text, predicate_text

MAX_DEPTH: Final = 100
"""How deep ``and``, ``or`` and ``not`` may be nested. A chain of ``and`` counts once, whatever its length."""


class BooleanExpression:
    """A filter: a predicate, or several combined."""

    __slots__ = ()

    @property
    def depth(self) -> int:
        """How many levels of and, or, not and predicate it has."""
        return 1

    def _parts(self) -> tuple[Any, ...]:
        """What the constructor takes to build it again."""
        return ()

    def _key(self) -> Hashable:
        return self._parts()

    def __and__(self, other: BooleanExpression) -> BooleanExpression:
        return conjunction((self, other))

    def __or__(self, other: BooleanExpression) -> BooleanExpression:
        return disjunction((self, other))

    def __invert__(self) -> BooleanExpression:
        return Not(self)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self), self._key()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._parts()))})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._parts()

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field '{name}'")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field '{name}'")

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


class AlwaysTrue(BooleanExpression):
    """Matches every row."""

    __slots__ = ()

    def __invert__(self) -> BooleanExpression:
        return AlwaysFalse()

    def __str__(self) -> str:
        return "true"


class AlwaysFalse(BooleanExpression):
    """Matches no row."""

    __slots__ = ()

    def __invert__(self) -> BooleanExpression:
        return AlwaysTrue()

    def __str__(self) -> str:
        return "false"


class _Junction(BooleanExpression):
    """Two or more expressions joined; those of the same kind inside are taken in."""

    __slots__ = ("_depth", "children")
    children: tuple[BooleanExpression, ...]
    _depth: int

    def __init__(self, left: BooleanExpression, right: BooleanExpression, *more: BooleanExpression) -> None:
        children: list[BooleanExpression] = []
        for child in (left, right, *more):
            _check_expression(child)
            children.extend(child.children if type(child) is type(self) else (child,))
        self._set("children", tuple(children))
        self._set("_depth", _deeper(children))

    @property
    def depth(self) -> int:
        return self._depth

    def _parts(self) -> tuple[Any, ...]:
        return self.children


class And(_Junction):
    """Matches rows that match all of two or more expressions."""

    __slots__ = ()

    def __str__(self) -> str:
        return " and ".join(f"({child})" if isinstance(child, Or) else str(child) for child in self.children)


class Or(_Junction):
    """Matches rows that match any of two or more expressions."""

    __slots__ = ()

    def __str__(self) -> str:
        return " or ".join(f"({child})" if isinstance(child, And) else str(child) for child in self.children)


class Not(BooleanExpression):
    """Matches rows for which the expression is false: not those for which it is unknown because of a null."""

    __slots__ = ("_depth", "child")
    child: BooleanExpression
    _depth: int

    def __init__(self, child: BooleanExpression) -> None:
        _check_expression(child)
        self._set("child", child)
        self._set("_depth", _deeper((child,)))

    @property
    def depth(self) -> int:
        return self._depth

    def _parts(self) -> tuple[Any, ...]:
        return (self.child,)

    def __invert__(self) -> BooleanExpression:
        return self.child

    def __str__(self) -> str:
        return f"not ({self.child})"


def _check_expression(value: object) -> None:
    if not isinstance(value, BooleanExpression):
        raise InvalidExpression(f"expected an expression, got a {type(value).__name__}; a text goes through parse()")


def _deeper(children: Iterable[BooleanExpression]) -> int:
    depth = 1 + max(child.depth for child in children)
    if depth > MAX_DEPTH:
        raise InvalidExpression(f"a filter is nested deeper than {MAX_DEPTH} levels")
    return depth


def conjunction(expressions: Iterable[BooleanExpression]) -> BooleanExpression:
    """All of them, without what is always true; AlwaysTrue for none."""
    kept = []
    for expression in expressions:
        if isinstance(expression, AlwaysFalse):
            return expression
        if not isinstance(expression, AlwaysTrue):
            kept.append(expression)
    if not kept:
        return AlwaysTrue()
    return kept[0] if len(kept) == 1 else And(*kept)


def disjunction(expressions: Iterable[BooleanExpression]) -> BooleanExpression:
    """Any of them, without what is always false; AlwaysFalse for none."""
    kept = []
    for expression in expressions:
        if isinstance(expression, AlwaysTrue):
            return expression
        if not isinstance(expression, AlwaysFalse):
            kept.append(expression)
    if not kept:
        return AlwaysFalse()
    return kept[0] if len(kept) == 1 else Or(*kept)


class Reference:
    """A column by its full name, the fields of a struct joined by dots (``"address.city"``), or by its path.

    ``name`` is the full name, or the path (a tuple) where a name in it is empty or has a dot itself. Raises
    ``InvalidExpression``.
    """

    __slots__ = ("name",)
    name: str | tuple[str, ...]

    def __init__(self, name: str | tuple[str, ...]) -> None:
        if not name or not all(isinstance(part, str) for part in name):
            raise InvalidExpression("a column is named by a text that is not empty, or by a tuple of names")
        if isinstance(name, tuple) and all(part and "." not in part for part in name):
            name = ".".join(name)
        elif isinstance(name, str) and not all(name.split(".")):
            name = (name,)
        object.__setattr__(self, "name", name)

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field '{name}'")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"Reference({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Reference, (self.name,)

    def __str__(self) -> str:
        return name_text(self.name)


class UnboundPredicate(BooleanExpression):
    """A test of one column that is not yet looked up in a schema. ``op`` says which, ``term`` of which column."""

    __slots__ = ("term",)
    op: ClassVar[Op]
    term: Reference

    def __init__(self, term: str | tuple[str, ...] | Reference) -> None:
        self._set("term", term if isinstance(term, Reference) else Reference(term))

    @property
    def literals(self) -> tuple[Literal, ...]:
        """What the column is compared with: none, one or several literals."""
        return ()

    def _parts(self) -> tuple[Any, ...]:
        return (self.term.name,)

    def __invert__(self) -> BooleanExpression:
        return PREDICATES[self.op.negated](*self._parts())

    def __str__(self) -> str:
        return predicate_text(self.op, self.term.name, map(literal_text, self.literals))


class _LiteralPredicate(UnboundPredicate):
    """Compares a column with one literal (see ``icefield.expressions.literals.literal`` for what it may be)."""

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
    """Looks for a column's value among literals; equal literals are kept once, and their order means nothing."""

    __slots__ = ("_literals",)
    _literals: tuple[Literal, ...]

    def __init__(self, term: str | tuple[str, ...] | Reference, literals: Iterable[Any]) -> None:
        UnboundPredicate.__init__(self, term)
        if isinstance(literals, str | bytes):
            raise InvalidExpression(f"column {self.term}: give a list of literals, not one text")
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
    """Compares the start of a text column."""

    __slots__ = ()

    def __init__(self, term: str | tuple[str, ...] | Reference, literal: Any) -> None:
        _LiteralPredicate.__init__(self, term, literal)
        if not isinstance(self.literal, str):
            raise InvalidExpression(f"column {self.term}: only a text can be the start of a text")

    def __str__(self) -> str:
        return predicate_text(self.op, self.term.name, (quoted(like_pattern(str(self.literal))),))


def _literal_of(term: Reference, value: Any) -> Literal:
    try:
        return literal(value)
    except InvalidExpression as error:
        raise InvalidExpression(f"column {term}: {error.message}") from None


class IsNull(UnboundPredicate):
    """The column is null, or lies in a struct that is."""

    __slots__ = ()
    op = Op.IS_NULL


class NotNull(UnboundPredicate):
    """The column has a value."""

    __slots__ = ()
    op = Op.NOT_NULL


class IsNaN(UnboundPredicate):
    """The column is NaN. Never true of a type without NaN."""

    __slots__ = ()
    op = Op.IS_NAN


class NotNaN(UnboundPredicate):
    """The column is not NaN; a null is not."""

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
    """column <= literal. NaN is not."""

    __slots__ = ()
    op = Op.LT_EQ


class GreaterThan(_LiteralPredicate):
    """column > literal. NaN is not (IEEE 754)."""

    __slots__ = ()
    op = Op.GT


class GreaterThanOrEqual(_LiteralPredicate):
    """column >= literal. NaN is not (IEEE 754)."""

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
    """The text starts with the literal."""

    __slots__ = ()
    op = Op.STARTS_WITH


class NotStartsWith(_PrefixPredicate):
    """The text does not start with the literal."""

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


def leaves(expression: BooleanExpression) -> Iterator[BooleanExpression]:
    """The predicates of an expression, bound or not, from left to right."""
    if isinstance(expression, And | Or):
        for child in expression.children:
            yield from leaves(child)
    elif isinstance(expression, Not):
        yield from leaves(expression.child)
    elif not isinstance(expression, AlwaysTrue | AlwaysFalse):
        yield expression
