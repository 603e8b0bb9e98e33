"""Iceberg's transforms as expressions of Spark's own, which cost no way to Python and back.

A bucket is by Murmur3 with the seed 0. Spark's ``hash`` is Murmur3 with the seed 42, and takes the hash of one column
as the seed of the next: after the only int whose hash is 0 it has the seed 0. For whole numbers, dates and instants,
which both hash as eight bytes, the two are then the same; Spark hashes the ends of strings in a way of its own.
"""

# See docs/decisions/0100.

from __future__ import annotations

from typing import Any, Final

from icefield import types as iceberg
from icefield.types import IcebergType
from pyspark.sql import Column
from pyspark.sql import functions as f

HASHES_TO_ZERO: Final = -1693959553
"""The int of which Spark's ``hash`` is 0."""

_DAY: Final = 86_400_000_000
_HOUR: Final = 3_600_000_000
_WHOLE = (iceberg.IntegerType, iceberg.LongType)


def transformed(column: Column, transform: Any, kind: IcebergType) -> Column | None:
    """A transform of a column; None for one that Spark has no expression for.

    Values are in the order of the transform's, and equal where its are; they need not be the same.
    """
    name, _, width = str(transform).rstrip("]").partition("[")
    if name == "bucket":
        number = _as_long(column, kind)
        if number is None:
            return None
        hashed = f.hash(f.lit(HASHES_TO_ZERO), number).bitwiseAND(f.lit(0x7FFFFFFF)) % f.lit(int(width))
        return f.when(number.isNotNull(), hashed)
    if name == "truncate":
        return _truncated(column, kind, int(width))
    if name in ("year", "month", "day", "hour"):
        return _since_epoch(column, kind, name)
    return None


def _as_long(column: Column, kind: IcebergType) -> Column | None:
    if isinstance(kind, _WHOLE):
        return column.cast("bigint")
    if isinstance(kind, iceberg.DateType):
        return f.datediff(column, f.lit("1970-01-01").cast("date")).cast("bigint")
    # The wall clock of a timestamp without a zone has no number in Spark that its zone has no part in.
    return f.unix_micros(column) if isinstance(kind, iceberg.TimestamptzType) else None


def _truncated(column: Column, kind: IcebergType, width: int) -> Column | None:
    if isinstance(kind, _WHOLE):
        number = column.cast("bigint")
        return number - f.pmod(number, f.lit(width).cast("bigint"))
    return f.substring(column, 1, width) if isinstance(kind, iceberg.StringType) else None


def _since_epoch(column: Column, kind: IcebergType, unit: str) -> Column | None:
    if isinstance(kind, iceberg.TimestamptzType):
        micros, size = f.unix_micros(column), _HOUR if unit == "hour" else _DAY
        start = micros - f.pmod(micros, f.lit(size))
        if unit in ("hour", "day"):
            return start
        days = f.date_add(f.lit("1970-01-01").cast("date"), f.round(start / f.lit(size)).cast("int"))
    elif isinstance(kind, iceberg.DateType | iceberg.TimestampType) and unit != "hour":
        days = column.cast("date")
    else:
        return None
    return days if unit == "day" else f.trunc(days, unit)
