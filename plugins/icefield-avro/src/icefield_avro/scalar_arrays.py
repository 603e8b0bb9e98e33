"""Values decoded one by one, put into Arrow arrays."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from icefield_avro.nodes import Array, Map, Record
from icefield_avro.selection import Selection


def to_arrow(selection: Selection, values: list[Any]) -> pa.Array:
    """Decoded values as an array of the selection's type."""
    node = selection.node
    match node:
        case Record():
            return _struct(selection, values)
        case Array():
            items = [item for value in values if value is not None for item in value]
            return _list(selection, values, to_arrow(selection.child(0), items))
        case Map():
            key, value = selection.child(0), selection.child(1)
            pairs = [pair for entries in values if entries is not None for pair in entries]
            arrays = [to_arrow(key, [pair[0] for pair in pairs]), to_arrow(value, [pair[1] for pair in pairs])]
            entry = pa.struct([selection.type.key_field, selection.type.item_field])
            return _list(selection, values, struct_array(entry, len(pairs), arrays, None))
    return pa.array(values, selection.type)


def _struct(selection: Selection, values: list[Any]) -> pa.Array:
    children = []
    for place, index in enumerate(selection.order):
        child = selection.child(index)
        children.append(to_arrow(child, [None if row is None else row[place] for row in values]))
    return struct_array(selection.type, len(values), children, _validity(values))


def _validity(values: list[Any]) -> pa.Buffer | None:
    if not any(value is None for value in values):
        return None
    return pa.array([value is not None for value in values], pa.bool_()).buffers()[1]


def _list(selection: Selection, values: list[Any], child: pa.Array) -> pa.Array:
    offsets = [0]
    for value in values:
        offsets.append(offsets[-1] + (0 if value is None else len(value)))
    buffers = [_validity(values), pa.array(offsets, pa.int32()).buffers()[1]]
    return pa.Array.from_buffers(selection.type, len(values), buffers, children=[child])


def struct_array(arrow: pa.DataType, length: int, children: list[pa.Array], validity: pa.Buffer | None) -> pa.Array:
    """An array of structs, also of structs without fields."""
    return pa.Array.from_buffers(arrow, length, [validity], children=children)
