"""The rows of partitions as a filter on columns: from partition values back to their source values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import numpy as np

from icefield import types as iceberg
from icefield.expressions import AlwaysTrue, BooleanExpression, BoundPredicate, Op, conjunction, disjunction
from icefield.partitioning import PartitionField, PartitionSpec, transforms
from icefield.schema import Schema
from icefield.types.values.calendar import INT32, INT64

_UNITS: Final[dict[type[transforms.Transform], str]] = {
    transforms.YearTransform: "Y",
    transforms.MonthTransform: "M",
    transforms.DayTransform: "D",
    transforms.HourTransform: "h",
}
_DAY_MICROS: Final = 86_400_000_000
_HOUR_MICROS: Final = 3_600_000_000

_MOST_PARTITIONS: Final = 200
"""Above this number partitions are described together, column by column."""


def rows_of_partitions(spec: PartitionSpec, schema: Schema, tuples: Collection[Sequence[Any]]) -> BooleanExpression:
    """A bound filter that every row of the partitions passes; rows of other partitions may pass as well.

    A partition field adds no condition if its column is gone or its transform unknown; a bucket only excludes null.
    """
    columns = [_SourceColumn(field, schema) for field in spec.fields]
    if len(tuples) <= _MOST_PARTITIONS:
        return disjunction(
            conjunction(column.rows((value,)) for column, value in zip(columns, values, strict=True))
            for values in tuples
        )
    return conjunction(column.rows(values) for column, values in zip(columns, zip(*tuples, strict=True), strict=True))


class _SourceColumn:
    """The source column of a partition field."""

    def __init__(self, field: PartitionField, schema: Schema) -> None:
        self._transform = field.transform
        self._field: iceberg.NestedField | None = schema.id_to_field.get(field.source_id) if field.is_known else None
        if self._field is not None:
            self._path = schema.accessor_path(field.source_id)

    def rows(self, values: Iterable[Any]) -> BooleanExpression:
        """A filter for the rows with one of some partition values; for many values it may be a range around them."""
        if self._field is None or not isinstance(
            self._transform,
            transforms.IdentityTransform
            | transforms.TemporalTransform
            | transforms.TruncateTransform
            | transforms.BucketTransform,
        ):
            return AlwaysTrue()
        held = set(values)
        known = {value for value in held if value is not None and value == value}
        parts = [] if None not in held else [self._leaf(Op.IS_NULL)]
        if any(value != value for value in held):
            parts.append(self._leaf(Op.IS_NAN))
        if known:
            parts.append(self._between(known))
        return disjunction(parts)

    def _between(self, known: set[Any]) -> BooleanExpression:
        assert self._field is not None
        kind = self._field.field_type
        if isinstance(self._transform, transforms.IdentityTransform):
            return self._leaf(Op.IN, tuple(known))
        if isinstance(self._transform, transforms.TemporalTransform):
            limits, scale = INT32, 0
            if isinstance(kind, iceberg.AnyTimestampType):
                limits, scale = INT64, 10 ** (kind.digits - 6)
            start = _begin(self._transform, int(min(known)), scale)
            end = _begin(self._transform, int(max(known)) + 1, scale) - 1
            return self._range(start, end, limits)
        if isinstance(self._transform, transforms.TruncateTransform):
            if isinstance(kind, iceberg.IntegerType | iceberg.LongType):
                limits = INT32 if isinstance(kind, iceberg.IntegerType) else INT64
                return self._range(min(known), max(known) + self._transform.width - 1, limits)
            if isinstance(kind, iceberg.StringType) and len(known) == 1:
                return self._leaf(Op.STARTS_WITH, *known) if all(known) else self._leaf(Op.EQ, "")
            return self._leaf(Op.GT_EQ, min(known))
        return self._leaf(Op.NOT_NULL)

    def _range(self, start: int, end: int, limits: tuple[int, int]) -> BooleanExpression:
        return conjunction(
            (self._leaf(Op.GT_EQ, max(start, limits[0])), self._leaf(Op.LT_EQ, min(end, limits[1]))),
        )

    def _leaf(self, op: Op, value: Any = None) -> BooleanExpression:
        assert self._field is not None
        return BoundPredicate(op, self._field, self._path, value)


def _begin(transform: transforms.TemporalTransform, value: int, scale: int) -> int:
    """The first day (``scale`` 0), microsecond (1) or nanosecond (1000) of a unit of time."""
    if isinstance(transform, transforms.HourTransform):
        micros = value * _HOUR_MICROS
    else:
        days = int(np.array(value, f"datetime64[{_UNITS[type(transform)]}]").astype("datetime64[D]").astype(np.int64))
        if not scale:
            return days
        micros = days * _DAY_MICROS
    return micros * scale
