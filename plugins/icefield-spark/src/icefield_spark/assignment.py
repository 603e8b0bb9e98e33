"""Which types may be stored in which columns, as ``spark.sql.storeAssignmentPolicy`` says.

Under ANSI, which is Spark's default, Spark itself judges: ``DataFrame.to`` casts as ANSI allows, and fails where a
value overflows. STRICT allows only casts that lose nothing. LEGACY turns values that do not fit into nulls: Spark
refuses it for every table but its own, and so does Icefield.
"""

from __future__ import annotations

from typing import Final

from icefield import Schema
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.types import (
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    StructType,
    TimestampNanoType,
    TimestamptzNanoType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
)
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark

from icefield_spark.arrow import spelt_as
from icefield_spark.types import to_spark_type

POLICY: Final = "spark.sql.storeAssignmentPolicy"
_ANSI, _STRICT, _LEGACY = "ANSI", "STRICT", "LEGACY"
# A type may be stored in each type that comes later in this tuple.
_NUMBERS = (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType, spark.FloatType, spark.DoubleType)
_DIGITS: dict[type[spark.DataType], int] = {
    spark.ByteType: 3,
    spark.ShortType: 5,
    spark.IntegerType: 10,
    spark.LongType: 20,
}
_NESTED = (spark.ArrayType, spark.MapType, spark.StructType)
_JUDGED_BY_THE_WRITER = (
    UUIDType,
    FixedType,
    TimeType,
    TimestampNanoType,
    TimestamptzNanoType,
    VariantType,
    GeometryType,
    GeographyType,
    UnknownType,
)
"""Types without a counterpart in Spark, or with only one type of Spark that can be stored in them."""

_TIMES = (spark.DateType, spark.TimestampType, spark.TimestampNTZType)


def stored_as(session: SparkSession, frame: DataFrame, columns: spark.StructType) -> DataFrame:
    """A frame of columns, cast to their stored types; all columns may hold nulls.

    Raises ``InvalidArgument`` for casts that the policy forbids, ``UnsupportedFeature`` for the policy LEGACY.
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


def stored_in(session: SparkSession, frame: DataFrame, schema: Schema, *, case_sensitive: bool) -> DataFrame:
    """A frame with its columns, found by name, cast to the types in which a table stores them; see ``stored_as``.

    Only types are cast. Columns and nested fields that the table lacks stay unchanged for the writer to check. Values
    with different types in Spark and the table (``uuid``, ``fixed``, nanoseconds) stay unchanged, too. Raises
    ``InvalidArgument`` for a type that cannot be stored in the column's type.
    """
    known = {field.name: field.field_type for field in schema.fields}
    spelt = spelt_as(known, frame.columns, case_sensitive)
    if len(set(spelt)) < len(spelt):
        return frame  # refused by name
    columns = frame.schema
    fields = [
        spark.StructField(given.name, _stored(given.dataType, known.get(name), case_sensitive), given.nullable)
        for name, given in zip(spelt, columns.fields, strict=True)
    ]
    if [field.dataType for field in fields] == [field.dataType for field in columns.fields]:
        return frame
    try:
        made = stored_as(session, frame, spark.StructType(fields))
        made.schema  # noqa: B018 -- with Spark Connect it is looked at only now
    except AnalysisException as error:
        raise InvalidArgument(f"a column cannot be stored as the table has it: {error.getMessage()}") from error
    return made


def _stored(given: spark.DataType, kind: IcebergType | None, case_sensitive: bool) -> spark.DataType:
    """A Spark type with its leaves replaced by the leaves of a table's type, as far as both have the same form."""
    if isinstance(given, spark.StructType) and isinstance(kind, StructType):
        known = {field.name: field.field_type for field in kind.fields}
        names = spelt_as(known, given.names, case_sensitive)
        return spark.StructType(
            [
                spark.StructField(each.name, _stored(each.dataType, known.get(name), case_sensitive), each.nullable)
                for name, each in zip(names, given.fields, strict=True)
            ]
        )
    if isinstance(given, spark.ArrayType) and isinstance(kind, ListType):
        element = _stored(given.elementType, kind.element.field_type, case_sensitive)
        return spark.ArrayType(element, given.containsNull)
    if isinstance(given, spark.MapType) and isinstance(kind, MapType):
        key = _stored(given.keyType, kind.key.field_type, case_sensitive)
        value = _stored(given.valueType, kind.value.field_type, case_sensitive)
        return spark.MapType(key, value, given.valueContainsNull)
    leaves = not isinstance(given, _NESTED) and kind is not None and not kind.is_nested
    if not leaves or isinstance(given, spark.NullType) or isinstance(kind, _JUDGED_BY_THE_WRITER):
        return given
    assert kind is not None
    return to_spark_type(kind)


def fits_strictly(given: spark.DataType, kind: spark.DataType) -> bool:
    """Whether every value of a type has an equal value in another type, by the rules of Spark's up-cast."""
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
    if isinstance(given, _NESTED) or isinstance(kind, _NESTED):
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
    """The most digits before the decimal point."""
    return kind.precision - kind.scale if isinstance(kind, spark.DecimalType) else _DIGITS.get(type(kind))
