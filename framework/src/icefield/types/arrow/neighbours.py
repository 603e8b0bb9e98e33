"""Concatenation of arrays, without a copy if they are neighbouring slices of one array.

Manifests that are decoded together are slices of the same columns, and are mostly read together again.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa


def joined(arrays: Sequence[pa.Array]) -> pa.Array:
    """Concatenate arrays of one type."""
    first = arrays[0]
    if len(arrays) == 1:
        return first
    if not all(are_neighbours(one, other) for one, other in pairwise(arrays)):
        return pa.concat_arrays(arrays)
    rows = sum(map(len, arrays))
    if not pa.types.is_map(first.type):
        return pa.Array.from_buffers(first.type, rows, first.buffers(), offset=first.offset)
    return pa.Array.from_buffers(first.type, rows, first.buffers()[:2], offset=first.offset, children=[_entries(first)])


def are_neighbours(one: pa.Array, other: pa.Array) -> bool:
    """Whether both arrays, of one type, are slices of one array and the second begins where the first ends."""
    return one.offset + len(one) == other.offset and _is_plain(one.type) and _whole(one) == _whole(other)


def _is_plain(kind: pa.DataType) -> bool:
    """Whether slicing an array of this type leaves its children, if it has any, unchanged."""
    if pa.types.is_map(kind):
        return _has_no_children(kind.key_type) and _has_no_children(kind.item_type)
    return _has_no_children(kind)


def _has_no_children(kind: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(kind) or pa.types.is_binary(kind) or pa.types.is_string(kind))


def _entries(maps: pa.MapArray) -> pa.StructArray:
    """All entries of the array that the maps were cut from."""
    kind = maps.type
    return pa.StructArray.from_arrays([maps.keys, maps.items], fields=[kind.key_field, kind.item_field])


def _whole(array: pa.Array) -> Any:
    """The identity of the array that a slice was cut from, by its buffers: equal for slices of one array."""
    places = [None if buffer is None else (buffer.address, buffer.size) for buffer in array.buffers()]
    if not pa.types.is_map(array.type):
        return places
    return places, [(part.offset, len(part)) for part in (array.keys, array.items)]
