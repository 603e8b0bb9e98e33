"""Which files hold matching rows only, by their statistics. Such a file can be dropped or kept whole."""

from __future__ import annotations

from icefield.expressions.bound import BoundPredicate
from icefield.expressions.bounds import Mask
from icefield.expressions.expressions import BooleanExpression
from icefield.expressions.file_statistics import FileStatistics, LeafStatistics, OnceStatistics, counts
from icefield.expressions.masks import combine
from icefield.expressions.operators import Op

_NAN_MATCHES = frozenset({Op.NOT_EQ, Op.NOT_IN})
"""Comparisons that NaN passes."""


def strict_metrics(expression: BooleanExpression, statistics: FileStatistics) -> Mask:
    """For each file whether all its rows are proven to match. Those of a file known to be empty do.

    ``expression`` is bound to the table's schema. Raises ``InvalidExpression`` if it is not. A null never matches a
    comparison, so files that may hold nulls are never claimed for one. NaN is unequal to every number, so files that
    hold it are claimed for ``!=`` and ``not in`` by the numbers next to it, and for no other comparison.
    """
    size, once = statistics.num_files, OnceStatistics(statistics)
    mask = combine(expression, size, lambda leaf: _covered(leaf, LeafStatistics(leaf, once)))
    return mask | (counts(once.record_count(), size) == 0)  # type: ignore[no-any-return]


def _covered(leaf: BoundPredicate, statistics: LeafStatistics) -> Mask:
    match leaf.op:
        case Op.IS_NULL:
            return statistics.all_null()
        case Op.NOT_NULL:
            return statistics.no_null()
        case Op.IS_NAN:
            return statistics.all_nan()
        case Op.NOT_NAN:
            return statistics.no_nan()
    # All values pass where none passes the opposite.
    outside = statistics.bounds().exclude(leaf.op.negated, leaf)
    if leaf.op in _NAN_MATCHES:
        return statistics.no_null() & (outside | statistics.all_nan())
    return statistics.no_null() & statistics.no_nan() & outside
