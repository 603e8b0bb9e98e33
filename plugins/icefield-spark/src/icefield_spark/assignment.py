"""Which types may be stored in which columns, as ``spark.sql.storeAssignmentPolicy`` says.

Under ANSI, which is Spark's default, Spark itself judges: ``DataFrame.to`` casts as ANSI allows, and fails where a
value overflows. STRICT allows only what loses nothing. LEGACY, which makes nulls of what does not fit, is refused by
Spark for every table but its own, and so it is here.
"""

from __future__ import annotations

from typing import Final

from icefield.errors import InvalidArgument, UnsupportedFeature
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark

POLICY: Final = "spark.sql.storeAssignmentPolicy"
_ANSI, _STRICT, _LEGACY = "ANSI", "STRICT", "LEGACY"
# Each may be stored in those after it.
_NUMBERS = (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType, spark.FloatType, spark.DoubleType)
_DIGITS: dict[type[spark.DataType], int] = {
    spark.ByteType: 3,
    spark.ShortType: 5,
    spark.IntegerType: 10,
    spark.LongType: 20,
}
_TIMES = (spark.DateType, spark.TimestampType, spark.TimestampNTZType)


def stored_as(session: SparkSession, frame: DataFrame, columns: spark.StructType) -> DataFrame:
    """A frame of columns by the types that they are stored in, each of which may hold nulls.

    Raises ``InvalidArgument`` for what the policy forbids, ``UnsupportedFeature`` for the policy LEGACY.
    """
    policy = str(session.conf.get(POLICY, _ANSI)).upper()
    if policy == _LEGACY:
        raise UnsupportedFeature(
            f"{POLICY} is LEGACY, which Spark refuses for tables that are not its own, since values that do not fit "
            "become nulls: set it to ANSI or STRICT, or cast with try_cast"
        )
    if policy == _STRICT:
        given = {each.name: each.dataType for each in frame.schema.fields}
        for each in columns.fields:
            if each.name in given and not fits_strictly(given[each.name], each.dataType):
                raise InvalidArgument(
                    f"column '{each.name}' is {each.dataType.simpleString()}, and {given[each.name].simpleString()} "
                    f"does not fit into it for certain: cast it, or set {POLICY} to ANSI",
                    column=each.name,
                )
    return frame.to(spark.StructType([spark.StructField(each.name, each.dataType, True) for each in columns.fields]))


def fits_strictly(given: spark.DataType, kind: spark.DataType) -> bool:
    """Whether every value of a type has one in another that is the same, as Spark's up-cast says."""
    if given == kind or isinstance(given, spark.NullType):
        return True
    if isinstance(given, spark.ArrayType) and isinstance(kind, spark.ArrayType):
        return (kind.containsNull or not given.containsNull) and fits_strictly(given.elementType, kind.elementType)
    if isinstance(given, spark.MapType) and isinstance(kind, spark.MapType):
        nulls = kind.valueContainsNull or not given.valueContainsNull
        sides = fits_strictly(given.keyType, kind.keyType), fits_strictly(given.valueType, kind.valueType)
        return nulls and all(sides)
    if isinstance(given, spark.StructType) and isinstance(kind, spark.StructType):
        if len(given.fields) != len(kind.fields):
            return False
        pairs = zip(given.fields, kind.fields, strict=True)
        return all((b.nullable or not a.nullable) and fits_strictly(a.dataType, b.dataType) for a, b in pairs)
    nested = (spark.ArrayType, spark.MapType, spark.StructType)
    if isinstance(given, nested) or isinstance(kind, nested):
        return False
    if isinstance(kind, spark.StringType):
        return True
    if isinstance(given, _TIMES) and isinstance(kind, _TIMES):
        return not isinstance(kind, spark.DateType)
    return _number_fits(given, kind)


def _number_fits(given: spark.DataType, kind: spark.DataType) -> bool:
    if isinstance(kind, spark.DecimalType):
        whole = _whole_digits(given)
        scale = given.scale if isinstance(given, spark.DecimalType) else 0
        return whole is not None and kind.precision - kind.scale >= whole and kind.scale >= scale
    if isinstance(given, spark.DecimalType):
        most = _DIGITS.get(type(kind))
        return most is not None and given.scale == 0 and given.precision < most
    if type(given) in _NUMBERS and type(kind) in _NUMBERS:
        return _NUMBERS.index(type(given)) < _NUMBERS.index(type(kind))
    return False


def _whole_digits(kind: spark.DataType) -> int | None:
    """How many digits stand before the point at most."""
    return kind.precision - kind.scale if isinstance(kind, spark.DecimalType) else _DIGITS.get(type(kind))
