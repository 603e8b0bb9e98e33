"""Map columns with duplicate keys in a row.

Arrow accepts duplicate keys; in a dictionary made of a row, the last pair counts. This module finds them with a few
vectorised calls a column.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icefield.base import compute as pc
from icefield.types.arrow.nested import struct_array, validity_buffer, with_values
from icefield.types.arrow.types import child_fields, unwrapped

_SHORT: Final = 32
"""Rows of no more pairs are compared pair by pair, which is sooner done than sorting."""


@lru_cache(maxsize=512)
def has_maps(data_type: pa.DataType) -> bool:
    """Whether a type is a map or holds one."""
    if pa.types.is_dictionary(data_type) or unwrapped(data_type) is not data_type:
        return False
    return bool(pa.types.is_map(data_type)) or any(has_maps(child.type) for child in child_fields(data_type))


def has_repeated_keys(array: pa.Array) -> bool:
    """Whether a key comes twice in a row of a map, at any depth. Keys that are nested themselves are not compared."""
    kind = array.type
    if not has_maps(kind):
        return False
    if pa.types.is_struct(kind):
        return any(has_repeated_keys(child) for child in array.flatten())
    if pa.types.is_map(kind):
        return _repeated(array) is not None or has_repeated_keys(_pairs(array))
    return has_repeated_keys(array.flatten())


def last_of_each_key(array: pa.Array) -> pa.Array:
    """The array with only the last pair of each key in each row of a map, at any depth.

    Without repeated keys it is the same array.
    """
    kind = array.type
    if not has_maps(kind):
        return array
    if pa.types.is_struct(kind):
        children = [array.field(position) for position in range(kind.num_fields)]
        made = [last_of_each_key(child) for child in children]
        same = all(one is other for one, other in zip(children, made, strict=True))
        return array if same else struct_array(kind, made, array)
    if not (pa.types.is_map(kind) or pa.types.is_list(kind)):
        return array
    held = array
    repeated = _repeated(array) if pa.types.is_map(kind) else None
    if repeated is not None:
        held = _without(array, repeated)
    inner = _pairs(held, whole=True) if pa.types.is_map(kind) else held.values
    made = last_of_each_key(inner)
    return held if made is inner else with_values(held, kind, made)


def _pairs(array: pa.MapArray, *, whole: bool = False) -> pa.StructArray:
    keys, items = array.keys, array.items
    if not whole and len(array):
        start, stop = array.offsets[0].as_py(), array.offsets[len(array)].as_py()
        keys, items = keys.slice(start, stop - start), items.slice(start, stop - start)
    return pa.StructArray.from_arrays([keys, items], fields=[array.type.key_field, array.type.item_field])


def _repeated(array: pa.MapArray) -> np.ndarray[Any, Any] | None:
    """Which pairs are followed by a pair with the same key in their row; None if there are no such pairs."""
    if len(array) == 0 or pa.types.is_nested(array.type.key_type):
        return None
    offsets = array.offsets.to_numpy()[: len(array) + 1]
    lengths = np.diff(offsets)
    if lengths.max(initial=0) < 2:
        return None
    keys = array.keys.slice(offsets[0], offsets[-1] - offsets[0])
    if _ascend(keys, offsets[1:-1] - offsets[0]):
        return None
    encoded = keys if isinstance(keys, pa.DictionaryArray) else keys.dictionary_encode()
    codes = pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    # Null rows may have pairs in memory, which have no meaning.
    rows = np.repeat(np.arange(len(array)), lengths)
    marks = rows * len(encoded.dictionary) + codes
    repeated = _followed(marks, int(lengths.max()))
    if repeated is None:
        return None
    if array.null_count:
        repeated &= np.repeat(array.is_valid().to_numpy(zero_copy_only=False), lengths)
    return repeated if repeated.any() else None


def _followed(marks: np.ndarray[Any, Any], furthest: int) -> np.ndarray[Any, Any] | None:
    """Which marks occur again less than ``furthest`` positions later; None if no mark does."""
    repeated = np.zeros(len(marks), bool)
    if furthest <= _SHORT:
        for distance in range(1, furthest):
            repeated[:-distance] |= marks[:-distance] == marks[distance:]
    else:
        places = np.argsort(marks, kind="stable")
        ordered = marks[places]
        repeated[places[:-1][ordered[1:] == ordered[:-1]]] = True
    return repeated if repeated.any() else None


def _ascend(keys: pa.Array, starts: np.ndarray[Any, Any]) -> bool:
    """Whether the keys of each row ascend: a cheap check of the usual case.

    ``starts`` are the positions where all rows but the first begin.
    """
    try:
        ascends = pc.less(keys.slice(0, len(keys) - 1), keys.slice(1))
    except pa.ArrowException:
        return False
    if ascends.null_count or ascends.offset:
        return False
    stated = np.unpackbits(np.frombuffer(ascends.buffers()[1], np.uint8), bitorder="little")[: len(ascends)]
    # Rows without pairs at the front begin at 0, and at the back after the last key: no two keys meet there.
    inner = starts[np.searchsorted(starts, 1) : np.searchsorted(starts, len(keys))]
    stated[inner.astype(np.intp) - 1] = 1
    return bool(stated.all())


def _without(array: pa.MapArray, repeated: np.ndarray[Any, Any]) -> pa.MapArray:
    kept = ~repeated
    offsets = array.offsets.to_numpy()[: len(array) + 1]
    counts = np.concatenate(([0], np.cumsum(kept))).astype(np.int32)
    pairs = _pairs(array).filter(pa.array(kept))
    buffers = [validity_buffer(array), pa.py_buffer(np.ascontiguousarray(counts[offsets - offsets[0]]))]
    return pa.Array.from_buffers(array.type, len(array), buffers, array.null_count, children=[pairs])
