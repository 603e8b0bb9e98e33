"""Fewer children of nested Arrow columns. Nothing is copied."""

from __future__ import annotations

import pyarrow as pa
from icefield.errors import InvalidArgument
from icefield.toolkit import struct_array, with_values


def prune_array(array: pa.Array, wanted: pa.DataType, name: str = "") -> pa.Array:
    """An array with the children that ``wanted`` names, by name at each level; nulls stay where they are.

    Raises ``InvalidArgument`` for a child that the array lacks or has twice, and for an array of another kind.
    """
    have = array.type
    if have.equals(wanted, check_metadata=True):
        return array
    if pa.types.is_struct(have) and pa.types.is_struct(wanted):
        children = []
        for field in wanted:
            places = have.get_all_field_indices(field.name)
            if len(places) != 1:
                raise InvalidArgument(f"{len(places)} columns are named '{field.name}'; exactly one is needed")
            # field() respects the slice of the parent but not its nulls, which ``struct_array`` takes from ``array``.
            children.append(prune_array(array.field(places[0]), field.type, f"{name}.{field.name}"))
        return struct_array(wanted, children, array)
    if pa.types.is_list(have) and pa.types.is_list(wanted):
        values = prune_array(array.values, wanted.value_type, name)
        return with_values(array, wanted, values)
    if pa.types.is_map(have) and pa.types.is_map(wanted):
        children = [prune_array(array.keys, wanted.key_type, name), prune_array(array.items, wanted.item_type, name)]
        entries = pa.StructArray.from_arrays(children, fields=[wanted.key_field, wanted.item_field])
        return with_values(array, wanted, entries)
    if have == wanted:
        return array.view(wanted)
    raise InvalidArgument(f"column '{name}' is {have}, not {wanted}")
