"""Selects files by their statistics, many files at a time.

*Inclusive*: the files that may hold a matching row. A file is pruned only if no row can match. Bounds need not occur in
a file (strings may be truncated), so they only ever prove absence. Missing statistics are unknown, and so are NaN
bounds. A file that may hold NaN stays for ``>`` and ``>=``. NaN is not greater than anything here, but it is in other
engines, which plan with this evaluator too. *Strict*: the files that hold matching rows only. Such a file can be
dropped or kept whole.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.base import compute as pc
from icefield.expressions.bound import BoundPredicate, not_bound
from icefield.expressions.bounds import Bounds, Mask
from icefield.expressions.expressions import AlwaysFalse, AlwaysTrue, And, BooleanExpression, Op, Or
from icefield.types.arrow.pieces import one_array

_UNKNOWN = -1

NAN_MAY_MATCH = frozenset({Op.GT, Op.GT_EQ, Op.NOT_EQ, Op.NOT_IN})
"""Comparisons that NaN passes, here or in an engine in which NaN is the greatest number."""

_NAN_MATCHES = frozenset({Op.NOT_EQ, Op.NOT_IN})
"""Comparisons that NaN passes."""


class FileStatistics(Protocol):
    """Statistics of ``num_files`` files by field id. None means unknown for all files, null unknown for one file.

    A caller that knows the value of a missing column (a default, a partition value) states that value instead of null.
    """

    @property
    def num_files(self) -> int:
        """The number of files."""

    def record_count(self) -> pa.Int64Array:
        """The rows of each file; negative or null is unknown."""

    def lower(self, field_id: int) -> pa.Array | None:
        """Decoded lower bounds, of the field's Arrow type."""

    def upper(self, field_id: int) -> pa.Array | None:
        """Decoded upper bounds, of the field's Arrow type."""

    def value_count(self, field_id: int) -> pa.Array | None:
        """The number of values in each file, including nulls and NaN."""

    def null_count(self, field_id: int) -> pa.Array | None:
        """The number of nulls in each file."""

    def nan_count(self, field_id: int) -> pa.Array | None:
        """The number of NaN values in each file."""


class OnceStatistics:
    """Caches the columns of other statistics, for filters that test a column several times."""

    def __init__(self, statistics: FileStatistics) -> None:
        self.num_files = statistics.num_files
        self.record_count = cache(statistics.record_count)
        self.lower = cache(statistics.lower)
        self.upper = cache(statistics.upper)
        self.value_count = cache(statistics.value_count)
        self.null_count = cache(statistics.null_count)
        self.nan_count = cache(statistics.nan_count)


class LeafStatistics:
    """Facts about the field of one predicate that the statistics prove, each as a mask over the files."""

    def __init__(self, leaf: BoundPredicate, statistics: OnceStatistics) -> None:
        self._leaf = leaf
        self._statistics = statistics
        self._id = leaf.field.field_id
        self._size = statistics.num_files
        self._values = self._counts(statistics.value_count(self._id))
        self._nulls = self._counts(statistics.null_count(self._id))
        self._nans = self._counts(statistics.nan_count(self._id)) if leaf.is_floating else np.zeros_like(self._nulls)
        # Whether each row counts as a value. Writers may leave out the rows of a null parent.
        self._is_whole = np.ones(self._size, np.bool_)
        records = self._counts(statistics.record_count())
        if len(leaf.path) > 1:
            self._is_whole = (self._values >= 0) & (self._values == records)
        else:  # each row has a value: a lower count is incomplete, so it is treated as unknown
            short = (self._values < records) & (self._values >= 0)
            self._values = np.where(short, _UNKNOWN, self._values) if short.any() else self._values

    def _counts(self, array: Any) -> npt.NDArray[np.int64]:
        return counts(array, self._size)

    def all_null(self) -> Mask:
        """Every row has null. A file without values counts, regardless of its null count."""
        return (self._values == 0) | ((self._values > 0) & (self._nulls == self._values))  # type: ignore[no-any-return]

    def no_null(self) -> Mask:
        """No row has null: the null count is zero, or it is unknown and the schema allows no null.

        A known count overrides the schema: a column that became required may hold older nulls.
        """
        if self._leaf.never_null:
            return self._nulls <= 0
        return (self._nulls == 0) & self._is_whole  # type: ignore[no-any-return]

    def all_nan(self) -> Mask:
        """Every row has NaN."""
        return (self._values >= 0) & (self._nans == self._values) & self._is_whole  # type: ignore[no-any-return]

    def no_nan(self) -> Mask:
        """No row has NaN."""
        return (self._nans == 0) | self.all_null()  # type: ignore[no-any-return]

    def nothing_comparable(self) -> Mask:
        """Every row has null or NaN."""
        known = (self._values >= 0) & (self._nulls >= 0) & (self._nans >= 0)
        return (known & (self._nulls + self._nans == self._values)) | self.all_null() | self.all_nan()  # type: ignore[no-any-return]

    def bounds(self) -> Bounds:
        """The bounds of the field."""
        statistics = self._statistics
        return Bounds(self._leaf, statistics.lower(self._id), statistics.upper(self._id), self._size)


def counts(array: Any, size: int) -> npt.NDArray[np.int64]:
    """Counts as NumPy numbers, negative where unknown."""
    if array is None:
        return np.full(size, _UNKNOWN, np.int64)
    array = one_array(array)
    if array.null_count == 0 and array.type == pa.int64():
        return array.to_numpy()  # type: ignore[no-any-return]
    return pc.fill_null(array, _UNKNOWN).to_numpy().astype(np.int64, copy=False)  # type: ignore[no-any-return]


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
