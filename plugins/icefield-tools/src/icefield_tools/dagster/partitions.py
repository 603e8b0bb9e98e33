"""Partitions of assets as filters and partition specs of tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from dagster import (
    DagsterInvalidDefinitionError,
    HourlyPartitionsDefinition,
    MonthlyPartitionsDefinition,
    MultiPartitionsDefinition,
    PartitionsDefinition,
    TimeWindowPartitionsDefinition,
)
from icefield.expressions import AlwaysFalse, And, BooleanExpression, GreaterThanOrEqual, In, LessThan, Or

Columns = str | Mapping[str, str]
"""The metadata ``partition_expr``: a column, or for several dimensions the column of each."""


def filter_of(
    partitions: PartitionsDefinition, keys: Iterable[str], columns: Columns, schema: pa.Schema
) -> BooleanExpression:
    """The filter that holds for the rows of partitions."""
    if isinstance(partitions, MultiPartitionsDefinition):
        dimensions = {each.name: each.partitions_def for each in partitions.partitions_defs}
        found: list[BooleanExpression] = []
        for key in keys:
            parts = partitions.get_partition_key_from_str(key).keys_by_dimension
            named = ((parts[name], definition, _column(columns, name)) for name, definition in dimensions.items())
            found.append(_all(filter_of(definition, [part], column, schema) for part, definition, column in named))
        return _any(found)
    column = _column(columns, None)
    if column not in schema.names:
        raise DagsterInvalidDefinitionError(
            f"the metadata partition_expr names the column {column!r}; the table has {', '.join(schema.names)}"
        )
    held = schema.field(column).type
    if isinstance(partitions, TimeWindowPartitionsDefinition) and not pa.types.is_string(held):
        return _any(
            And(GreaterThanOrEqual(column, _time(start, held)), LessThan(column, _time(end, held)))
            for start, end in _windows(partitions, keys)
        )
    values = pa.array(list(keys), pa.string()).cast(held).to_pylist()
    return In(column, values) if values else AlwaysFalse()


def spec_of(partitions: PartitionsDefinition, columns: Columns, schema: pa.Schema) -> list[str]:
    """The partition spec of a new table: times by hour, day or month, other keys by value."""
    if isinstance(partitions, MultiPartitionsDefinition):
        found = [
            spec_of(each.partitions_def, _column(columns, each.name), schema) for each in partitions.partitions_defs
        ]
        return [part for parts in found for part in parts]
    column = _column(columns, None)
    held = schema.field(column).type if column in schema.names else pa.string()
    if not pa.types.is_temporal(held):
        return [column]
    if isinstance(partitions, MonthlyPartitionsDefinition):
        return [f"month({column})"]
    is_hourly = isinstance(partitions, HourlyPartitionsDefinition) and pa.types.is_timestamp(held)
    return [f"hour({column})" if is_hourly else f"day({column})"]


def _column(columns: Columns, dimension: str | None) -> str:
    found = columns.get(dimension or "") if isinstance(columns, Mapping) else columns
    if not found:
        raise DagsterInvalidDefinitionError(f"the metadata partition_expr names no column for {dimension!r}")
    return found


def _windows(partitions: TimeWindowPartitionsDefinition, keys: Iterable[str]) -> list[tuple[datetime, datetime]]:
    """The windows of partitions in order; neighbours are one."""
    found: list[tuple[datetime, datetime]] = []
    for window in sorted(partitions.time_window_for_partition_key(key) for key in keys):
        if found and found[-1][1] >= window.start:
            found[-1] = (found[-1][0], max(found[-1][1], window.end))
        else:
            found.append((window.start, window.end))
    return found


def _time(moment: datetime, held: pa.DataType) -> Any:
    """A moment as a value of a column: its day, its time on the clock, or its instant."""
    if pa.types.is_date(held):
        return moment.date()
    return moment.replace(tzinfo=None) if held.tz is None else moment.astimezone(UTC)


def _all(parts: Iterable[BooleanExpression]) -> BooleanExpression:
    found: Sequence[BooleanExpression] = list(parts)
    return found[0] if len(found) == 1 else And(*found)


def _any(parts: Iterable[BooleanExpression]) -> BooleanExpression:
    found: Sequence[BooleanExpression] = list(parts)
    if not found:
        return AlwaysFalse()
    return found[0] if len(found) == 1 else Or(*found)
