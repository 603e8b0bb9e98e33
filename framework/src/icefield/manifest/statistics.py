"""Statistics maps (field id to count or bound, for each file) turned into one Arrow column for one field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from icefield.errors import InvalidMetadata

StatisticsRequest = Mapping[int, frozenset[int]]
"""Which fields' statistics are wanted: by the id of the map (``LOWER_BOUNDS``, ...), the ids of the table's fields."""


def map_column(maps: pa.Array, key: int) -> pa.Array | None:
    """The values under one key, one for each map, null where it is absent; None when no map has the key.

    If a key occurs twice in a map, the last value counts.
    """
    offsets, keys, values = map_parts(maps)
    rows = len(maps)
    first, last = int(offsets[0]), int(offsets[-1])
    hits = np.flatnonzero(keys[first:last] == key)
    if len(hits) == 0:
        return None
    if len(hits) == rows == last - first and (np.diff(offsets) == 1).all():
        return values.slice(first, rows)
    hits += first
    chosen = np.full(rows, -1, np.int64)
    chosen[np.searchsorted(offsets[1:], hits, side="right")] = hits
    if maps.null_count:
        chosen[maps.is_null().to_numpy(zero_copy_only=False)] = -1
    return values.take(pa.array(chosen, mask=chosen < 0))


def map_columns(maps: pa.Array, wanted: Iterable[int]) -> dict[int, pa.Array | None]:
    """The columns of several keys, as ``map_column``; as fast as a single key if all maps have the same keys in order.

    That holds for most manifests: the files of a table mostly have statistics of the same columns.
    """
    offsets, keys, values = map_parts(maps)
    rows, first, last = len(maps), int(offsets[0]), int(offsets[-1])
    width = (last - first) // rows if rows else 0
    held = keys[first:last]
    is_regular = width and width * rows == len(held) and (np.diff(offsets) == width).all()
    if not is_regular or not (held.reshape(rows, width) == held[:width]).all():
        return {key: map_column(maps, key) for key in wanted}
    places = {key: place for place, key in enumerate(keys[first : first + width].tolist())}
    numbers = values.to_numpy() if values.null_count == 0 and pa.types.is_integer(values.type) else None
    found: dict[int, pa.Array | None] = {}
    for key in wanted:
        place = places.get(key)
        if place is None:
            found[key] = None
        elif numbers is not None:
            found[key] = pa.array(np.ascontiguousarray(numbers[first + place : last : width]))
        else:
            found[key] = _every(values, first + place, last, width)
    return found


def _every(values: pa.Array, first: int, last: int, step: int) -> pa.Array:
    """Every ``step``-th value from one position to another; fast for values of equal length, such as numbers."""
    if values.type == pa.binary() and values.null_count == 0:
        _, ends, data = values.buffers()
        offsets = np.frombuffer(ends, np.int32)[values.offset :]
        starts = offsets[first:last:step]
        lengths = offsets[first + 1 : last + 1 : step] - starts
        length = int(lengths[0])
        if length and np.count_nonzero(lengths == length) == len(lengths):
            everywhere = np.ndarray((data.size - length + 1,), np.dtype((np.void, length)), data, 0, (1,))
            taken = pa.py_buffer(everywhere[starts])
            evenly = pa.py_buffer(np.arange(len(starts) + 1, dtype=np.int32) * np.int32(length))
            return pa.Array.from_buffers(values.type, len(starts), [None, evenly, taken])
    return values.take(pa.array(np.arange(first, last, step)))


def map_parts(maps: pa.Array) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], pa.Array]:
    """Offsets, keys and values of an array of maps; offsets count from its start."""
    return maps.offsets.to_numpy(), maps.keys.to_numpy(zero_copy_only=False), maps.items


def check_map(kind: pa.DataType, target: pa.MapType, what: str, location: str) -> None:
    """Raise ``InvalidMetadata`` if a type is no map, or list of key-value structs, that ``as_map`` can convert."""
    if pa.types.is_list(kind) and pa.types.is_struct(kind.value_type) and kind.value_type.num_fields == 2:
        kind = pa.map_(kind.value_type.field(0).type, kind.value_type.field(1).type)
    if not pa.types.is_map(kind) or not _fits(kind.key_type, kind.item_type, target):
        raise InvalidMetadata(f"{location}: {what} has type {kind}, not {target}", location=location)


def as_map(column: pa.Array, target: pa.MapType) -> pa.Array:
    """A statistics column in its canonical type; an encoded column stays as it is."""
    if pa.types.is_list(column.type):
        column = pa.MapArray.from_arrays(column.offsets, column.values.field(0), column.values.field(1))
    return column if column.type in (target, pa.binary()) else column.cast(target)


def _fits(key: pa.DataType, item: pa.DataType, target: pa.MapType) -> bool:
    if not pa.types.is_integer(key):
        return False
    if pa.types.is_integer(target.item_type):
        return bool(pa.types.is_integer(item))
    return bool(pa.types.is_binary(item) or pa.types.is_large_binary(item) or pa.types.is_fixed_size_binary(item))


def map_dicts(maps: pa.Array) -> list[dict[int, Any] | None]:
    """Each map as a dict, or None. Used for ``DataFile`` objects that carry all their statistics."""
    offsets, keys, values = map_parts(maps)
    first = int(offsets[0])
    flat_keys = keys[first : int(offsets[-1])].tolist()
    flat_values = values.slice(first, len(flat_keys)).to_pylist()
    bounds = (offsets - first).tolist()
    dicts: list[dict[int, Any] | None] = [
        dict(zip(flat_keys[a:b], flat_values[a:b], strict=True)) for a, b in pairwise(bounds)
    ]
    if maps.null_count:
        for row in np.flatnonzero(maps.is_null().to_numpy(zero_copy_only=False)).tolist():
            dicts[row] = None
    return dicts
