"""Builds predicates on one partition field."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from icefield.expressions.bound import BoundPredicate
from icefield.expressions.operators import Op
from icefield.types import NestedField


def on(target: NestedField, op: Op, value: Any = None) -> BoundPredicate:
    """A predicate on a partition field."""
    return BoundPredicate(op, target, (target.name,), value)


def among(target: NestedField, values: Iterable[Any], *, negated: bool) -> BoundPredicate:
    """A test for one of several partition values; for none of them if ``negated``."""
    unique = set(values)
    if len(unique) == 1:
        return on(target, Op.NOT_EQ if negated else Op.EQ, unique.pop())
    return on(target, Op.NOT_IN if negated else Op.IN, unique)
