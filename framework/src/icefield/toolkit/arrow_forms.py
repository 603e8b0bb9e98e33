"""Conversion of arrays of any Arrow form to exactly the form of a schema."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import pyarrow as pa

from icefield.base import compute as pc
from icefield.errors import InvalidArgument
from icefield.toolkit.batches import bare_batch
from icefield.types.arrow.nested import as_lists, list_parts, retype, struct_array, unwrap
from icefield.types.arrow.types import child_fields, is_list_like

_STRINGS: Final = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_BYTES: Final = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
)
_FAMILIES: Final = (
    (*_STRINGS, *_BYTES),
    (pa.types.is_integer,),
    (pa.types.is_decimal,),
    (pa.types.is_date,),
    (pa.types.is_time,),
    (pa.types.is_timestamp,),
)
"""Within a family a cast keeps each value or raises."""


def conform(batch: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    """The batch with exactly ``columns``: by name, in that order, of exactly those types at every level.

    A column of the batch may have more fields than the schema and any Arrow form of the same values (see ``as_form``).
    Raises ``InvalidArgument`` for a column that is missing or of another kind, and ``ValueError`` for a value that does
    not fit and for a null in a required field.
    """
    if not len(columns):
        return bare_batch(batch.num_rows)
    arrays = _arrays_named(batch.schema, batch.columns, columns)
    made = [as_form(array, field.type, field.name) for array, field in zip(arrays, columns, strict=True)]
    for array, field in zip(made, columns, strict=True):
        _check_nulls(array, field)
    return pa.RecordBatch.from_arrays(made, schema=columns)


def as_form(array: pa.Array, wanted: pa.DataType, name: str = "") -> pa.Array:
    """The same values as an array of exactly the type ``wanted``, the metadata of nested fields included.

    Accepted are dictionaries and run-end encodings, extension types (by their storage), and large and view forms of
    strings, bytes and lists. So are lists of fixed size, fields of structs by name, numbers of another width of the
    same kind, other units of time, and the plain integers of dates and times. ``name`` is for messages.
    Raises ``InvalidArgument`` for a type of another kind, ``ValueError`` (``pa.ArrowInvalid``) for a value that does
    not fit.
    """
    have = array.type
    if have.equals(wanted, check_metadata=True):
        return array
    if isinstance(have, pa.BaseExtensionType) or pa.types.is_dictionary(have) or pa.types.is_run_end_encoded(have):
        return as_form(unwrap(array), wanted, name)
    if pa.types.is_null(have):
        return pa.nulls(len(array), wanted)
    if pa.types.is_struct(wanted) and pa.types.is_struct(have):
        return _struct(array, wanted, name)
    if pa.types.is_map(wanted) and pa.types.is_map(have):
        validity, offsets, start, stop = list_parts(array)
        fields = (wanted.key_field, wanted.item_field)
        sides = (array.keys.slice(start, stop - start), array.items.slice(start, stop - start))
        made = [as_form(side, field.type, f"{name}.{field.name}") for side, field in zip(sides, fields, strict=True)]
        entries = pa.StructArray.from_arrays(made, fields=list(fields))
        return pa.Array.from_buffers(wanted, len(array), [validity, offsets], array.null_count, children=[entries])
    if pa.types.is_list(wanted) and is_list_like(have):
        lists = array if pa.types.is_list(have) else as_lists(array, pa.list_(have.value_field))
        validity, offsets, start, stop = list_parts(lists)
        values = as_form(lists.values.slice(start, stop - start), wanted.value_type, f"{name}.element")
        return pa.Array.from_buffers(wanted, len(array), [validity, offsets], lists.null_count, children=[values])
    return _leaf(array, wanted, name)


def _struct(array: pa.StructArray, wanted: pa.DataType, name: str) -> pa.Array:
    have, fields = child_fields(array.type), child_fields(wanted)
    # A value below a null struct may be invalid for its type, so it must become null before the conversion.
    children = array.flatten() if array.null_count else [array.field(at) for at in range(len(have))]
    found = _arrays_named(have, children, fields)
    made = [as_form(child, field.type, f"{name}.{field.name}") for child, field in zip(found, fields, strict=True)]
    return struct_array(wanted, made, array)


def _leaf(array: pa.Array, wanted: pa.DataType, name: str) -> pa.Array:
    have = array.type
    if have == wanted:
        return retype(array, wanted)
    if pa.types.is_timestamp(have) and pa.types.is_timestamp(wanted):
        # With or without a zone, the number counts from the epoch: only its unit can differ.
        return array.view(pa.timestamp(have.unit, wanted.tz)).cast(wanted)
    if pa.types.is_temporal(wanted) and pa.types.is_signed_integer(have) and have.bit_width == wanted.bit_width:
        return array.view(wanted)
    if pa.types.is_floating(have) and pa.types.is_floating(wanted) and have.bit_width < wanted.bit_width:
        return array.cast(wanted)
    for family in _FAMILIES:
        if any(holds(have) for holds in family) and any(holds(wanted) for holds in family):
            return array.cast(wanted)
    raise InvalidArgument(f"column '{name}' is {have}, not {wanted}", field=name)


def _check_nulls(array: pa.Array, field: pa.Field) -> None:
    """Refuse a null in a required field that is not below a null parent."""
    if array.null_count:
        if not field.nullable:
            raise ValueError(f"a null in the required column '{field.name}'")
        if not _has_required(field.type):
            return
        array = array.drop_null()
    for child, inner in zip(*_children(array), strict=True):
        _check_nulls(child, inner)


def _children(array: pa.Array) -> tuple[list[pa.Array], list[pa.Field]]:
    """The children of an array without nulls, and their fields; keys cannot be null."""
    fields = child_fields(array.type)
    if pa.types.is_struct(array.type):
        return [array.field(at) for at in range(len(fields))], fields
    if pa.types.is_map(array.type):
        _, _, start, stop = list_parts(array)
        return [array.keys.slice(start, stop - start), array.items.slice(start, stop - start)], fields
    return ([pc.list_flatten(array)] if fields else []), fields


def _has_required(kind: pa.DataType) -> bool:
    return any(not field.nullable or _has_required(field.type) for field in child_fields(kind))


def _arrays_named(held: Iterable[pa.Field], arrays: Sequence[pa.Array], wanted: Iterable[pa.Field]) -> list[pa.Array]:
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
