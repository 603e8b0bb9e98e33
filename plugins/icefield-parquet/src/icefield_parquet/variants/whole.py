"""Whole variants from files that store them shredded: the columns to read, and their conversion."""

from __future__ import annotations

import pyarrow as pa
from icefield.errors import IcefieldError, InvalidFile, UnsupportedFeature
from icefield.toolkit import VARIANT_ARROW, child_fields, list_parts, struct_array, validity_buffer

from icefield_parquet.schema import counterparts
from icefield_parquet.variants.unshredding import unshredded


def stored_columns(file_schema: pa.Schema, columns: pa.Schema) -> pa.Schema | None:
    """Return the schema to read for columns, with the groups of shredded variants; None if it equals the columns."""
    asking = [at for at, field in enumerate(columns) if _asks(field.type)]
    if not asking:
        return None
    held = list(file_schema)
    wanted = [columns.field(at) for at in asking]
    fields = list(columns)
    for at, field, place in zip(asking, wanted, counterparts(held, wanted), strict=True):
        fields[at] = field.with_type(_stored(held[place].type, field.type))
    stored = pa.schema(fields, columns.metadata)
    return None if stored.equals(columns, check_metadata=True) else stored


def with_whole_variants(batch: pa.RecordBatch, columns: pa.Schema, location: str) -> pa.RecordBatch:
    """Convert a batch of stored columns to the requested columns; further columns stay.

    Raises ``InvalidFile`` for damaged variants and ``UnsupportedFeature`` for types that no variant has.
    """
    fields, made = list(batch.schema), batch.columns
    for at, field in enumerate(columns):
        if not fields[at].type.equals(field.type, check_metadata=True):
            made[at] = _whole(made[at], field.type, f"{location}: column '{field.name}", location)
            fields[at] = fields[at].with_type(field.type)
    return pa.RecordBatch.from_arrays(made, schema=pa.schema(fields, batch.schema.metadata))


def _asks(kind: pa.DataType) -> bool:
    """Whether a variant somewhere inside is asked for whole."""
    if not kind.num_fields:
        return False
    return _is_whole(kind) or any(_asks(child.type) for child in child_fields(kind))


def _is_whole(kind: pa.DataType) -> bool:
    return bool(kind.equals(VARIANT_ARROW, check_metadata=True))


def _stored(held: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    """Return the type to read for a wanted type: the file's own type for a shredded variant."""
    kinds = pa.types
    if _is_whole(wanted):
        shredded = kinds.is_struct(held) and {"metadata", "typed_value"} <= {field.name for field in held}
        return held if shredded else wanted
    inside, asked = child_fields(held), child_fields(wanted)
    if not asked or held.id != wanted.id:
        return wanted
    # An element, a key and a value are found by their place.
    places = counterparts(inside, asked) if kinds.is_struct(wanted) else list(range(len(asked)))
    made = [
        field.with_type(_stored(inside[place].type, field.type)) for field, place in zip(asked, places, strict=True)
    ]
    if kinds.is_struct(wanted):
        return pa.struct(made)
    if kinds.is_map(wanted):
        return pa.map_(*made, keys_sorted=wanted.keys_sorted)
    if kinds.is_fixed_size_list(wanted):
        return pa.list_(made[0], wanted.list_size)
    return pa.large_list(made[0]) if kinds.is_large_list(wanted) else pa.list_(made[0])


def _whole(array: pa.Array, wanted: pa.DataType, where: str, location: str) -> pa.Array:
    """Convert an array to the wanted type; ``where`` is the beginning of error messages."""
    if array.type.equals(wanted, check_metadata=True):
        return array
    if not len(array):
        return pa.array([], wanted)
    kinds = pa.types
    if _is_whole(wanted):
        try:
            return unshredded(array)
        except IcefieldError as error:
            wrong = UnsupportedFeature if isinstance(error, UnsupportedFeature) else InvalidFile
            raise wrong(f"{where}': {error.message}", location=location) from error
    fields = child_fields(wanted)
    if kinds.is_struct(wanted):
        # A value below a null struct may be no variant, so it must become null before it is decoded.
        children = array.flatten() if array.null_count else [array.field(at) for at in range(len(fields))]
        made = [
            _whole(child, field.type, f"{where}.{field.name}", location)
            for child, field in zip(children, fields, strict=True)
        ]
        return struct_array(wanted, made, array)
    if kinds.is_fixed_size_list(wanted):
        size = wanted.list_size
        values = array.values.slice(array.offset * size, len(array) * size)
        made = [_whole(values, wanted.value_type, f"{where}.{fields[0].name}", location)]
        return pa.Array.from_buffers(wanted, len(array), [validity_buffer(array)], array.null_count, children=made)
    validity, offsets, start, stop = list_parts(array)
    if kinds.is_map(wanted):
        sides = [side.slice(start, stop - start) for side in (array.keys, array.items)]
        made = [
            _whole(side, field.type, f"{where}.{field.name}", location)
            for side, field in zip(sides, fields, strict=True)
        ]
        children = [pa.StructArray.from_arrays(made, fields=fields)]
    else:
        values = array.values.slice(start, stop - start)
        children = [_whole(values, wanted.value_type, f"{where}.{fields[0].name}", location)]
    return pa.Array.from_buffers(wanted, len(array), [validity, offsets], array.null_count, children=children)
