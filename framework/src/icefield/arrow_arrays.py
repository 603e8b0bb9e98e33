"""Nested Arrow arrays taken apart and put together again without copying values.

Everything here respects the slice that an array is of a larger one.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def unwrap(array: pa.Array) -> pa.Array:
    """The plain array below an extension, or of a dictionary or run-end encoding."""
    if isinstance(array, pa.ExtensionArray):
        return array.storage
    if isinstance(array, pa.DictionaryArray):
        return array.dictionary_decode()
    return pc.run_end_decode(array)


def retype(array: pa.Array, target: pa.DataType) -> pa.Array:
    """An array of the same layout under other names, metadata, nullability or extensions. No value is copied.

    Unlike Arrow's ``view`` it lets a field be required that has nulls below null structs.
    """
    if array.type.equals(target, check_metadata=True):
        return array
    if pa.types.is_struct(target):
        children = [retype(array.field(position), target.field(position).type) for position in range(target.num_fields)]
        return struct_array(target, children, array)
    if pa.types.is_map(target):
        keys, values = retype(array.keys, target.key_type), retype(array.items, target.item_type)
        entries = pa.StructArray.from_arrays([keys, values], fields=[target.key_field, target.item_field])
        return _over(array, target, entries)
    if pa.types.is_list(target):
        return _over(array, target, retype(array.values, target.value_type))
    return array.view(target)


def times_as_numbers(array: pa.Array) -> pa.Array:
    """The array with a number for every time in it, at any depth: Python has no time as fine or as far as Arrow's."""
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


def _over(array: pa.Array, target: pa.DataType, values: pa.Array) -> pa.Array:
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
    """Validity and offsets of a list or map array, counted from its own first value; where that lies, and the end."""
    if len(array) == 0:
        return None, pa.py_buffer(np.zeros(1, np.int32)), 0, 0
    offsets = array.offsets
    start, stop = offsets[0].as_py(), offsets[len(array)].as_py()
    if array.offset == 0 and start == 0:
        return validity_buffer(array), array.buffers()[1], 0, stop
    rebased = np.ascontiguousarray(offsets.to_numpy() - start)
    return validity_buffer(array), pa.py_buffer(rebased), start, stop


def validity_buffer(array: pa.Array) -> pa.Buffer | None:
    """The validity bits of an array from its first value on, whatever its offset; None when nothing is null."""
    if array.null_count == 0:
        return None
    if array.offset == 0:
        return array.buffers()[0]
    valid = pc.is_valid(array).to_numpy(zero_copy_only=False)
    return pa.py_buffer(np.packbits(valid, bitorder="little"))
