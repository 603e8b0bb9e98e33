"""Statistics maps (field id to count or bound, for each file) turned into one Arrow column for one field."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icefield.errors import InvalidMetadata
from icefield.manifest import schemas as f

StatisticsRequest = Mapping[int, frozenset[int]]
"""Which fields' statistics are wanted: by the id of the map (``LOWER_BOUNDS``, ...), the ids of the table's fields."""

STATISTICS: Final = (
    f.COLUMN_SIZES,
    f.VALUE_COUNTS,
    f.NULL_VALUE_COUNTS,
    f.NAN_VALUE_COUNTS,
    f.LOWER_BOUNDS,
    f.UPPER_BOUNDS,
)


def map_column(maps: pa.Array, key: int) -> pa.Array | None:
    """The values under one key, one for each map, null where it is absent; None when no map has the key.

    Of a key that occurs twice in a map the last value counts.
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


def map_parts(maps: pa.Array) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], pa.Array]:
    """Offsets, keys and values of an array of maps, or of lists of key-value structs; offsets count from its start."""
    offsets = maps.offsets.to_numpy()
    if pa.types.is_map(maps.type):
        return offsets, maps.keys.to_numpy(zero_copy_only=False), maps.items
    entries = maps.values
    return offsets, entries.field(0).to_numpy(zero_copy_only=False), entries.field(1)


def as_map(column: pa.Array, target: pa.MapType, what: str, location: str) -> pa.Array:
    """A statistics column in its canonical type. Raises ``InvalidMetadata`` when it is no map of that kind."""
    kind = column.type
    if pa.types.is_list(kind) and pa.types.is_struct(kind.value_type) and kind.value_type.num_fields == 2:
        entries = column.values
        arrays = [entries.field(0), entries.field(1)]
        kind = pa.map_(arrays[0].type, arrays[1].type)
        column = pa.MapArray.from_arrays(column.offsets, *arrays)
    if not pa.types.is_map(kind) or not _fits(kind.key_type, kind.item_type, target):
        raise InvalidMetadata(f"{location}: {what} has type {kind}, not {target}", location=location)
    return column if column.type == target else column.cast(target)


def _fits(key: pa.DataType, item: pa.DataType, target: pa.MapType) -> bool:
    if not pa.types.is_integer(key):
        return False
    if pa.types.is_integer(target.item_type):
        return bool(pa.types.is_integer(item))
    return bool(pa.types.is_binary(item) or pa.types.is_large_binary(item) or pa.types.is_fixed_size_binary(item))


def map_dicts(maps: pa.Array) -> list[dict[int, Any] | None]:
    """Each map as a dict, or None. For the files that leave a plan with all their statistics."""
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
