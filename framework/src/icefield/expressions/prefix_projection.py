"""Projections through ``truncate`` of strings and bytes: a partition is the first W code points or bytes."""

from __future__ import annotations

from icefield.expressions.bound import BoundPredicate
from icefield.expressions.expressions import BooleanExpression
from icefield.expressions.operators import Op
from icefield.expressions.targets import among, on
from icefield.types import NestedField


def project_prefix(width: int, target: NestedField, leaf: BoundPredicate, inclusive: bool) -> BooleanExpression | None:
    """The projection of a comparison, or None if it has none."""
    match leaf.op:
        case Op.LT | Op.LT_EQ | Op.GT | Op.GT_EQ:
            return _project_range(width, target, leaf, inclusive)
        case Op.STARTS_WITH | Op.NOT_STARTS_WITH:
            return _project_start(width, target, leaf, inclusive)
        case Op.EQ | Op.IN | Op.NOT_EQ | Op.NOT_IN:
            return _project_equal(width, target, leaf, inclusive)
    return None


def _project_range(width: int, target: NestedField, leaf: BoundPredicate, inclusive: bool) -> BooleanExpression:
    """A value is not below its prefix, and prefixes are in the order of the values."""
    cut = leaf.value[:width]
    whole = cut == leaf.value
    if inclusive:
        if leaf.op is Op.LT and whole:
            return on(target, Op.LT, cut)
        return on(target, Op.LT_EQ if leaf.op in (Op.LT, Op.LT_EQ) else Op.GT_EQ, cut)
    if leaf.op is Op.GT_EQ and whole:
        return on(target, Op.GT_EQ, cut)
    return on(target, Op.LT if leaf.op in (Op.LT, Op.LT_EQ) else Op.GT, cut)


def _project_equal(width: int, target: NestedField, leaf: BoundPredicate, inclusive: bool) -> BooleanExpression | None:
    """A value shorter than the width is alone in its partition, so equality holds in both directions."""
    values = leaf.value if leaf.op.is_set else (leaf.value,)
    negated = leaf.op in (Op.NOT_EQ, Op.NOT_IN)
    if inclusive is negated:
        values = [value for value in values if len(value) < width]
    return among(target, (value[:width] for value in values), negated=negated) if values else None


def _project_start(width: int, target: NestedField, leaf: BoundPredicate, inclusive: bool) -> BooleanExpression | None:
    start, negated = leaf.value, leaf.op is Op.NOT_STARTS_WITH
    if len(start) < width:
        return on(target, leaf.op, start)
    if len(start) > width and inclusive is negated:
        return None
    return among(target, [start[:width]], negated=negated)
