"""The Arrow form of each type, and the type of each Arrow type.

A field's id is Arrow field metadata at every level. The metadata also names a type that shares its Arrow form with
another type (a ``uuid`` is 16 bytes, as ``fixed[16]`` is). So a schema survives the way to Arrow and back.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

import pyarrow as pa

from icefield import types as iceberg
from icefield.errors import IcefieldError, InvalidSchema, UnsupportedFeature
from icefield.types.nested import MAX_NESTING_DEPTH, ListType, MapType, NestedField, StructType, nested_type
from icefield.types.primitive import IcebergType, parse_type

FIELD_ID_KEY: Final = b"PARQUET:field_id"
DOC_KEY: Final = b"doc"
TYPE_KEY: Final = b"icefield.type"
"""Metadata key for the Iceberg type of a field, if its Arrow type alone would be read as another type."""

VARIANT_ARROW: Final = pa.struct(
    [pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary(), nullable=False)]
)

_PLAIN: Final[dict[type[IcebergType], pa.DataType]] = {
    iceberg.BooleanType: pa.bool_(),
    iceberg.IntegerType: pa.int32(),
    iceberg.LongType: pa.int64(),
    iceberg.FloatType: pa.float32(),
    iceberg.DoubleType: pa.float64(),
    iceberg.DateType: pa.date32(),
    iceberg.TimeType: pa.time64("us"),
    iceberg.TimestampType: pa.timestamp("us"),
    iceberg.TimestamptzType: pa.timestamp("us", "UTC"),
    iceberg.TimestampNanoType: pa.timestamp("ns"),
    iceberg.TimestamptzNanoType: pa.timestamp("ns", "UTC"),
    iceberg.StringType: pa.string(),
    iceberg.UUIDType: pa.binary(16),
    iceberg.BinaryType: pa.binary(),
    iceberg.UnknownType: pa.null(),
    iceberg.VariantType: VARIANT_ARROW,
    iceberg.GeometryType: pa.binary(),
    iceberg.GeographyType: pa.binary(),
}
_TENSOR: Final = "arrow.fixed_shape_tensor"
"""The only extension type of Arrow that the table format takes as nested, too."""

GivenType: TypeAlias = "IcebergType | str | pa.DataType"
"""The accepted forms of a type."""

_NAMED_IN_METADATA: Final = (iceberg.UUIDType, iceberg.VariantType, iceberg.GeometryType, iceberg.GeographyType)


def plain_array(values: Sequence[Any], iceberg_type: IcebergType) -> pa.Array:
    """Internal values of a primitive type as an Arrow array."""
    kind = to_arrow_type(iceberg_type)
    if isinstance(iceberg_type, iceberg.DecimalType) and iceberg_type.scale > iceberg_type.precision:
        # Arrow assumes that the precision of a Python decimal is at least its scale.
        return pa.array(values, pa.decimal128(38, iceberg_type.scale)).cast(kind)
    return pa.array(values, kind)


def to_arrow_type(iceberg_type: IcebergType) -> pa.DataType:
    """The Arrow type that holds values of a type in memory, with the ids of nested fields."""
    plain = _PLAIN.get(type(iceberg_type))
    return plain if plain is not None else _to_arrow_type(iceberg_type)


@lru_cache(maxsize=2048)
def _to_arrow_type(iceberg_type: IcebergType) -> pa.DataType:
    match iceberg_type:
        case iceberg.DecimalType():
            return pa.decimal128(iceberg_type.precision, iceberg_type.scale)
        case iceberg.FixedType():
            return pa.binary(iceberg_type.length)
        case StructType():
            return pa.struct([to_arrow_field(child) for child in iceberg_type.fields])
        case ListType():
            return pa.list_(to_arrow_field(iceberg_type.element))
        case MapType():
            return pa.map_(to_arrow_field(iceberg_type.key), to_arrow_field(iceberg_type.value))
    raise UnsupportedFeature(f"type {iceberg_type} has no Arrow form")


def to_arrow_field(field: NestedField) -> pa.Field:
    """The Arrow field of a field: name, type, nullability, id and doc."""
    metadata = {FIELD_ID_KEY: str(field.field_id).encode()}
    if field.doc is not None:
        metadata[DOC_KEY] = field.doc.encode()
    if isinstance(field.field_type, _NAMED_IN_METADATA):
        metadata[TYPE_KEY] = str(field.field_type).encode()
    return pa.field(field.name, to_arrow_type(field.field_type), nullable=not field.required, metadata=metadata)


def field_id(field: pa.Field) -> int | None:
    """The id that an Arrow field carries, or None: also for a string that is no id."""
    string = (field.metadata or {}).get(FIELD_ID_KEY)
    if string is None or not string.isdigit() or len(string) > 10:
        return None
    number = int(string)
    return number if number < 2**31 else None


def with_dictionaries(schema: pa.Schema, ids: frozenset[int]) -> pa.Schema:
    """The schema with dictionary types for the columns of those ids."""
    if not ids:
        return schema
    columns = [
        each.with_type(pa.dictionary(pa.int32(), each.type)) if field_id(each) in ids else each for each in schema
    ]
    return pa.schema(columns, schema.metadata)


def with_field_id(field: pa.Field, id_: int) -> pa.Field:
    """The same field with that id."""
    return field.with_metadata({**(field.metadata or {}), FIELD_ID_KEY: str(id_).encode()})


def has_all_ids(arrow_type: pa.DataType) -> bool:
    """Whether each field nested in an Arrow type carries an id. False for one nested beyond the limit."""
    return _has_all_ids(arrow_type, 0)


def _has_all_ids(arrow_type: pa.DataType, depth: int) -> bool:
    if arrow_type.equals(VARIANT_ARROW) or getattr(arrow_type, "extension_name", _TENSOR) != _TENSOR:
        return True
    return depth <= MAX_NESTING_DEPTH and all(
        field_id(child) is not None and (TYPE_KEY in (child.metadata or {}) or _has_all_ids(child.type, depth + 1))
        for child in child_fields(arrow_type)
    )


def child_fields(arrow_type: pa.DataType) -> list[pa.Field]:
    """The fields directly inside an Arrow struct, list or map; empty for anything else.

    The fields of a map are its key and its value.
    """
    arrow_type = unwrapped(arrow_type)
    if isinstance(arrow_type, pa.BaseExtensionType):
        arrow_type = arrow_type.storage_type
    if pa.types.is_struct(arrow_type):
        return [arrow_type.field(i) for i in range(arrow_type.num_fields)]
    if pa.types.is_map(arrow_type):
        return [arrow_type.key_field, arrow_type.item_field]
    return [arrow_type.value_field] if is_list_like(arrow_type) else []


def is_list_like(arrow_type: pa.DataType) -> bool:
    """Whether an Arrow type is any of its kinds of list. A map is not."""
    kinds = pa.types
    return bool(
        kinds.is_list(arrow_type)
        or kinds.is_large_list(arrow_type)
        or kinds.is_fixed_size_list(arrow_type)
        or kinds.is_list_view(arrow_type)
        or kinds.is_large_list_view(arrow_type)
    )


def list_of(held: pa.DataType, element: pa.Field) -> pa.DataType:
    """A list type of the same kind as ``held``, with another element."""
    if pa.types.is_large_list(held):
        return pa.large_list(element)
    if pa.types.is_fixed_size_list(held):
        return pa.list_(element, held.list_size)
    if pa.types.is_list_view(held):
        return pa.list_view(element)
    return pa.large_list_view(element) if pa.types.is_large_list_view(held) else pa.list_(element)


def unwrapped(arrow_type: pa.DataType) -> pa.DataType:
    """The value type of a dictionary or run-end encoded type; any other type itself."""
    if pa.types.is_dictionary(arrow_type) or pa.types.is_run_end_encoded(arrow_type):
        return arrow_type.value_type
    return arrow_type


def from_arrow_type(arrow_type: pa.DataType, next_id: Callable[[], int] | None = None) -> IcebergType:
    """The Iceberg type of an Arrow type.

    Ids of nested fields come from their metadata if ``next_id`` is None and each field has one. Otherwise ``next_id``
    gives them (or 1, 2, ...): to the fields of a struct first, then to the fields nested in each.

    Raises ``UnsupportedFeature``, with a type to cast to, for an Arrow type that no Iceberg type holds without loss.
    """
    if next_id is None:
        next_id = None if has_all_ids(arrow_type) else itertools.count(1).__next__
    return _from_arrow(arrow_type, next_id, 0)


def as_type(given: GivenType) -> IcebergType:
    """The type of a type object, of the spec's string or of an Arrow type. Raises ``InvalidArgument``."""
    if isinstance(given, IcebergType):
        return given
    return from_arrow_type(given) if isinstance(given, pa.DataType) else parse_type(given)


def from_arrow_fields(fields: list[pa.Field], next_id: Callable[[], int] | None, depth: int = 0) -> list[NestedField]:
    """The fields of a struct or schema; ids from metadata when ``next_id`` is None."""
    made = []
    for id_, field in zip([_id_of(field, next_id) for field in fields], fields, strict=True):
        required = not field.nullable and not pa.types.is_null(field.type)
        doc = (field.metadata or {}).get(DOC_KEY)
        text = None if doc is None else doc.decode("utf-8", "replace")
        made.append(NestedField(id_, field.name, _field_type(field, next_id, depth), required, text))
    return made


def _id_of(field: pa.Field, next_id: Callable[[], int] | None) -> int:
    if next_id is not None:
        return next_id()
    known = field_id(field)
    if known is None:
        raise InvalidSchema(f"Arrow field '{field.name}' carries no field id")
    return known


def _field_type(field: pa.Field, next_id: Callable[[], int] | None, depth: int) -> IcebergType:
    named = _named_type(field)
    if named is not None:
        return named
    try:
        return _from_arrow(field.type, next_id, depth)
    except UnsupportedFeature as error:
        raise UnsupportedFeature(f"column '{field.name}': {error.message}", **error.data) from None


def _named_type(field: pa.Field) -> IcebergType | None:
    """The type that the field's metadata names, provided that its Arrow type still fits."""
    string = (field.metadata or {}).get(TYPE_KEY)
    if string is None:
        return None
    try:
        named = parse_type(string.decode())
    except (IcefieldError, UnicodeDecodeError):
        return None
    fits = isinstance(named, _NAMED_IN_METADATA) and to_arrow_type(named) == field.type
    return named if fits else None


def _from_arrow(arrow_type: pa.DataType, next_id: Callable[[], int] | None, depth: int) -> IcebergType:
    if depth > MAX_NESTING_DEPTH:
        raise InvalidSchema(f"Arrow type is nested deeper than {MAX_NESTING_DEPTH} levels")
    arrow_type = unwrapped(arrow_type)
    if isinstance(arrow_type, pa.BaseExtensionType):
        name = arrow_type.extension_name
        if name == _TENSOR:
            return _from_arrow(arrow_type.storage_type, next_id, depth)
        if name not in _EXTENSIONS:
            raise UnsupportedFeature(
                f"no type of the table format holds Arrow's extension {name}; cast to its storage type"
            )
        return _EXTENSIONS[name]
    children = child_fields(arrow_type)
    if pa.types.is_struct(arrow_type):
        return StructType(*from_arrow_fields(children, next_id, depth + 1))
    if children:
        kind = MapType if pa.types.is_map(arrow_type) else ListType
        return nested_type(kind, from_arrow_fields(children, next_id, depth + 1))
    for holds, make in _FROM_ARROW:
        if holds(arrow_type):
            return make(arrow_type)
    raise UnsupportedFeature(f"no type of the table format holds Arrow's {arrow_type}; cast it, such as to int64")


_EXTENSIONS: Final[dict[str, IcebergType]] = {
    "arrow.uuid": iceberg.UUIDType(),
    "arrow.json": iceberg.StringType(),
    "arrow.bool8": iceberg.BooleanType(),
    "arrow.parquet.variant": iceberg.VariantType(),
    "parquet.variant": iceberg.VariantType(),
    "geoarrow.wkb": iceberg.GeometryType(),
}


def _from_uint64(arrow_type: pa.DataType) -> IcebergType:
    raise UnsupportedFeature("Arrow's uint64 does not fit in a long; cast to int64 or decimal128(20, 0)")


def _from_decimal(arrow_type: pa.DataType) -> IcebergType:
    if arrow_type.precision > 38:
        raise UnsupportedFeature(f"Arrow's {arrow_type} has more than 38 digits")
    if not 0 <= arrow_type.scale <= arrow_type.precision:
        raise UnsupportedFeature(f"the scale of Arrow's {arrow_type} is not between 0 and its precision")
    return iceberg.DecimalType(arrow_type.precision, arrow_type.scale)


def _from_time(arrow_type: pa.DataType) -> IcebergType:
    if arrow_type.unit == "ns":
        raise UnsupportedFeature("a time has microseconds; cast Arrow's time64[ns] to time64('us')")
    return iceberg.TimeType()


def _from_timestamp(arrow_type: pa.DataType) -> IcebergType:
    if arrow_type.unit == "ns":
        return iceberg.TimestampNanoType() if arrow_type.tz is None else iceberg.TimestamptzNanoType()
    return iceberg.TimestampType() if arrow_type.tz is None else iceberg.TimestamptzType()


_is_string = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_is_bytes = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
_is_long = (pa.types.is_int64, pa.types.is_uint32)

_FROM_ARROW: Final[list[tuple[Callable[[pa.DataType], Any], Callable[[pa.DataType], IcebergType]]]] = [
    (pa.types.is_boolean, lambda _: iceberg.BooleanType()),
    (pa.types.is_uint64, _from_uint64),
    (lambda t: any(test(t) for test in _is_long), lambda _: iceberg.LongType()),
    (pa.types.is_integer, lambda _: iceberg.IntegerType()),
    (pa.types.is_float64, lambda _: iceberg.DoubleType()),
    (pa.types.is_floating, lambda _: iceberg.FloatType()),
    (pa.types.is_decimal, _from_decimal),
    (pa.types.is_date, lambda _: iceberg.DateType()),
    (pa.types.is_time, _from_time),
    (pa.types.is_timestamp, _from_timestamp),
    (lambda t: any(test(t) for test in _is_string), lambda _: iceberg.StringType()),
    (lambda t: any(test(t) for test in _is_bytes), lambda _: iceberg.BinaryType()),
    (pa.types.is_fixed_size_binary, lambda t: iceberg.FixedType(t.byte_width)),
    (pa.types.is_null, lambda _: iceberg.UnknownType()),
]
