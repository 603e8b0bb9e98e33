"""Selects the files that may hold a matching row, by their statistics. A file is pruned only if no row can match.

Bounds need not occur in a file (strings may be truncated), so they only ever prove absence. Missing statistics are
unknown, and so are NaN bounds. A file that may hold NaN stays for ``>`` and ``>=`` although NaN is not greater than
anything here: in other engines it is, and they plan with this evaluator too.
"""

from __future__ import annotations

from icefield.expressions.bound import BoundPredicate
from icefield.expressions.bounds import Mask
from icefield.expressions.expressions import BooleanExpression
from icefield.expressions.file_statistics import FileStatistics, LeafStatistics, OnceStatistics, counts
from icefield.expressions.masks import combine
from icefield.expressions.operators import Op

NAN_MAY_MATCH = frozenset({Op.GT, Op.GT_EQ, Op.NOT_EQ, Op.NOT_IN})
"""Comparisons that NaN passes, here or in an engine in which NaN is the greatest number."""


def inclusive_metrics(expression: BooleanExpression, statistics: FileStatistics) -> Mask:
    """For each file whether it may hold a matching row. A file known to be empty holds none.

    ``expression`` is bound to the table's schema. Raises ``InvalidExpression`` if it is not.
    """
    size, once = statistics.num_files, OnceStatistics(statistics)
    mask = combine(expression, size, lambda leaf: ~_excluded(leaf, LeafStatistics(leaf, once)))
    return mask & (counts(once.record_count(), size) != 0)  # type: ignore[no-any-return]


def _excluded(leaf: BoundPredicate, statistics: LeafStatistics) -> Mask:
    match leaf.op:
        case Op.IS_NULL:
            return statistics.no_null()
        case Op.NOT_NULL:
            return statistics.all_null()
        case Op.IS_NAN:
            return statistics.no_nan()
        case Op.NOT_NAN:
            return statistics.all_nan()
    excluded = statistics.nothing_comparable() | statistics.bounds().exclude(leaf.op, leaf)
    if leaf.is_floating and leaf.op in NAN_MAY_MATCH:
        return statistics.all_null() | (excluded & statistics.no_nan())
    return excluded
