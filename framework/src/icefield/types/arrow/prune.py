"""Taking a part of an Arrow batch: fewer columns, fewer children of nested ones.

For formats with a library that cannot read a part of a nested column. Nothing is copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from icefield.errors import InvalidArgument
from icefield.types.arrow.nested import struct_array, with_values


def prune_batch(batch: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    """The columns of ``columns``, in that order; each a column of ``batch`` by name with the same or fewer children.

    Raises ``InvalidArgument`` if the batch lacks a column or has one of another kind.
    """
    found = arrays_named(batch.schema, batch.columns, columns)
    arrays = [prune_array(array, field.type, field.name) for array, field in zip(found, columns, strict=True)]
    if not arrays:
        return batch.select([])  # which keeps the number of rows
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def arrays_named(held: Iterable[pa.Field], arrays: Sequence[pa.Array], wanted: Iterable[pa.Field]) -> list[pa.Array]:
    """The array of each wanted field, found by its name among the held fields and their arrays.

    Raises ``InvalidArgument`` for a wanted name that no held field has, or more than one.
    """
    by_name: dict[str, list[pa.Array]] = {}
    for field, array in zip(held, arrays, strict=True):
        by_name.setdefault(field.name, []).append(array)
    chosen = []
    for field in wanted:
        found = by_name.get(field.name, [])
        if len(found) != 1:
            raise InvalidArgument(f"{len(found)} columns are named '{field.name}'; exactly one is needed")
        chosen.append(found[0])
    return chosen


def prune_array(array: pa.Array, wanted: pa.DataType, name: str = "") -> pa.Array:
    """An array with the children that ``wanted`` names, by name at each level; nulls stay where they are."""
    have = array.type
    if have.equals(wanted, check_metadata=True):
        return array
    if pa.types.is_struct(have) and pa.types.is_struct(wanted):
        # field() respects the slice of the parent but not its nulls, which ``struct_array`` takes from ``array``.
        children = [array.field(i) for i in range(have.num_fields)]
        pairs = zip(arrays_named(have, children, wanted), wanted, strict=True)
        made = [prune_array(child, field.type, f"{name}.{field.name}") for child, field in pairs]
        return struct_array(wanted, made, array)
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
