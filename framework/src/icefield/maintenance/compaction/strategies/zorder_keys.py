"""Numbers of 64 bits that are ordered as the values of a column are, of any primitive type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.partitioning.transforms.decimals import halves_of

Words = npt.NDArray[np.uint64]
_SIGN: Final = np.uint64(1 << 63)
_PREFIX: Final = 8
"""So many first bytes of strings and binary values count."""

_LONG_DIGITS: Final = 18
"""Unscaled values of so many digits fit into 64 bits."""


def ordered_key(chunks: Sequence[pa.Array]) -> tuple[Words, npt.NDArray[np.bool_] | None]:
    """The keys of a column's values, and which of them are not null (None: all).

    Values that differ in their first 8 bytes, or as 64-bit numbers, have different keys; of the others none is
    greater where the value is smaller.
    """
    plain = [chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk for chunk in chunks]
    keys = [_key(chunk) for chunk in plain]
    key = np.concatenate(keys) if keys else np.zeros(0, np.uint64)
    if not any(chunk.null_count for chunk in plain):
        return key, None
    return key, np.concatenate([np.asarray(chunk.is_valid()) for chunk in plain])


def _key(array: pa.Array) -> Words:
    kind = array.type
    if pa.types.is_null(kind) or not len(array):
        return np.zeros(len(array), np.uint64)
    if pa.types.is_dictionary(kind):
        return _key(array.dictionary_decode())
    if pa.types.is_boolean(kind):
        return np.asarray(array.fill_null(False)).astype(np.uint64)
    if pa.types.is_floating(kind):
        return _of_floats(array.cast(pa.float64()))
    if pa.types.is_decimal(kind):
        if kind.precision > _LONG_DIGITS:
            return _of_floats(array.cast(pa.float64()))
        low, _ = halves_of(array)
        return _of_ints(np.ascontiguousarray(low).view(np.int64))
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        ints = array.view(pa.int32() if kind.bit_width == 32 else pa.int64())
        return _of_ints(np.asarray(ints.fill_null(0)).astype(np.int64))
    return _of_bytes(array)


def _of_ints(values: npt.NDArray[np.int64]) -> Words:
    made: Words = values.view(np.uint64) ^ _SIGN
    return made


def _of_floats(array: pa.Array) -> Words:
    """IEEE's total order: the magnitude of negative ones counts downwards."""
    bits = np.asarray(array.view(pa.int64()).fill_null(0))
    return _of_ints(bits ^ ((bits >> 63) & np.int64(0x7FFF_FFFF_FFFF_FFFF)))


def _of_bytes(array: pa.Array) -> Words:
    """The first bytes as a number, the first of them the highest; zeros after the end."""
    wide = array.cast(pa.large_binary()) if not pa.types.is_fixed_size_binary(array.type) else None
    if wide is None:
        width = array.type.byte_width
        data = array.buffers()[1]
        starts = (np.arange(len(array), dtype=np.int64) + array.offset) * width
        lengths = np.full(len(array), width, np.int64)
    else:
        _, offsets, data = wide.buffers()
        ends = np.frombuffer(offsets, np.int64, len(wide) + 1, wide.offset * 8)
        starts, lengths = ends[:-1], np.diff(ends)
    made = np.zeros(len(array), np.uint64)
    if data is None or not data.size:
        return made
    octets = np.frombuffer(data, np.uint8)
    for place in range(_PREFIX):
        there = place < lengths
        read = octets[np.minimum(starts + place, len(octets) - 1)].astype(np.uint64)
        made |= np.where(there, read, np.uint64(0)) << np.uint64(8 * (_PREFIX - 1 - place))
    return made
