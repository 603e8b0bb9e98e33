"""Taking a part of an Arrow batch: fewer columns, fewer children of nested ones.

For formats with a library that cannot read a part of a nested column. Nothing is copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from icefield.errors import InvalidArgument


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
        return _prune_struct(array, wanted, name)
    if pa.types.is_list(have) and pa.types.is_list(wanted):
        values = prune_array(array.values, wanted.value_type, name)
        return _rebuilt(array, wanted, [values])
    if pa.types.is_map(have) and pa.types.is_map(wanted):
        entries = pa.struct([wanted.key_field, wanted.item_field])
        children = [prune_array(array.keys, wanted.key_type, name), prune_array(array.items, wanted.item_type, name)]
        made = pa.StructArray.from_arrays(children, fields=list(entries))
        return _rebuilt(array, wanted, [made])
    if have == wanted:
        return array.view(wanted)
    raise InvalidArgument(f"column '{name}' is {have}, not {wanted}")


def _prune_struct(array: pa.StructArray, wanted: pa.StructType, name: str) -> pa.StructArray:
    fields = [wanted.field(i) for i in range(wanted.num_fields)]
    have = [array.type.field(i) for i in range(array.type.num_fields)]
    # field() respects the slice of the parent, and leaves its nulls to the validity that is handed on.
    children = [array.field(i) for i in range(len(have))]
    found = arrays_named(have, children, fields)
    made = [prune_array(child, field.type, f"{name}.{field.name}") for child, field in zip(found, fields, strict=True)]
    if not made:
        return pa.Array.from_buffers(wanted, len(array), [_validity(array)], array.null_count)
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(made, fields=fields, mask=mask)


def _rebuilt(array: pa.Array, wanted: pa.DataType, children: list[pa.Array]) -> pa.Array:
    """A list or map over other children, with the same validity, offsets and slice."""
    buffers = array.buffers()[:2]
    return pa.Array.from_buffers(wanted, len(array), buffers, array.null_count, array.offset, children)


def _validity(array: pa.Array) -> pa.Buffer | None:
    return array.is_valid().buffers()[1] if array.null_count else None
