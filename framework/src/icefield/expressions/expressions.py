"""The expressions that a user builds: ``And(EqualTo("kind", "a"), GreaterThan("id", 5))``.

They are immutable, hashable and picklable, and independent of a schema. ``str`` writes them in the form that
``icefield.expressions.parse`` reads. Logic is three-valued as in SQL: a null never matches a comparison, nor its
negation; ``is null``, ``is nan`` and their negations are never unknown (a null is not NaN). NaN is neither less nor
greater than a number, and ``not (x < 5)`` means ``x >= 5``, which NaN does not match either. So the complement of a
filter holds more rows than its negation matches: rows with null or NaN may match neither.

The operators ``&``, ``|`` and ``~`` combine and simplify. The constructors only flatten nested ``And`` and ``Or``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import FrozenInstanceError
from enum import Enum
from typing import Any, ClassVar, Final

from icefield.errors import InvalidExpression

MAX_DEPTH: Final = 100
"""The maximum depth of nested ``and``, ``or`` and ``not``. A chain of ``and`` counts once, however long it is."""


class Op(Enum):
    """The operator of a predicate."""

    IS_NULL = "is null"
    NOT_NULL = "is not null"
    IS_NAN = "is nan"
    NOT_NAN = "is not nan"
    LT = "<"
    LT_EQ = "<="
    GT = ">"
    GT_EQ = ">="
    EQ = "="
    NOT_EQ = "!="
    IN = "in"
    NOT_IN = "not in"
    STARTS_WITH = "like"
    NOT_STARTS_WITH = "not like"

    @property
    def negated(self) -> Op:
        """The operator of the negated predicate: ``>=`` for ``<``. A null matches neither of two opposite operators."""
        return _NEGATED[self]

    @property
    def flipped(self) -> Op:
        """The operator for the two sides swapped: ``5 < x`` is ``x > 5``."""
        return _FLIPPED.get(self, self)

    @property
    def is_unary(self) -> bool:
        """Whether it takes no literal."""
        return self in _UNARY

    @property
    def is_set(self) -> bool:
        """Whether it takes several literals."""
        return self in (Op.IN, Op.NOT_IN)

    @property
    def is_prefix(self) -> bool:
        """Whether its literal is the start of a string."""
        return self in (Op.STARTS_WITH, Op.NOT_STARTS_WITH)


_PAIRS = (
    (Op.IS_NULL, Op.NOT_NULL),
    (Op.IS_NAN, Op.NOT_NAN),
    (Op.LT, Op.GT_EQ),
    (Op.GT, Op.LT_EQ),
    (Op.EQ, Op.NOT_EQ),
    (Op.IN, Op.NOT_IN),
    (Op.STARTS_WITH, Op.NOT_STARTS_WITH),
)
_NEGATED = dict(_PAIRS) | {other: op for op, other in _PAIRS}
_FLIPPED = {Op.LT: Op.GT, Op.GT: Op.LT, Op.LT_EQ: Op.GT_EQ, Op.GT_EQ: Op.LT_EQ}
_UNARY = frozenset({Op.IS_NULL, Op.NOT_NULL, Op.IS_NAN, Op.NOT_NAN})


class BooleanExpression:
    """A filter: a predicate or a combination of predicates."""

    __slots__ = ()

    @property
    def depth(self) -> int:
        """The number of nested levels of and, or, not and predicate."""
        return 1

    def _parts(self) -> tuple[Any, ...]:
        """The constructor arguments that build an equal expression."""
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
    """Two or more expressions joined; nested expressions of the same kind are flattened."""

    __slots__ = ("_depth", "children")
    children: tuple[BooleanExpression, ...]
    _depth: int
    _word: ClassVar[str]

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

    def __str__(self) -> str:
        return self._word.join(f"({child})" if isinstance(child, _Junction) else str(child) for child in self.children)


class And(_Junction):
    """Matches rows that match all of two or more expressions."""

    __slots__ = ()
    _word = " and "


class Or(_Junction):
    """Matches rows that match any of two or more expressions."""

    __slots__ = ()
    _word = " or "


class Not(BooleanExpression):
    """Matches rows for which the expression is false. It does not match rows for which a null makes it unknown."""

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
        raise InvalidExpression(f"expected an expression, got a {type(value).__name__}; a string goes through parse()")


def _deeper(children: Iterable[BooleanExpression]) -> int:
    depth = 1 + max(child.depth for child in children)
    if depth > MAX_DEPTH:
        raise InvalidExpression(f"a filter is nested deeper than {MAX_DEPTH} levels")
    return depth


def conjunction(expressions: Iterable[BooleanExpression]) -> BooleanExpression:
    """Join expressions by ``and``, without the operands that are always true; AlwaysTrue if none is left."""
    return _joined(expressions, And, AlwaysTrue, AlwaysFalse)


def disjunction(expressions: Iterable[BooleanExpression]) -> BooleanExpression:
    """Join expressions by ``or``, without the operands that are always false; AlwaysFalse if none is left."""
    return _joined(expressions, Or, AlwaysFalse, AlwaysTrue)


def _joined(
    expressions: Iterable[BooleanExpression],
    kind: type[And] | type[Or],
    neutral: type[BooleanExpression],
    decisive: type[BooleanExpression],
) -> BooleanExpression:
    kept = []
    for expression in expressions:
        if isinstance(expression, decisive):
            return expression
        if not isinstance(expression, neutral):
            kept.append(expression)
    if not kept:
        return neutral()
    return kept[0] if len(kept) == 1 else kind(*kept)


def leaves(expression: BooleanExpression) -> Iterator[BooleanExpression]:
    """The predicates of an expression, bound or not, from left to right."""
    if isinstance(expression, And | Or):
        for child in expression.children:
            yield from leaves(child)
    elif isinstance(expression, Not):
        yield from leaves(expression.child)
    elif not isinstance(expression, AlwaysTrue | AlwaysFalse):
        yield expression
