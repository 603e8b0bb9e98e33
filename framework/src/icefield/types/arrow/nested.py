"""Nested Arrow arrays: taken apart, put together again without copying values, and validated.

All functions here respect the offset and length of an array that is a slice of a larger array.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from icefield.base import compute as pc

_DECODABLE: Final = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
"""Arrow does not take views apart that are in a dictionary or run-end encoded, as Polars exports categories."""


def unwrap(array: pa.Array) -> pa.Array:
    """The plain array below an extension, or of a dictionary or run-end encoding."""
    if isinstance(array, pa.ExtensionArray):
        return array.storage
    if isinstance(array, pa.DictionaryArray):
        if array.type.value_type in _DECODABLE:
            array = pa.DictionaryArray.from_arrays(array.indices, _decodable(array.dictionary))
        return array.dictionary_decode()
    if array.type.value_type in _DECODABLE:
        whole = pa.RunEndEncodedArray.from_arrays(array.run_ends, _decodable(array.values))
        array = whole.slice(array.offset, len(array))
    return pc.run_end_decode(array)


def _decodable(values: pa.Array) -> pa.Array:
    return values.cast(_DECODABLE[values.type])


def retype(array: pa.Array, target: pa.DataType) -> pa.Array:
    """An array of the same layout under other names, metadata, nullability or extensions. No value is copied.

    Unlike Arrow's ``view``, it allows a required field to have nulls below null structs.
    """
    if array.type.equals(target, check_metadata=True):
        return array
    if pa.types.is_struct(target):
        children = [retype(array.field(position), target.field(position).type) for position in range(target.num_fields)]
        return struct_array(target, children, array)
    if pa.types.is_map(target):
        keys, values = retype(array.keys, target.key_type), retype(array.items, target.item_type)
        entries = pa.StructArray.from_arrays([keys, values], fields=[target.key_field, target.item_field])
        return with_values(array, target, entries)
    if pa.types.is_list(target):
        return with_values(array, target, retype(array.values, target.value_type))
    return array.view(target)


def times_as_numbers(array: pa.Array) -> pa.Array:
    """The array with numbers in place of times, at any depth: Python's times are less precise and have less range."""
    return retype(array, _with_numbers(array.type))


def _with_numbers(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_temporal(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([_field_with_numbers(kind.field(position)) for position in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(_field_with_numbers(kind.key_field), _field_with_numbers(kind.item_field))
    if pa.types.is_list(kind):
        return pa.list_(_field_with_numbers(kind.value_field))
    return kind


def _field_with_numbers(field: pa.Field) -> pa.Field:
    return field.with_type(_with_numbers(field.type))


def with_values(array: pa.Array, target: pa.DataType, values: pa.Array) -> pa.Array:
    """A list or map of the same validity, offsets and slice over other values."""
    buffers = array.buffers()[:2]
    return pa.Array.from_buffers(target, len(array), buffers, array.null_count, array.offset, [values])


def struct_array(target: pa.DataType, children: list[pa.Array], like: pa.Array) -> pa.Array:
    """A struct array over children, null where ``like`` is null."""
    return pa.Array.from_buffers(target, len(like), [validity_buffer(like)], like.null_count, children=children)


def as_lists(array: pa.Array, plain: pa.DataType) -> pa.Array:
    """Any other kind of list as a list."""
    if not (pa.types.is_list_view(array.type) or pa.types.is_large_list_view(array.type)):
        return array.cast(plain)
    # Arrow's own cast of views gets the offsets wrong.
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int32))).astype(np.int32)
    buffers = [validity_buffer(array), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(plain, len(array), buffers, array.null_count, children=[array.flatten()])


def list_parts(array: pa.Array) -> tuple[pa.Buffer | None, pa.Buffer, int, int]:
    """Validity and offsets (from 0) of a list or map array, and the start and end of its values."""
    if len(array) == 0:
        return None, pa.py_buffer(np.zeros(1, np.int32)), 0, 0
    offsets = array.offsets
    start, stop = offsets[0].as_py(), offsets[len(array)].as_py()
    if array.offset == 0 and start == 0:
        return validity_buffer(array), array.buffers()[1], 0, stop
    rebased = np.ascontiguousarray(offsets.to_numpy() - start)
    return validity_buffer(array), pa.py_buffer(rebased), start, stop


def validity_buffer(array: pa.Array) -> pa.Buffer | None:
    """The validity bits of an array without its offset, from its first value on; None if nothing is null."""
    if array.null_count == 0:
        return None
    if array.offset == 0:
        return array.buffers()[0]
    valid = pc.is_valid(array).to_numpy(zero_copy_only=False)
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def settled(array: pa.Array) -> pa.Array:
    """The array without nulls in required fields below a null parent: any value may stand there, since none is read.

    Arrow's own functions put nulls below nulls (``pa.nulls``, ``flatten``, ``take``), and file formats that cannot
    store a null in a required column refuse them. A null of a required field below a parent that is not null stays, so
    that it can be refused. A settled array is returned as it is; otherwise no value is copied.
    """
    return _settled(array) if _is_unsettled(array) else array


def null_array(kind: pa.DataType, count: int) -> pa.Array:
    """A settled array of ``count`` nulls of a type."""
    return settled(pa.nulls(count, kind))


def may_be_unsettled(kind: pa.DataType) -> bool:
    """Whether a type has a required field anywhere below a nullable one."""
    below = _fields_below(kind) if pa.types.is_nested(kind) else ()
    return any(not field.nullable or may_be_unsettled(field.type) for field in below)


def map_entries(array: pa.Array) -> pa.ListArray:
    """A map array as a list of its pairs; nothing is copied.

    Unlike Arrow's cast this takes values that have nulls below nulls.
    """
    pairs = _pairs(array.type, [array.keys, array.items])
    return with_values(array, pa.list_(pa.field("entries", pairs.type, nullable=False)), pairs)


def _pairs(kind: pa.MapType, sides: list[pa.Array]) -> pa.StructArray:
    fields = pa.struct([kind.key_field, kind.item_field])
    return pa.Array.from_buffers(fields, len(sides[0]), [None], 0, children=sides)


def _fields_below(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_struct(kind):
        return list(kind)
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    return [kind.value_field] if pa.types.is_list(kind) else []


def _arrays_below(array: pa.Array) -> list[pa.Array]:
    if pa.types.is_struct(array.type):
        return [array.field(position) for position in range(array.type.num_fields)]
    return [array.keys, array.items] if pa.types.is_map(array.type) else [array.values]


def _is_unsettled(array: pa.Array) -> bool:
    fields = _fields_below(array.type)
    if not fields:
        return False
    pairs = zip(fields, _arrays_below(array), strict=True)
    return any((not field.nullable and below.null_count > 0) or _is_unsettled(below) for field, below in pairs)


def _settled(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_struct(kind):
        # `flatten` adds the struct's nulls to the children. A child with more nulls than the struct has own nulls.
        children = array.flatten() if array.null_count else _arrays_below(array)
        made = []
        for field, child in zip(kind, map(settled, children), strict=True):
            # A required child loses its nulls if all of them are the hidden nulls of the struct.
            fills = not field.nullable and 0 < child.null_count == array.null_count
            made.append(_without_nulls(child) if fills else child)
        return struct_array(kind, made, array)
    entries = map_entries(array) if pa.types.is_map(kind) else array
    # Values below a null list, or outside of the slice, are left out.
    lengths = pc.fill_null(pc.list_value_length(entries), 0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(array) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    values = entries.flatten()
    if pa.types.is_map(kind):
        values = _pairs(kind, [settled(side) for side in _arrays_below(values)])
    else:
        values = settled(values)
    buffers = [validity_buffer(array), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(kind, len(array), buffers, array.null_count, children=[values])


def _without_nulls(array: pa.Array) -> pa.Array:
    """The array without its validity bits: a null becomes the value that happens to be in the buffers."""
    kind = array.type
    if pa.types.is_struct(kind):
        return pa.Array.from_buffers(kind, len(array), [None], 0, children=_arrays_below(array))
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        values = _pairs(kind, _arrays_below(array)) if pa.types.is_map(kind) else array.values
        return pa.Array.from_buffers(kind, len(array), [None, array.buffers()[1]], 0, array.offset, [values])
    return pa.Array.from_buffers(kind, len(array), [None, *array.buffers()[1:]], 0, array.offset)


def validate_full(array: pa.Array) -> None:
    """Raise ``pa.ArrowInvalid`` where a value, at any depth, is not of the array's type.

    As ``array.validate(full=True)``, plus one decimal that pyarrow accepts wrongly: the least number of 128 or 256
    bits. Its absolute value overflows, so pyarrow counts too few digits and accepts it for any precision.
    """
    array.validate(full=True)
    if _has_decimals(array.type):
        for part in filter(lambda part: pa.types.is_decimal(part.type), parts_below(array)):
            least = pc.min(part).as_py()
            if least is not None and len(least.as_tuple().digits) > part.type.precision:
                raise pa.ArrowInvalid(f"{least} has more digits than {part.type}")


def parts_below(array: pa.Array) -> Iterator[pa.Array]:
    """The leaves of a column, without values below nulls. Raises ``ArrowInvalid`` for lists of negative length."""
    if pa.types.is_struct(array.type):
        for part in array.flatten():
            yield from parts_below(part)
    elif pa.types.is_list(array.type) or pa.types.is_map(array.type):
        lists = map_entries(array) if pa.types.is_map(array.type) else array
        if (np.diff(lists.offsets) < 0).any():
            raise pa.ArrowInvalid("offsets that fall")
        yield from parts_below(lists.flatten())
    else:
        yield array


def _has_decimals(kind: pa.DataType) -> bool:
    return pa.types.is_decimal(kind) or any(_has_decimals(kind.field(at).type) for at in range(kind.num_fields))
