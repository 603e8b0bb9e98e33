"""Iceberg's functions in SQL, as expressions of Spark's own, and in Arrow where it has none."""

# See docs/decisions/0205.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import icefield
import pyarrow as pa
import pyarrow.compute as pc
from icefield import types as iceberg
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.toolkit import parse_transform
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as spark

from icefield_spark.failures import cause_alone
from icefield_spark.quoting import constant, spelt_type
from icefield_spark.sql.calls import UNITS, VERSION
from icefield_spark.transforms import computed

# From Spark 4.1 on.
_arrow_udf: Callable[..., Any] | None = getattr(f, "arrow_udf", None)
_SMALL = (spark.ByteType, spark.ShortType)
_WIDTHS = (*_SMALL, spark.IntegerType)
_KINDS: Final[dict[type[spark.DataType], iceberg.IcebergType]] = {
    spark.ByteType: iceberg.IntegerType(),
    spark.ShortType: iceberg.IntegerType(),
    spark.IntegerType: iceberg.IntegerType(),
    spark.LongType: iceberg.LongType(),
    spark.DateType: iceberg.DateType(),
    spark.TimestampType: iceberg.TimestamptzType(),
    spark.TimestampNTZType: iceberg.TimestampType(),
    spark.StringType: iceberg.StringType(),
    spark.BinaryType: iceberg.BinaryType(),
}
_NUMBERS = (iceberg.IntegerType, iceberg.LongType, iceberg.DecimalType)
_TIMES = (iceberg.TimestamptzType, iceberg.TimestampType)
_TAKEN: Final[dict[str, tuple[type[iceberg.IcebergType], ...]]] = {
    "bucket": (*_NUMBERS, iceberg.DateType, *_TIMES, iceberg.StringType, iceberg.BinaryType),
    "truncate": (*_NUMBERS, iceberg.StringType, iceberg.BinaryType),
    "years": (iceberg.DateType, *_TIMES),
    "months": (iceberg.DateType, *_TIMES),
    "days": (iceberg.DateType, *_TIMES),
    "hours": _TIMES,
}
_CALLED: Final = {"bucket": "icefield_bucket", "truncate": "icefield_truncate_{}_{}"}


def expression_of(
    session: SparkSession, name: str, given: Sequence[str], kinds_of: Callable[[], Sequence[spark.DataType]]
) -> str:
    """A call as an expression that Spark knows. ``given``: its arguments, ``kinds_of``: gives their types.

    Raises ``InvalidArgument`` for arguments that the function does not take.
    """
    wanted = 0 if name == VERSION else 1 if name in UNITS else 2
    if len(given) != wanted:
        raise InvalidArgument(f"system.{name} takes {wanted} argument{'s' * (wanted != 1)}, not {len(given)}")
    if name == VERSION:
        return constant(icefield.__version__)
    kinds = kinds_of()
    value, kind = given[-1], kinds[-1]
    source = _source(kind)
    if not isinstance(source, _TAKEN[name]):
        taken = ", ".join(sorted({str(each) for each in _KINDS.values() if isinstance(each, _TAKEN[name])}))
        decimals = " and decimals" if name in ("bucket", "truncate") else ""
        raise InvalidArgument(f"system.{name} takes {taken}{decimals}, not {kind.simpleString()}: {value:.100}")
    if wanted == 2 and not isinstance(kinds[0], _WIDTHS):
        raise InvalidArgument(f"the first argument of system.{name} is an int, not {kinds[0].simpleString()}")
    found = computed(UNITS.get(name, name), given[0], value, source)
    if found is None:
        found = f"{_in_arrow(session, name, kind)}({given[0]}, {value})"
    elif name == "truncate" and isinstance(kind, _SMALL):
        found = _narrowed(found, kind)
    # Spark has settled the type when it optimizes; were it another one, the result would be of another function.
    wrong = constant(f"the argument of system.{name} is no {kind.simpleString()} here: cast it")
    return f"if(typeof({value}) = {constant(kind.simpleString())}, {found}, raise_error({wrong}))"


def _source(kind: spark.DataType) -> iceberg.IcebergType | None:
    if isinstance(kind, spark.DecimalType):
        return iceberg.DecimalType(kind.precision, kind.scale)
    return _KINDS.get(type(kind))


def _narrowed(number: str, kind: spark.DataType) -> str:
    """A number that may be less than the least one of a type, where it goes on at the greatest."""
    bits = 8 if isinstance(kind, spark.ByteType) else 16
    least, size = -(1 << bits - 1), 1 << bits
    return f"CAST(if({number} < {least}, {number} + {size}, {number}) AS {spelt_type(kind)})"


def _in_arrow(session: SparkSession, name: str, kind: spark.DataType) -> str:
    """The name of a function of the session that computes a transform a batch at a time."""
    if _arrow_udf is None:
        raise UnsupportedFeature(f"system.{name} of {kind.simpleString()} takes Spark 4.1 or later")
    if name == "bucket":
        called = _CALLED[name]
        made = _arrow_udf(buckets, spark.IntegerType())
    else:
        assert isinstance(kind, spark.DecimalType)
        called = _CALLED[name].format(kind.precision, kind.scale)
        made = _arrow_udf(truncated_decimals, kind)
    session.udf.register(called, made)
    return called


def buckets(counts: pa.Array, values: pa.Array) -> pa.Array:
    """The buckets of strings, bytes and decimals."""
    return _by_width("bucket", counts, values, pa.int32())


def truncated_decimals(widths: pa.Array, values: pa.Array) -> pa.Array:
    """Decimals down to a multiple of a width."""
    return _by_width("truncate", widths, values, values.type)


def _by_width(name: str, widths: pa.Array, values: pa.Array, result: pa.DataType) -> pa.Array:
    """A transform with a width for each row: of all rows for each width, of which there are few."""
    kind: iceberg.IcebergType = iceberg.StringType()
    if pa.types.is_decimal(values.type):
        kind = iceberg.DecimalType(values.type.precision, values.type.scale)
    elif pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
        kind = iceberg.BinaryType()
    found = pa.nulls(len(values), result)
    with cause_alone():
        for width in pc.unique(widths).drop_null().to_pylist():
            if width < 1:
                raise InvalidArgument(f"the first argument of system.{name} is at least 1, not {width}")
            made = parse_transform(f"{name}[{width}]").apply(values, kind)
            found = pc.if_else(pc.fill_null(pc.equal(widths, width), False), made, found)
    return found
