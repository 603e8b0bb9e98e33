"""Selects the files that hold matching rows only, by their statistics. Such a file can be dropped or kept whole."""

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
    """For each file, whether all its rows are proven to match. True for a file known to be empty.

    ``expression`` is bound to the table's schema. Raises ``InvalidExpression`` if it is not. A null never matches a
    comparison, so no comparison selects a file that may hold nulls. NaN is unequal to every number: ``!=`` and
    ``not in`` judge a file with NaN by its other values, and no other comparison selects it.
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
    # The predicate holds for all values if its negation holds for none.
    outside = statistics.bounds().exclude(leaf.op.negated, leaf)
    if leaf.op in _NAN_MATCHES:
        return statistics.no_null() & (outside | statistics.all_nan())
    return statistics.no_null() & statistics.no_nan() & outside
