"""Iceberg's transforms as expressions of Spark's own, which need no round trip to Python.

Iceberg's bucket is Murmur3 with the seed 0. Spark's ``hash`` is Murmur3 with the seed 42, and takes the hash of one
column as the seed of the next: after the only int with the hash 0, the seed is 0. For integers, dates and timestamps,
which both hash as eight bytes, the hashes are then equal; Spark hashes the ends of strings differently.
"""

from __future__ import annotations

from typing import Final

from icefield import types as iceberg
from icefield.types import IcebergType

HASHES_TO_ZERO: Final = -1693959553
"""The int that Spark's ``hash`` maps to 0."""

_DAY: Final = 86_400_000_000
_HOUR: Final = 3_600_000_000
_EPOCH: Final = "DATE '1970-01-01'"
_GREATEST_LONG: Final = "9223372036854775807L"
_WHOLE = (iceberg.IntegerType, iceberg.LongType)


def transformed(value: str, transform: object, kind: IcebergType) -> str | None:
    """A transform of an expression of a type; None if Spark has no expression for it.

    Results equal the transform's results, except that a decimal has one more digit.
    """
    name, width = parted(transform)
    return computed(name, width, value, kind)


def parted(transform: object) -> tuple[str, str]:
    """The name of a transform and its width, or an empty string for a transform without a width."""
    name, _, width = str(transform).rstrip("]").partition("[")
    return name, width


def computed(name: str, width: str, value: str, kind: IcebergType) -> str | None:
    """As ``transformed``; ``width``, where the transform has one, is an expression as well."""
    if name == "bucket":
        number = _as_long(value, kind)
        if number is None:
            return None
        return f"if({value} IS NULL, NULL, (hash({HASHES_TO_ZERO}, {number}) & 2147483647) % {width})"
    if name == "truncate":
        return _truncated(value, kind, width)
    return _since_epoch(value, kind, name) if name in ("year", "month", "day", "hour") else None


def _as_long(value: str, kind: IcebergType) -> str | None:
    if isinstance(kind, _WHOLE):
        return f"CAST({value} AS bigint)"
    if isinstance(kind, iceberg.DateType):
        return f"CAST(datediff({value}, {_EPOCH}) AS bigint)"
    if isinstance(kind, iceberg.TimestampType):
        # The number comes from the parts of the timestamp: Spark's own conversion of a timestamp without a zone depends
        # on the zone of the session.
        seconds = f"CAST(extract(SECOND FROM {value}) * 1000000 AS bigint)"
        hours = f"datediff(CAST({value} AS date), {_EPOCH}) * 24L + hour({value})"
        return f"(({hours}) * 60 + minute({value})) * 60000000 + {seconds}"
    return f"unix_micros({value})" if isinstance(kind, iceberg.TimestamptzType) else None


def _truncated(value: str, kind: IcebergType, width: str) -> str | None:
    if isinstance(kind, iceberg.IntegerType):
        number = f"CAST({value} AS bigint)"
        down = f"({number} - pmod({number}, {width}))"
        return f"CAST(if({down} < -2147483648, {down} + 4294967296, {down}) AS int)"
    if isinstance(kind, iceberg.LongType):
        # A result below the least long wraps around to the greatest numbers, but Spark raises an error for an overflow.
        # A negative number without its sign bit is its distance from the least long.
        rest, distance = f"pmod({value}, {width})", f"({value} & {_GREATEST_LONG})"
        wrapped = f"{_GREATEST_LONG} - ({rest} - {distance} - 1)"
        return f"if({value} >= 0 OR {rest} <= {distance}, {value} - {rest}, {wrapped})"
    return f"substring({value}, 1, {width})" if isinstance(kind, iceberg.StringType | iceberg.BinaryType) else None


def _since_epoch(value: str, kind: IcebergType, unit: str) -> str | None:
    if isinstance(kind, iceberg.TimestamptzType):
        micros, size = f"unix_micros({value})", _HOUR if unit == "hour" else _DAY
        whole = f"CAST(({micros} - pmod({micros}, {size})) div {size} AS int)"
        if unit == "hour":
            return whole
        days = f"date_add({_EPOCH}, {whole})"
    elif isinstance(kind, iceberg.TimestampType):
        days = f"CAST({value} AS date)"
        if unit == "hour":
            return f"(datediff({days}, {_EPOCH}) * 24 + hour({value}))"
    elif isinstance(kind, iceberg.DateType) and unit != "hour":
        days = value
    else:
        return None
    years = f"(year({days}) - 1970)"
    return {"year": years, "month": f"({years} * 12 + month({days}) - 1)", "day": days}[unit]
