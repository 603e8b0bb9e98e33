"""Row filters of a read request: in another library's terms, and against the metrics of parts of a file.

A filter is a hint. Its translations are inclusive: they may keep rows that do not match, but never drop matching rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from icefield.expressions import And, BooleanExpression, BoundPredicate, Or, bound_leaves, inclusive_metrics
from icefield.metadata.metrics import Metrics
from icefield.types.arrow.types import child_fields, field_id, to_arrow_type

T = TypeVar("T")


def translate_filter(
    row_filter: BooleanExpression,
    leaf: Callable[[BoundPredicate], T | None],
    all_of: Callable[[list[T]], T],
    any_of: Callable[[list[T]], T],
) -> T | None:
    """The filter in the terms of another library, or None if every row must be read.

    ``leaf`` translates one test, or returns None if the other library has no exact equivalent. Such a test counts as
    always true: it is left out of an ``And``, and an ``Or`` with it is None as a whole. ``all_of`` and ``any_of`` join
    two or more tests.
    """
    if isinstance(row_filter, And | Or):
        made = [translate_filter(child, leaf, all_of, any_of) for child in row_filter.children]
        kept = [child for child in made if child is not None]
        if isinstance(row_filter, Or):
            return any_of(kept) if len(kept) == len(made) else None
        if len(kept) < 2:
            return kept[0] if kept else None
        return all_of(kept)
    return leaf(row_filter) if isinstance(row_filter, BoundPredicate) else None


def parts_that_may_match(row_filter: BooleanExpression, columns: pa.Schema, metrics: Sequence[Metrics]) -> list[bool]:
    """For each part of a file whether a row of it may match the filter, by the part's metrics.

    ``columns`` are the columns of the request; they give the types of bounds in the file. Missing metrics are unknown
    and skip nothing.
    """
    held: dict[int, pa.DataType] = {}
    _types(list(columns), held)
    wanted = {leaf.field.field_id: to_arrow_type(leaf.field.field_type) for leaf in bound_leaves(row_filter)}
    return [bool(kept) for kept in inclusive_metrics(row_filter, _PartStatistics(metrics, held, wanted))]


def _types(fields: list[pa.Field], held: dict[int, pa.DataType]) -> None:
    for field in fields:
        number = field_id(field)
        if number is not None:
            held[number] = field.type
        if pa.types.is_struct(field.type):
            _types(child_fields(field.type), held)


class _PartStatistics:
    """The metrics of some parts as arrays, an item a part; null where a part states nothing."""

    def __init__(
        self, metrics: Sequence[Metrics], held: dict[int, pa.DataType], wanted: dict[int, pa.DataType]
    ) -> None:
        self._metrics = metrics
        self._held = held
        self._wanted = wanted

    @property
    def num_files(self) -> int:
        return len(self._metrics)

    def record_count(self) -> pa.Array:
        return pa.array([one.record_count for one in self._metrics], pa.int64())

    def value_count(self, field_id: int) -> pa.Array:
        return pa.array([one.value_counts.get(field_id) for one in self._metrics], pa.int64())

    def null_count(self, field_id: int) -> pa.Array:
        return pa.array([one.null_value_counts.get(field_id) for one in self._metrics], pa.int64())

    def nan_count(self, field_id: int) -> pa.Array:
        return pa.array([one.nan_value_counts.get(field_id) for one in self._metrics], pa.int64())

    def lower(self, field_id: int) -> pa.Array | None:
        return self._bounds(field_id, [one.lower_bounds.get(field_id) for one in self._metrics])

    def upper(self, field_id: int) -> pa.Array | None:
        return self._bounds(field_id, [one.upper_bounds.get(field_id) for one in self._metrics])

    def _bounds(self, field_id: int, values: list[Any]) -> pa.Array | None:
        """Bounds in the filter's type: a column of an older file may be narrower than the table's."""
        held, wanted = self._held.get(field_id), self._wanted.get(field_id)
        if held is None or wanted is None:
            return None
        try:
            bounds = pa.array(values, held)
            return bounds if held == wanted else bounds.cast(wanted)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            return None
