"""Data files turned into columns, for writing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from icefield.base import compute as pc
from icefield.errors import InvalidArgument
from icefield.manifest import schemas as f
from icefield.manifest.columns import COLUMN_TYPES, DATA_FILE_IDS, MAP_TYPES, NAMES, struct_array
from icefield.manifest.data_file import DataFile


def data_file_columns(files: Sequence[DataFile], partition_type: pa.StructType) -> dict[int, pa.Array]:
    """Data files in columns by field id; empty statistics become null.

    Raises ``InvalidArgument`` when a file does not fit: a partition tuple of another length, a value of another type.
    """
    try:
        columns = {}
        for number in DATA_FILE_IDS.values():
            if number in COLUMN_TYPES:
                columns[number] = pa.array([getattr(file, NAMES[number]) for file in files], COLUMN_TYPES[number])
            elif number in MAP_TYPES:
                columns[number] = _map_array([getattr(file, NAMES[number]) for file in files], MAP_TYPES[number])
        columns[f.FILE_FORMAT] = pc.utf8_upper(columns[f.FILE_FORMAT])
        columns[f.PARTITION] = partition_array([file.partition for file in files], partition_type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidArgument(f"a data file cannot be written to a manifest: {error}") from error
    return columns


def partition_array(tuples: Sequence[tuple[Any, ...]], partition_type: pa.StructType) -> pa.StructArray:
    """Partition tuples of internal values as a struct array. Raises ``InvalidArgument`` for another length."""
    fields = list(partition_type)
    wrong = next((values for values in tuples if len(values) != len(fields)), None)
    if wrong is not None:
        raise InvalidArgument(f"partition {wrong!r} has {len(wrong)} values; the spec has {len(fields)} fields")
    children = [internal_array([values[i] for values in tuples], field.type) for i, field in enumerate(fields)]
    return struct_array(children, fields, len(tuples))


def internal_array(values: list[Any], arrow_type: pa.DataType) -> pa.Array:
    """Internal values (dates, times and timestamps as integers) as an Arrow array."""
    if pa.types.is_temporal(arrow_type):
        return pa.array(values, pa.int32() if arrow_type.bit_width == 32 else pa.int64()).view(arrow_type)
    return pa.array(values, arrow_type)


def _map_array(maps: list[Mapping[int, Any]], arrow_type: pa.MapType) -> pa.Array:
    lengths = np.fromiter(map(len, maps), np.int32, len(maps))
    total = int(lengths.sum(dtype=np.int64))
    if total == 0:
        return pa.nulls(len(maps), arrow_type)
    if total > np.iinfo(np.int32).max:
        raise InvalidArgument("statistics of too many columns for one call; add the files in parts")
    offsets = np.zeros(len(maps) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    values = chain.from_iterable(one.values() for one in maps)
    if pa.types.is_integer(arrow_type.item_type):
        items = pa.array(np.fromiter(values, np.int64, total))
    else:
        items = pa.array(list(values), arrow_type.item_type)
    empty = lengths == 0
    return pa.MapArray.from_arrays(
        pa.array(offsets),
        pa.array(_keys(maps, total)),
        items,
        type=arrow_type,
        mask=pa.array(empty) if empty.any() else None,
    )


def _keys(maps: list[Mapping[int, Any]], total: int) -> np.ndarray[Any, Any]:
    first = list(maps[0])
    if len(first) * len(maps) == total and all(list(one) == first for one in maps):
        return np.tile(np.array(first, np.int32), len(maps))
    return np.fromiter(chain.from_iterable(maps), np.int32, total)
