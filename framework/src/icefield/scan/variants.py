"""Conversion of the variants in a file to the table's variants: structs of ``metadata`` and ``value``.

A format with shredded variants reassembles them itself: see ``icefield.abc.ReadRequest``.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import InvalidArgument
from icefield.scan.conversions import IncompatibleType
from icefield.types.arrow.nested import struct_array
from icefield.types.arrow.reshape import Convert
from icefield.types.arrow.types import VARIANT_ARROW

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
