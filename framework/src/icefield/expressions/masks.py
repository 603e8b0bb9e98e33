"""Combines the masks of predicates over ``and`` and ``or``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from icefield.expressions.bound import BoundPredicate, not_bound
from icefield.expressions.bounds import Mask
from icefield.expressions.expressions import AlwaysFalse, AlwaysTrue, And, BooleanExpression, Or


def combine(expression: BooleanExpression, size: int, test: Callable[[BoundPredicate], Mask]) -> Mask:
    """The mask of a bound expression, from the masks of its predicates. Stops once the result is decided."""
    match expression:
        case AlwaysTrue():
            return np.ones(size, np.bool_)
        case AlwaysFalse():
            return np.zeros(size, np.bool_)
        case BoundPredicate():
            return test(expression)
        case And():
            mask = np.ones(size, np.bool_)
            for child in expression.children:
                mask = mask & combine(child, size, test)
                if not mask.any():
                    break
            return mask
        case Or():
            mask = np.zeros(size, np.bool_)
            for child in expression.children:
                mask = mask | combine(child, size, test)
                if mask.all():
                    break
            return mask
    raise not_bound(expression)
