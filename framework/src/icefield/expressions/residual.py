"""Residuals: the rest of a filter inside a partition, made of the predicates that its values do not decide.

Spec: Scan Planning. A row of the partition matches the filter if, and only if, it matches the residual.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.expressions.arrow import evaluate
from icefield.expressions.bound import BoundPredicate, bound_leaves, map_leaves, not_bound
from icefield.expressions.expressions import AlwaysFalse, AlwaysTrue, And, BooleanExpression, Op, Or
from icefield.expressions.projection import Projector
from icefield.partitioning import PartitionSpec
from icefield.schema import Schema

_MOST_CACHED = 65_536
_MOST_CODES = 2**31

_OPEN, _TRUE, _FALSE = 0, 1, 2


class Residuals:
    """The residuals of one bound filter under one spec.

    Each predicate is projected once. Partitions that decide the same predicates share one residual object.
    Raises ``InvalidExpression`` for an expression that is not bound.
    """

    def __init__(self, spec: PartitionSpec, schema: Schema, expression: BooleanExpression) -> None:
        projector = Projector(spec, schema)
        self._expression = expression
        self._names = [field.name for field in spec.fields]
        self._leaves: list[tuple[BoundPredicate, BooleanExpression, BooleanExpression]] = []
        for leaf in dict.fromkeys(bound_leaves(expression)):
            inclusive, strict = projector.inclusive(leaf), projector.strict(leaf)
            if not (isinstance(inclusive, AlwaysTrue) and isinstance(strict, AlwaysFalse)):
                self._leaves.append((leaf, inclusive, strict))
        self._by_states: dict[bytes, BooleanExpression] = {}
        self._by_partition: dict[tuple[Any, ...], BooleanExpression] = {}

    @property
    def is_constant(self) -> bool:
        """Whether the filter itself is the residual of every partition."""
        return not self._leaves

    def of(self, partition: tuple[Any, ...]) -> BooleanExpression:
        """The residual in one partition, given by its internal values in the order of the spec's fields."""
        if self.is_constant:
            return self._expression
        found = self._by_partition.get(partition)
        if found is None:
            if len(self._by_partition) >= _MOST_CACHED:
                self._by_partition.clear()
            row = dict(zip(self._names, partition, strict=True))
            states = [
                _TRUE if row_matches(strict, row) else _OPEN if row_matches(inclusive, row) else _FALSE
                for _, inclusive, strict in self._leaves
            ]
            found = self._by_partition[partition] = self._with_states(bytes(states))
        return found

    def partition_groups(self, partitions: pa.StructArray) -> tuple[npt.NDArray[np.int64], list[BooleanExpression]]:
        """The residuals of many partitions: for each row its index in the list of distinct residuals.

        ``partitions`` has a child for each field of the spec, under its name. Rows may repeat.
        """
        count = len(partitions)
        if self.is_constant or count == 0:
            return np.zeros(count, np.int64), [self._expression]
        states = np.empty((len(self._leaves), count), np.uint8)
        for row, (_, inclusive, strict) in enumerate(self._leaves):
            proven = evaluate(strict, partitions).to_numpy(zero_copy_only=False)
            possible = evaluate(inclusive, partitions).to_numpy(zero_copy_only=False)
            states[row] = np.where(proven, _TRUE, np.where(possible, _OPEN, _FALSE))
        groups, firsts = _distinct_columns(states)
        return groups, [self._with_states(states[:, first].tobytes()) for first in firsts]

    def _with_states(self, states: bytes) -> BooleanExpression:
        found = self._by_states.get(states)
        if found is None:
            known = {leaf: state for (leaf, *_), state in zip(self._leaves, states, strict=True) if state}

            def settle(leaf: BoundPredicate) -> BooleanExpression:
                state = known.get(leaf, _OPEN)
                if state == _OPEN:
                    return leaf
                return AlwaysTrue() if state == _TRUE else AlwaysFalse()

            if len(self._by_states) >= _MOST_CACHED:
                self._by_states.clear()
            found = self._by_states[states] = map_leaves(self._expression, settle)
        return found


def _distinct_columns(states: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """A number for each column of a matrix, the same for equal columns, and the first column with each number."""
    codes = np.zeros(states.shape[1], np.int64)
    highest = 0
    for row in states:
        codes = codes * 3 + row
        highest = highest * 3 + 2
        if highest > _MOST_CODES:
            codes = np.unique(codes, return_inverse=True)[1].reshape(-1)
            highest = int(codes.max())
    _, firsts, groups = np.unique(codes, return_index=True, return_inverse=True)
    return groups.reshape(-1).astype(np.int64, copy=False), firsts


def _among(value: Any, values: tuple[Any, ...]) -> bool:
    """Whether a sorted tuple contains a value."""
    place = bisect_left(values, value)
    return place < len(values) and bool(values[place] == value)


_TESTS: dict[Op, Callable[[Any, Any], bool]] = {
    Op.LT: operator.lt,
    Op.LT_EQ: operator.le,
    Op.GT: operator.gt,
    Op.GT_EQ: operator.ge,
    Op.EQ: operator.eq,
    Op.NOT_EQ: operator.ne,
    # Python compares strings by code point, which is the order of their UTF-8.
    Op.IN: lambda value, values: _among(value, values),
    Op.NOT_IN: lambda value, values: not _among(value, values),
    Op.STARTS_WITH: lambda value, start: value.startswith(start),
    Op.NOT_STARTS_WITH: lambda value, start: not value.startswith(start),
}


def row_matches(expression: BooleanExpression, row: Mapping[str, Any]) -> bool:
    """Whether a row of internal values by column name matches; false where that is unknown.

    It evaluates without Arrow, which suits the single row of a partition, not data. Raises ``InvalidExpression`` for an
    expression that is not bound.
    """
    match expression:
        case AlwaysTrue() | AlwaysFalse():
            return isinstance(expression, AlwaysTrue)
        case And():
            return all(row_matches(child, row) for child in expression.children)
        case Or():
            return any(row_matches(child, row) for child in expression.children)
        case BoundPredicate():
            return _leaf_matches(expression, row)
    raise not_bound(expression)


def _leaf_matches(leaf: BoundPredicate, row: Mapping[str, Any]) -> bool:
    value: Any = row
    for name in leaf.path:
        value = None if value is None else value[name]
    match leaf.op:
        case Op.IS_NULL:
            return value is None
        case Op.NOT_NULL:
            return value is not None
        case Op.IS_NAN | Op.NOT_NAN:
            return (value is not None and math.isnan(value)) is (leaf.op is Op.IS_NAN)
    return value is not None and _TESTS[leaf.op](value, leaf.value)
