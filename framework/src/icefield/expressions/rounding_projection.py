"""Projections through transforms that round down: year, month, day, hour, and truncate.

Truncate of strings and bytes makes a partition of the first W code points or bytes. The other transforms round
numbers: all values are handled as integers, a decimal by its unscaled value. So each value has a predecessor and a
successor, and every range can be written with a closed end.

Two flaws of stored numbers are allowed for. Old writers stored years, months, days and hours before 1970 one too high,
unless nothing was rounded. Near the limits of a type a rounded value may overflow and wrap around, so that a partition
at one end holds rows of the other end. A long column may have been an int when the file was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from icefield.expressions.bound import BoundPredicate
from icefield.expressions.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    BooleanExpression,
    Op,
    conjunction,
    disjunction,
)
from icefield.partitioning.transforms import HourTransform, Transform, TruncateTransform
from icefield.types import (
    DateType,
    DecimalType,
    IcebergType,
    IntegerType,
    NestedField,
    TimestampType,
    TimestamptzType,
)
from icefield.types.values import decimal_from_unscaled, unscaled
from icefield.types.values.calendar import INT32, INT64

_MICROS_PER_HOUR = 3_600_000_000


def on(target: NestedField, op: Op, value: Any = None) -> BoundPredicate:
    """A predicate on a partition field."""
    return BoundPredicate(op, target, (target.name,), value)


def among(target: NestedField, values: Iterable[Any], *, negated: bool) -> BoundPredicate:
    """A test for one of several partition values; for none of them if ``negated``."""
    unique = set(values)
    if len(unique) == 1:
        return on(target, Op.NOT_EQ if negated else Op.EQ, unique.pop())
    return on(target, Op.NOT_IN if negated else Op.IN, unique)


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


def project_ordered(
    transform: Transform, target: NestedField, leaf: BoundPredicate, inclusive: bool
) -> BooleanExpression | None:
    """The projection of a comparison, or None where it has none."""
    rounding = _rounding(transform, leaf.field.field_type, target)
    match leaf.op:
        case Op.LT | Op.LT_EQ:
            last = rounding.number(leaf.value) - (leaf.op is Op.LT)
            return rounding.reaches_down_from(last) if inclusive else rounding.stays_below(last + 1)
        case Op.GT | Op.GT_EQ:
            first = rounding.number(leaf.value) + (leaf.op is Op.GT)
            return rounding.reaches_up_from(first) if inclusive else rounding.stays_above(first - 1)
        case Op.EQ | Op.IN if inclusive:
            return rounding.equal(leaf.value if leaf.op is Op.IN else (leaf.value,), negated=False)
        case Op.NOT_EQ | Op.NOT_IN if not inclusive:
            return rounding.equal(leaf.value if leaf.op is Op.NOT_IN else (leaf.value,), negated=True)
    return None


@dataclass(frozen=True, slots=True)
class _Rounding:
    """One transform of one column.

    ``round`` does not wrap around. ``of_lowest`` and ``of_highest`` match the partitions that hold rows of the lower or
    upper end because their value wrapped around. ``of_int`` maps a rounded value to the value that was stored while
    the column was an int.
    """

    target: NestedField
    round: Callable[[int], int]
    source_limits: tuple[int, int]
    limits: tuple[int, int]
    scale: int | None = None
    had_old_writers: bool = False
    of_lowest: BoundPredicate | None = None
    of_highest: BoundPredicate | None = None
    of_int: Mapping[int, int] = field(default_factory=dict)

    def number(self, value: Any) -> int:
        """A source value as an integer."""
        return int(value) if self.scale is None else unscaled(value, self.scale)

    def _on(self, op: Op, number: int) -> BooleanExpression:
        return on(self.target, op, number if self.scale is None else decimal_from_unscaled(number, self.scale))

    def reaches_down_from(self, last: int) -> BooleanExpression:
        """The partitions that may hold a value up to ``last``."""
        if last < self.source_limits[0]:
            return AlwaysFalse()
        rounded = self._as_old_writers(self.round(last))
        if rounded > self.limits[1]:
            return on(self.target, Op.NOT_NULL)
        return disjunction((self._on(Op.LT_EQ, max(rounded, self.limits[0])), self.of_lowest or AlwaysFalse()))

    def reaches_up_from(self, first: int) -> BooleanExpression:
        """The partitions that may hold a value from ``first``."""
        if first > self.source_limits[1]:
            return AlwaysFalse()
        rounded = self.round(first)
        if rounded < self.limits[0]:
            return on(self.target, Op.NOT_NULL)
        upper = self._on(Op.GT_EQ, rounded) if rounded <= self.limits[1] else AlwaysFalse()
        return disjunction((upper, self.of_highest or AlwaysFalse()))

    def stays_below(self, end: int) -> BooleanExpression:
        """The partitions that hold only values below ``end``."""
        if end > self.source_limits[1]:
            return on(self.target, Op.NOT_NULL)
        if end <= self.source_limits[0] or (rounded := self.round(end)) < self.limits[0]:
            return AlwaysFalse()
        below = self._on(Op.LT, rounded) if rounded <= self.limits[1] else on(self.target, Op.NOT_NULL)
        return conjunction((below, ~self.of_highest if self.of_highest else AlwaysTrue()))

    def stays_above(self, end: int) -> BooleanExpression:
        """The partitions that hold only values above ``end``."""
        if end < self.source_limits[0]:
            return on(self.target, Op.NOT_NULL)
        if end >= self.source_limits[1] or (rounded := self._as_old_writers(self.round(end))) >= self.limits[1]:
            return AlwaysFalse()
        above = self._on(Op.GT, rounded) if rounded >= self.limits[0] else self._on(Op.GT_EQ, self.limits[0])
        return conjunction((above, ~self.of_lowest if self.of_lowest else AlwaysTrue()))

    def equal(self, values: Iterable[Any], *, negated: bool) -> BooleanExpression | None:
        """The partitions that may hold one of some values. If ``negated``, the partitions that hold none of them."""
        rounded = {self.round(self.number(value)) for value in values}
        if self.scale is not None:
            if min(rounded) < self.limits[0]:
                return None
            return among(self.target, (decimal_from_unscaled(one, self.scale) for one in rounded), negated=negated)
        stored = {_wrapped(one, self.limits) for one in rounded}
        stored |= {self.of_int[one] for one in rounded if one in self.of_int}
        return among(self.target, stored | {self._as_old_writers(one) for one in stored}, negated=negated)

    def _as_old_writers(self, rounded: int) -> int:
        """The highest value that a writer ever stored for a source value that rounds to ``rounded``."""
        return rounded + 1 if self.had_old_writers and rounded < 0 else rounded


def _wrapped(number: int, limits: tuple[int, int]) -> int:
    low, high = limits
    return (number - low) % (high - low + 1) + low


def _rounding(transform: Transform, source: IcebergType, target: NestedField) -> _Rounding:
    if isinstance(transform, TruncateTransform):
        return _truncation(transform.width, source, target)
    if isinstance(transform, HourTransform) and isinstance(source, TimestampType | TimestamptzType):
        # Hours beyond the year 246953 do not fit an int.
        highest = on(target, Op.LT_EQ, INT64[1] // _MICROS_PER_HOUR - 2**32)
        lowest = on(target, Op.GT_EQ, INT64[0] // _MICROS_PER_HOUR + 2**32)
        return _Rounding(target, lambda micros: micros // _MICROS_PER_HOUR, INT64, INT32, None, True, lowest, highest)

    def rounded(value: int) -> int:
        return int(transform.apply_value(value, source))

    return _Rounding(target, rounded, INT32 if isinstance(source, DateType) else INT64, INT32, None, True)


def _truncation(width: int, source: IcebergType, target: NestedField) -> _Rounding:
    def rounded(value: int) -> int:
        return value // width * width

    if isinstance(source, DecimalType):
        most = 10**source.precision - 1
        return _Rounding(target, rounded, (-most, most), (-most, most), source.scale)
    limits = INT32 if isinstance(source, IntegerType) else INT64
    lowest = rounded(INT32[0])
    of_int = {lowest: _wrapped(lowest, INT32)} if limits == INT64 and lowest < INT32[0] else {}
    lowest = rounded(limits[0])
    strays = [*of_int.values(), *([_wrapped(lowest, limits)] if lowest < limits[0] else [])]
    of_lowest = among(target, strays, negated=False) if strays else None
    return _Rounding(target, rounded, limits, limits, of_lowest=of_lowest, of_int=of_int)
