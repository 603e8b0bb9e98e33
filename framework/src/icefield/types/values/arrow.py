"""Internal values to and from Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from icefield.errors import InvalidArgument
from icefield.types.arrow.nested import null_array, settled
from icefield.types.arrow.pieces import one_array
from icefield.types.arrow.types import plain_array, to_arrow_type
from icefield.types.nested import ListType, MapType, StructType
from icefield.types.primitive import IcebergType, VariantType


def to_arrow_scalar(iceberg_type: IcebergType, internal: Any) -> pa.Scalar:
    """The Arrow scalar of an internal value. Raises ``InvalidArgument`` for a value of another type."""
    return to_arrow_array(iceberg_type, [internal])[0]


def to_arrow_array(iceberg_type: IcebergType, internals: Sequence[Any]) -> pa.Array:
    """The Arrow array of internal values. Raises ``InvalidArgument`` for a value of another type."""
    try:
        return plain_array([_for_arrow(iceberg_type, item) for item in internals], iceberg_type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidArgument(f"not a value of type {iceberg_type}: {error}") from None


def _for_arrow(iceberg_type: IcebergType, internal: Any) -> Any:
    if internal is None:
        return None
    match iceberg_type:
        case StructType():
            pairs = zip(iceberg_type.fields, internal, strict=True)
            return {child.name: _for_arrow(child.field_type, item) for child, item in pairs}
        case ListType():
            return [_for_arrow(iceberg_type.element_type, item) for item in internal]
        case MapType():
            key, value = iceberg_type.key_type, iceberg_type.value_type
            return [(_for_arrow(key, k), _for_arrow(value, v)) for k, v in internal]
        case VariantType():
            return {"metadata": internal[0], "value": internal[1]}
    return internal


def from_arrow_scalar(iceberg_type: IcebergType, scalar: pa.Scalar) -> Any:
    """The internal value of an Arrow scalar of the type's Arrow type, or of a type that casts to it.

    Raises ``InvalidArgument``.
    """
    if not scalar.is_valid:
        return None
    try:
        return from_arrow_array(iceberg_type, pa.repeat(scalar, 1))[0]
    except (pa.ArrowException, TypeError) as error:
        raise InvalidArgument(f"not a value of type {iceberg_type}: {error}") from None


def from_arrow_array(iceberg_type: IcebergType, array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The internal values of an Arrow array of the type's Arrow type, or of a type that casts to it.

    Makes one Python object per value: for partition tuples and results, not for rows. Raises ``InvalidArgument``.
    """
    return _internals(iceberg_type, cast_to_type(iceberg_type, array))


def cast_to_type(iceberg_type: IcebergType, array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The values as one array of the type's Arrow type. Raises ``InvalidArgument`` if they do not cast to it."""
    array = one_array(array)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    target = to_arrow_type(iceberg_type)
    try:
        return array if array.type == target else array.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidArgument(f"not values of type {iceberg_type}: {error}") from None


def _internals(iceberg_type: IcebergType, array: pa.Array) -> list[Any]:
    if pa.types.is_temporal(array.type):
        # Arrow itself returns another object than the integer that is the internal value.
        return array.view(pa.int32() if array.type.bit_width == 32 else pa.int64()).to_pylist()  # type: ignore[no-any-return]
    match iceberg_type:
        case StructType():
            # Not `flatten`: it would hide the difference between a null struct and one of nulls.
            children = [_internals(child.field_type, array.field(i)) for i, child in enumerate(iceberg_type.fields)]
            rows = list(zip(*children, strict=True)) if children else [()] * len(array)
            return [row if valid else None for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)]
        case ListType():
            return _grouped(array, _internals(iceberg_type.element_type, array.values))
        case MapType():
            keys, items = (
                _internals(iceberg_type.key_type, array.keys),
                _internals(iceberg_type.value_type, array.items),
            )
            return _grouped(array, list(zip(keys, items, strict=True)))
        case VariantType():
            return [None if row is None else (row["metadata"], row["value"]) for row in array.to_pylist()]
    return array.to_pylist()  # type: ignore[no-any-return]


def _grouped(array: pa.Array, items: list[Any]) -> list[Any]:
    ends = array.offsets.to_pylist()
    valid = array.is_valid().to_pylist()
    return [tuple(items[ends[i] : ends[i + 1]]) if valid[i] else None for i in range(len(array))]


def constant_array(iceberg_type: IcebergType, internal: Any, count: int) -> pa.Array:
    """An Arrow array that holds one internal value ``count`` times."""
    if internal is None:
        return null_array(to_arrow_type(iceberg_type), count)
    scalar = to_arrow_scalar(iceberg_type, internal)
    return settled(pa.repeat(scalar, count)) if count else pa.array([], scalar.type)
