"""Conversion of the columns of data files to the table's types.

The table's type defines the meaning of a column. The file may have the type before a promotion (SCH-10 to 12), another
layout of the same values (a large string, a dictionary), another unit of time, or plain integers without the logical
type annotation. Any other type is an error, never a guess.
"""

from __future__ import annotations

import pyarrow as pa

from icefield import types as iceberg
from icefield.base import compute as pc
from icefield.errors import InvalidArgument
from icefield.types.arrow.nested import struct_array
from icefield.types.arrow.reshape import Convert, after_unwrap, nulls_of
from icefield.types.arrow.types import VARIANT_ARROW, to_arrow_type

_NARROW = (pa.int8(), pa.int16(), pa.uint8(), pa.uint16())
_STRING = (pa.string(), pa.large_string(), pa.string_view())
_BYTES = (pa.binary(), pa.large_binary(), pa.binary_view())

_CASTS: dict[type[iceberg.IcebergType], tuple[pa.DataType, ...]] = {
    iceberg.IntegerType: (*_NARROW,),
    iceberg.LongType: (*_NARROW, pa.int32(), pa.uint32()),
    iceberg.FloatType: (pa.float16(),),
    iceberg.DoubleType: (pa.float16(), pa.float32()),
    iceberg.DateType: (pa.date64(),),
    iceberg.TimeType: (pa.time32("s"), pa.time32("ms"), pa.time64("ns")),
    iceberg.TimestampType: (pa.date32(),),
    iceberg.TimestampNanoType: (pa.date32(),),
    iceberg.StringType: (*_STRING, *_BYTES),
    iceberg.BinaryType: (*_STRING, *_BYTES),
    iceberg.GeometryType: _BYTES,
    iceberg.GeographyType: _BYTES,
    iceberg.UUIDType: _BYTES,
    iceberg.FixedType: _BYTES,
}
"""The types that a checked cast converts to each type; a lossy cast raises an error."""


class IncompatibleType(Exception):
    """The file's type cannot be read as the table's."""


def conversion(kind: iceberg.IcebergType, held: pa.DataType) -> Convert | None:
    """A function that converts arrays of the file's type to the table's primitive type; None if they agree.

    Raises ``IncompatibleType``. The returned function may raise Arrow's errors for values that do not fit.
    """
    target = to_arrow_type(kind)
    if held == target:
        return None
    if isinstance(kind, iceberg.UnknownType) or pa.types.is_null(held):
        return nulls_of(kind)
    if isinstance(held, pa.BaseExtensionType):
        return after_unwrap(conversion(kind, held.storage_type))
    if pa.types.is_dictionary(held) or pa.types.is_run_end_encoded(held):
        return after_unwrap(conversion(kind, held.value_type))
    if held in _CASTS.get(type(kind), ()):
        return lambda array: array.cast(target)
    if pa.types.is_temporal(target) and held == (pa.int32() if pa.types.is_date(target) else pa.int64()):
        return lambda array: array.view(target)  # integers without the annotation of a temporal type
    if isinstance(kind, iceberg.DecimalType) and pa.types.is_decimal(held) and held.scale == kind.scale:
        is_narrower = pa.types.is_decimal128(held) and held.precision < kind.precision
        return (lambda array: array.view(target)) if is_narrower else (lambda array: array.cast(target))
    if pa.types.is_timestamp(target) and pa.types.is_timestamp(held):
        # With or without a zone, the number counts from the epoch: only its unit can differ.
        local = pa.timestamp(held.unit, target.tz)
        return (lambda array: array.view(local)) if local == target else (lambda array: array.view(local).cast(target))
    if pa.types.is_fixed_size_binary(held) and isinstance(
        kind, iceberg.BinaryType | iceberg.GeometryType | iceberg.GeographyType
    ):
        return lambda array: array.cast(target)
    raise IncompatibleType


_NULL = b"\x00"
"""The variant of null."""


def is_shredded(held: pa.DataType) -> bool:
    """Whether a file has shredded variants, which the format reassembles."""
    return pa.types.is_struct(held) and {"metadata", "typed_value"} <= {field.name for field in held}


def put_together(array: pa.StructArray) -> pa.StructArray:
    """Check the variants that a format reassembled. Raises ``InvalidArgument`` if a value is missing."""
    if any(part.null_count > array.null_count for part in array.flatten()):
        raise InvalidArgument("a shredded variant came without its value")
    return array


def variants_of(held: pa.DataType) -> Convert | None:
    """A function that converts the file's arrays to variants; None if they are variants already.

    Raises ``IncompatibleType`` for a type without variants. The returned function may raise ``InvalidArgument``.
    """
    if isinstance(held, pa.BaseExtensionType):
        inner = variants_of(held.storage_type)
        return (lambda array: array.storage) if inner is None else (lambda array: inner(array.storage))
    if held.equals(VARIANT_ARROW, check_metadata=True):
        return None
    if pa.types.is_struct(held) and {field.name for field in held} == {"metadata", "value"}:
        return _whole
    raise IncompatibleType


def _whole(array: pa.StructArray) -> pa.StructArray:
    # In a flattened struct, a field is null where the struct is null.
    parts = [array.flatten()[array.type.get_field_index(name)] for name in ("metadata", "value")]
    if not all(map(_is_bytes, (part.type for part in parts))):
        raise InvalidArgument("the metadata or the value of a variant are no bytes")
    made = [part.cast(pa.binary()) for part in parts]
    if any(part.null_count > array.null_count for part in made):
        made = [pc.fill_null(part, missing) for part, missing in zip(made, (b"", _NULL), strict=True)]
    return struct_array(VARIANT_ARROW, made, array)


def _is_bytes(kind: pa.DataType) -> bool:
    kinds = pa.types
    return bool(kinds.is_binary(kind) or kinds.is_large_binary(kind) or kinds.is_binary_view(kind))
