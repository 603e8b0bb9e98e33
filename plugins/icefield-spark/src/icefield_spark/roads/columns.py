"""Columns of a table in files of one shape: the request to Spark's own reader, and the result's types.

Columns are found by field id, and then read under their names in these files. So a filter that Spark pushes into
Parquet by name always reaches the intended column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass

import pyarrow as pa
from icefield import types as iceberg
from icefield.toolkit import field_id
from icefield.types import NestedField
from pyspark.sql import types as spark

from icefield_spark.roads.footers import FileShape
from icefield_spark.types import all_nullable, comment_of, to_spark_type

_ABSENT = "__absent_{}"
"""The name of a field that no file has."""

_TIME_KINDS = (iceberg.TimestampType, iceberg.TimestamptzType)


class UnfitForSpark(Exception):
    """Why Spark's own reader does not serve."""


@dataclass(frozen=True, slots=True)
class FileColumn:
    """A column in the files: the field to request, and the type to cast it to."""

    asked: spark.StructField
    """Its nullability is the table's, unless all columns may be nullable."""
    wanted: spark.DataType
    is_uuid: bool = False


def unfit_type(field: NestedField) -> str | None:
    """Why a column can never be read by Spark's own reader; None where the files decide."""
    kind = field.field_type
    if kind.is_nested and not isinstance(kind, iceberg.VariantType):
        children = children_of(kind)
        if not children:
            return f"column '{field.name}' is a struct without fields"
        found = next((reason for reason in map(unfit_type, children) if reason), None)
        if found is None and any(isinstance(child.field_type, iceberg.UUIDType) for child in children):
            found = f"column '{field.name}' holds a uuid inside"
        if found is None and any(isinstance(child.field_type, iceberg.UnknownType) for child in children):
            found = f"column '{field.name}' holds a field of unknown type"
        return found
    if isinstance(kind, tuple(_LEAVES)):
        return None
    return f"column '{field.name}' is {kind}"


def floats_of(column: NestedField) -> Iterator[int]:
    """The ids of a column, or of the fields inside of it, that hold floats."""
    return _leaves_of(column, (iceberg.FloatType, iceberg.DoubleType))


def calendar_times_of(column: NestedField) -> Iterator[int]:
    """The ids of a column, or of the fields inside of it, that a filter of Spark's compares by Java's old calendar."""
    return _leaves_of(column, (iceberg.DateType, iceberg.TimestamptzType))


def _leaves_of(column: NestedField, kinds: tuple[type[iceberg.IcebergType], ...]) -> Iterator[int]:
    if isinstance(column.field_type, kinds):
        yield column.field_id
    elif isinstance(column.field_type, iceberg.StructType):  # no conditions are pushed into lists and maps
        for child in column.field_type.fields:
            yield from _leaves_of(child, kinds)


class ShapeColumns:
    """Finds columns in files of one shape. Raises ``UnfitForSpark`` for files with ambiguous columns.

    ``is_exact``: the files must require the columns that the table requires; else all columns are nullable.
    """

    def __init__(self, shape: FileShape, *, is_exact: bool) -> None:
        if shape.is_rebased:
            raise UnfitForSpark("it was written by Spark with an older calendar")
        names = Counter(name.lower() for name in shape.schema.names)
        twice = next((name for name, count in names.items() if count > 1), None)
        if twice is not None:
            raise UnfitForSpark(f"it has two columns that Spark calls '{twice}'")
        self._is_exact = is_exact
        self._physical = shape.physical
        self._places: dict[int, tuple[pa.Field, int]] = {}
        leaf = 0
        for field in shape.schema:
            found = field_id(field)
            if found is not None:
                self._places.setdefault(found, (field, leaf))
            leaf += _leaves(field.type)
        if leaf != len(shape.physical):
            raise UnfitForSpark("its footer is not understood")
        if not self._places:
            raise UnfitForSpark("it has no field ids")

    def held(self, field: NestedField, constants: Set[int]) -> FileColumn | None:
        """A column of the table as these files have it; None if they lack it. Raises ``UnfitForSpark``.

        ``constants``: ids of fields that the partition states where a file lacks them.
        """
        if isinstance(field.field_type, iceberg.UnknownType):
            return None
        found = self._places.get(field.field_id)
        if found is None:
            return None
        column, leaf = found
        asked = self._asked(field, column.type, leaf, constants)
        is_uuid = isinstance(field.field_type, iceberg.UUIDType)
        made = to_spark_type(field.field_type)
        nullable = self._may_be_null(field, column)
        return FileColumn(
            spark.StructField(column.name, asked, nullable), made if self._is_exact else all_nullable(made), is_uuid
        )

    def _may_be_null(self, field: NestedField, held: pa.Field) -> bool:
        if not self._is_exact or not field.required:
            return True
        if held.nullable:
            raise UnfitForSpark(f"it may hold nulls in '{field.name}', which is required")
        return False

    def _asked(self, field: NestedField, held: pa.DataType, leaf: int, constants: Set[int]) -> spark.DataType:
        kind = field.field_type
        if isinstance(kind, iceberg.StructType) and pa.types.is_struct(held):
            return self._struct(field, kind, held, leaf, constants)
        if isinstance(kind, iceberg.ListType) and (pa.types.is_list(held) or pa.types.is_large_list(held)):
            _check_id(kind.element, held.value_field)
            element = self._asked(kind.element, held.value_type, leaf, constants)
            return spark.ArrayType(element, self._may_be_null(kind.element, held.value_field))
        if isinstance(kind, iceberg.MapType) and pa.types.is_map(held):
            _check_id(kind.key, held.key_field)
            _check_id(kind.value, held.item_field)
            key = self._asked(kind.key, held.key_type, leaf, constants)
            value = self._asked(kind.value, held.item_type, leaf + _leaves(held.key_type), constants)
            return spark.MapType(key, value, self._may_be_null(kind.value, held.item_field))
        if not kind.is_nested:
            if pa.types.is_dictionary(held):
                held = held.value_type
            if isinstance(held, pa.BaseExtensionType):
                held = held.storage_type
            made = _leaf(kind, held, self._physical[leaf])
            if made is not None:
                return made
        raise UnfitForSpark(f"it holds {_shown(held)} in column '{field.name}', which is {_shown(kind)}")

    def _struct(
        self, field: NestedField, kind: iceberg.StructType, held: pa.StructType, leaf: int, constants: Set[int]
    ) -> spark.StructType:
        places: dict[int, tuple[pa.Field, int]] = {}
        names = Counter(child.name.lower() for child in held)
        for child in held:
            found = field_id(child)
            if found is not None:
                places.setdefault(found, (child, leaf))
            leaf += _leaves(child.type)
        asked = []
        for wanted in kind.fields:
            place = places.get(wanted.field_id)
            if place is not None:
                if names[place[0].name.lower()] > 1:
                    raise UnfitForSpark(
                        f"it has two fields in '{field.name}' that Spark calls '{place[0].name.lower()}'"
                    )
                made = self._asked(wanted, place[0].type, place[1], constants)
                nullable = self._may_be_null(wanted, place[0])
                asked.append(spark.StructField(place[0].name, made, nullable, comment_of(wanted)))
            elif wanted.required or wanted.initial_default is not None or not constants.isdisjoint(_ids(wanted)):
                raise UnfitForSpark(f"it lacks the field '{field.name}.{wanted.name}', which has a value there")
            else:
                absent = to_spark_type(wanted.field_type)
                asked.append(spark.StructField(_ABSENT.format(wanted.field_id), all_nullable(absent)))
        if not any(wanted.field_id in places for wanted in kind.fields):
            raise UnfitForSpark(f"it has no field of the struct '{field.name}' that is read")
        return spark.StructType(asked)


def _ids(field: NestedField) -> set[int]:
    return {field.field_id}.union(*map(_ids, children_of(field.field_type)))


def children_of(kind: iceberg.IcebergType) -> tuple[NestedField, ...]:
    """The fields inside of a type."""
    if isinstance(kind, iceberg.StructType | iceberg.ListType | iceberg.MapType):
        return kind.children
    return ()


def _check_id(wanted: NestedField, held: pa.Field) -> None:
    if field_id(held) != wanted.field_id:
        raise UnfitForSpark(f"it has another id, or none, at the field {wanted.field_id} inside a list or map")


def _leaves(kind: pa.DataType) -> int:
    """How many leaves a column of that type has in Parquet."""
    if isinstance(kind, pa.BaseExtensionType):
        return _leaves(kind.storage_type)
    if pa.types.is_nested(kind):
        return sum(_leaves(kind.field(at).type) for at in range(kind.num_fields))
    return 1


def _leaf(kind: iceberg.IcebergType, held: pa.DataType, physical: str) -> spark.DataType | None:
    """The type to request, which is the file's type; None if Spark would read it incorrectly."""
    if isinstance(kind, iceberg.DecimalType):
        fits = pa.types.is_decimal(held) and held.scale == kind.scale and held.precision <= kind.precision
        return spark.DecimalType(held.precision, held.scale) if fits else None
    if isinstance(kind, iceberg.FixedType | iceberg.UUIDType):
        length = kind.length if isinstance(kind, iceberg.FixedType) else 16
        return spark.BinaryType() if held == pa.binary(length) else None
    if isinstance(kind, _TIME_KINDS):
        fits = pa.types.is_timestamp(held) and held.unit == "us" and physical == "INT64"
        if not fits or (held.tz is None) is not isinstance(kind, iceberg.TimestampType):
            return None
        return spark.TimestampNTZType() if held.tz is None else spark.TimestampType()
    return next((made for like, made in _LEAVES.get(type(kind), ()) if held == like), None)


def _shown(kind: object) -> str:
    string = str(kind)
    return string if len(string) <= 100 else f"{string[:97]}..."


_STRINGS: list[tuple[pa.DataType, spark.DataType]] = [
    (pa.string(), spark.StringType()),
    (pa.large_string(), spark.StringType()),
    (pa.string_view(), spark.StringType()),
]
_BYTES: list[tuple[pa.DataType, spark.DataType]] = [
    (pa.binary(), spark.BinaryType()),
    (pa.large_binary(), spark.BinaryType()),
    (pa.binary_view(), spark.BinaryType()),
]
_LEAVES: dict[type[iceberg.IcebergType], list[tuple[pa.DataType, spark.DataType]]] = {
    iceberg.BooleanType: [(pa.bool_(), spark.BooleanType())],
    iceberg.IntegerType: [(pa.int32(), spark.IntegerType())],
    iceberg.LongType: [(pa.int64(), spark.LongType()), (pa.int32(), spark.IntegerType())],
    iceberg.FloatType: [(pa.float32(), spark.FloatType())],
    iceberg.DoubleType: [(pa.float64(), spark.DoubleType()), (pa.float32(), spark.FloatType())],
    iceberg.DateType: [(pa.date32(), spark.DateType())],
    iceberg.StringType: _STRINGS,
    iceberg.BinaryType: _BYTES,
    iceberg.DecimalType: [],
    iceberg.TimestampType: [],
    iceberg.TimestamptzType: [],
    iceberg.FixedType: [],
    iceberg.UUIDType: [],
    iceberg.UnknownType: [],
}
