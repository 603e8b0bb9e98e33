"""Internal values of Iceberg for Spark: as literals, and as JSON."""

from __future__ import annotations

import base64
import struct
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from icefield import types as iceberg
from pyspark.sql import Column, functions

from icefield_spark.roads.columns import UnfitForSpark
from icefield_spark.types import to_spark_type

_EPOCH = datetime(1970, 1, 1)
_PLAIN = (
    iceberg.BooleanType,
    iceberg.IntegerType,
    iceberg.LongType,
    iceberg.FloatType,
    iceberg.DoubleType,
    iceberg.DecimalType,
    iceberg.StringType,
    iceberg.UnknownType,
)

_AS_THEY_ARE = (
    iceberg.BooleanType,
    iceberg.IntegerType,
    iceberg.LongType,
    iceberg.DateType,
    iceberg.TimestampType,
    iceberg.TimestamptzType,
    iceberg.StringType,
)
_ENCODED: dict[type[iceberg.IcebergType], Callable[[Any], Any]] = {
    iceberg.FloatType: lambda value: struct.unpack("<i", struct.pack("<f", value))[0],
    iceberg.DoubleType: lambda value: struct.unpack("<q", struct.pack("<d", value))[0],
    iceberg.DecimalType: lambda value: format(value, "f"),
    iceberg.UUIDType: lambda value: str(uuid.UUID(bytes=bytes(value))),
    iceberg.BinaryType: lambda value: base64.b64encode(value).decode(),
    iceberg.FixedType: lambda value: base64.b64encode(value).decode(),
}


def has_json(kind: iceberg.IcebergType) -> bool:
    """Whether values of a type can be given to the JVM as JSON."""
    return isinstance(kind, _AS_THEY_ARE) or type(kind) in _ENCODED


def in_json(kind: iceberg.IcebergType, value: Any) -> Any:
    """A value of a type that ``has_json``, as the class ``Values`` in the JVM takes it."""
    return value if value is None or isinstance(kind, _AS_THEY_ARE) else _ENCODED[type(kind)](value)


def literal(kind: iceberg.IcebergType, value: Any) -> Column:
    """A value as Spark has it in a column of that type. Raises ``UnfitForSpark`` for a value that has no literal."""
    if value is not None and isinstance(kind, iceberg.IntegerType | iceberg.LongType):
        # ``lit`` and ``cast`` ask the JVM ten times each: see docs/internals/spark.md.
        return functions.expr(f"{value}{'L' if isinstance(kind, iceberg.LongType) else ''}")
    wanted = to_spark_type(kind)
    if value is None or isinstance(kind, _PLAIN):
        return functions.lit(value).cast(wanted)
    if isinstance(kind, iceberg.BinaryType | iceberg.FixedType):
        return functions.lit(bytearray(value)).cast(wanted)
    if isinstance(kind, iceberg.UUIDType):
        return functions.lit(str(uuid.UUID(bytes=bytes(value))))
    try:
        if isinstance(kind, iceberg.DateType):
            return functions.expr(f"DATE '{(_EPOCH + timedelta(days=value)).date().isoformat()}'")
        if isinstance(kind, iceberg.TimestampType | iceberg.TimestamptzType):
            wall = (_EPOCH + timedelta(microseconds=value)).isoformat(" ")
            if isinstance(kind, iceberg.TimestampType):
                return functions.expr(f"TIMESTAMP_NTZ '{wall}'")
            return functions.expr(f"TIMESTAMP_LTZ '{wall}+00:00'")
    except OverflowError:
        raise UnfitForSpark(f"a value of type {kind} is beyond the years that Spark's strings reach") from None
    raise UnfitForSpark(f"a value of type {kind} has no literal in Spark")
