"""The operators of predicates, with their string forms and negations."""

from __future__ import annotations

from enum import Enum


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
