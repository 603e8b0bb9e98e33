"""Conditions on transforms of a column, as filters of the column, and as the buckets that its rows are in."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from icefield import Schema
from icefield import types as iceberg
from icefield.expressions import (
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    Or,
    StartsWith,
)
from icefield.partitioning import PartitionSpec
from icefield.scan import FileScanTask
from icefield.types import IcebergType

_DAY_ONE = date(1970, 1, 1)
_LEAST: dict[type[IcebergType], int] = {iceberg.IntegerType: -(1 << 31), iceberg.LongType: -(1 << 63)}
_OPERATORS: dict[Any, Callable[[int, int], bool]] = {
    EqualTo: operator.eq,
    NotEqualTo: operator.ne,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
}
_TIMES = (iceberg.DateType, iceberg.TimestampType, iceberg.TimestamptzType)
# Spark represents values of other types differently, and so their hashes differ.
_HASHED_ALIKE = (
    iceberg.IntegerType, iceberg.LongType, iceberg.DecimalType, *_TIMES, iceberg.StringType, iceberg.BinaryType,
    iceberg.FixedType,
)  # fmt: skip
# From here on calendars of Java and Python agree.
_FIRST_YEAR, _LAST_YEAR = 1900, 9998


def filter_of_time(
    kind: Any, path: tuple[str, ...], column: IcebergType, unit: str, value: Any
) -> BooleanExpression | None:
    """The filter of a column that compares its ``unit`` with a value: a date for ``day``, else a number since 1970.

    ``kind``: the class of the comparison. Rows match the filter if and only if the comparison holds. None if there is
    no such filter.
    """
    if not isinstance(column, _TIMES):
        return None
    try:
        start, end = (_start(column, unit, value, more) for more in (0, 1))
    except (OverflowError, ValueError):
        return None
    return None if start is None or end is None else _between(kind, path, start, end)


def filter_of_truncated(
    kind: Any, path: tuple[str, ...], column: IcebergType, width: int, value: Any
) -> BooleanExpression | None:
    """The filter of a column that compares with a value when truncated; see ``filter_of_time``."""
    if isinstance(column, iceberg.StringType):
        if kind is not EqualTo or not isinstance(value, str) or not 0 < len(value) <= width:
            return None
        return StartsWith(path, value) if len(value) == width else EqualTo(path, value)
    least = _LEAST.get(type(column))
    if least is None or not isinstance(value, int) or width < 1:
        return None
    first, start, end = (-(-each // width) * width for each in (least, value, value + 1))
    found: BooleanExpression = And(GreaterThanOrEqual(path, first), _between(kind, path, start, end))
    # Numbers below the least multiple of the width overflow when they are truncated, and become very large.
    if _OPERATORS[kind](first - width - 2 * least, value):
        return Or(found, LessThan(path, first))
    return found


@dataclass(frozen=True)
class Buckets:
    """The condition that a column's value is in some of ``count`` buckets."""

    column: tuple[str, ...]
    count: int
    among: frozenset[int]

    def __str__(self) -> str:
        return f"bucket({self.count}, {'.'.join(self.column)}) IN ({', '.join(map(str, sorted(self.among)))})"


def keeps(schema: Schema, specs: Mapping[int, PartitionSpec], wanted: list[Buckets]) -> Callable[[FileScanTask], bool]:
    """A test of a file's partition: whether the file may have rows in the wanted buckets."""
    places: dict[int, list[tuple[int, frozenset[int]]]] = {}
    for each in wanted:
        source = schema.find_field(each.column)
        if not isinstance(source.field_type, _HASHED_ALIKE):
            continue
        for spec_id, spec in specs.items():
            for place, field in enumerate(spec.fields):
                if str(field.transform) == f"bucket[{each.count}]" and field.source_id == source.field_id:
                    places.setdefault(spec_id, []).append((place, each.among))

    def is_kept(task: FileScanTask) -> bool:
        file = task.file
        return all(file.partition[place] in among for place, among in places.get(file.spec_id, ()))

    return is_kept


def _between(kind: Any, path: tuple[str, ...], start: Any, end: Any) -> BooleanExpression:
    """The filter for a comparison with a rounded value, which stands for values from ``start`` to before ``end``."""
    if kind is EqualTo:
        return And(GreaterThanOrEqual(path, start), LessThan(path, end))
    if kind is NotEqualTo:
        return Or(LessThan(path, start), GreaterThanOrEqual(path, end))
    if kind in (GreaterThan, GreaterThanOrEqual):
        return GreaterThanOrEqual(path, end if kind is GreaterThan else start)
    return LessThan(path, start if kind is LessThan else end)


def _start(column: IcebergType, unit: str, value: Any, more: int) -> date | datetime | None:
    """The first value of a column in the unit (such as the month) with the number ``value + more``."""
    hours = 0
    if unit == "day":
        day = value + timedelta(days=more) if isinstance(value, date) else None
    elif not isinstance(value, int):
        day = None
    elif unit == "hour":
        days, hours = divmod(value + more, 24)
        day = _DAY_ONE + timedelta(days=days)
    else:
        months = (value + more) * (12 if unit == "year" else 1)
        day = date(1970 + months // 12, months % 12 + 1, 1)
    if day is None or not _FIRST_YEAR <= day.year <= _LAST_YEAR:
        return None
    if isinstance(column, iceberg.DateType):
        return None if unit == "hour" else day
    zone = UTC if isinstance(column, iceberg.TimestamptzType) else None
    return datetime(day.year, day.month, day.day, hours, tzinfo=zone)
