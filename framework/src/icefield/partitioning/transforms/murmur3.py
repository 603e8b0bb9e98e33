"""Murmur3 hashes of Iceberg values (spec: "Appendix B: 32-bit Hash Requirements"), of arrays and of single values."""

from __future__ import annotations

import struct
from typing import Any

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield import types as iceberg
from icefield.base import compute as pc
from icefield.errors import InvalidArgument
from icefield.partitioning.transforms.arrays import conformed, fixed_values, halves_of, interleave
from icefield.partitioning.transforms.murmur3_steps import Words, hash_pairs, hash_ranges, hash_rows
from icefield.types import IcebergType
from icefield.types.values import value_to_bytes

_NANOS_PER_MICRO = 1000
_CANONICAL_NAN = np.uint64(0x7FF8000000000000)
_DECIMAL_ROWS = 65_536

# Many strings of this mean length are dictionary-encoded first if a sample of them has repeats: then there are at
# most some ten thousand distinct strings, and Arrow's hash table of them stays in the processor's cache.
_DICTIONARY_BYTES = 12
_DICTIONARY_ROWS = 65_536
_SAMPLE = 2048
_SAMPLE_DISTINCT = 1800


def hash_array(array: pa.Array, source_type: IcebergType) -> npt.NDArray[np.int32]:
    """The hash of each value, signed; 0 where the array is null, for null is never hashed.

    ``array`` is in the Arrow form of ``source_type``; large, dictionary-encoded and sliced arrays are taken as well.
    Raises ``InvalidArgument`` for a type that has no hash (variant, geometry, geography and nested types).
    """
    hashes = hash_slots(array, source_type)
    if array.null_count:
        hashes *= array.is_valid().to_numpy(zero_copy_only=False)
    return hashes


def hash_slots(array: pa.Array, source_type: IcebergType) -> npt.NDArray[np.int32]:
    """As ``hash_array``, with arbitrary values where the array is null."""
    if isinstance(array, pa.DictionaryArray) and len(array.dictionary) <= len(array):
        return _looked_up(hash_array(array.dictionary, source_type), array.indices)
    _check_hashable(source_type)
    if len(array) == 0 or array.null_count == len(array):
        return np.zeros(len(array), np.int32)
    return _hash(conformed(array, source_type), source_type).view(np.int32)


def hash_value(source_type: IcebergType, value: Any) -> int | None:
    """The hash of one internal value, None for None. Raises ``InvalidArgument`` for a type that has no hash."""
    if value is None:
        _check_hashable(source_type)
        return None
    return mmh3.hash(_hash_input(source_type, value))


def _check_hashable(source_type: IcebergType) -> None:
    if not source_type.is_primitive or isinstance(source_type, iceberg.GeometryType | iceberg.GeographyType):
        raise InvalidArgument(f"values of type {source_type} have no hash")


def _hash_input(source_type: IcebergType, value: Any) -> bytes:
    match source_type:
        case iceberg.IntegerType() | iceberg.LongType() | iceberg.BooleanType() | iceberg.DateType():
            return struct.pack("<q", value)
        case iceberg.AnyTimestampType() if source_type.digits == 9:
            return struct.pack("<q", value // _NANOS_PER_MICRO)
        case iceberg.FloatType() | iceberg.DoubleType():
            # There is one NaN and one zero: adding 0.0 makes 0.0 of -0.0.
            return struct.pack("<Q", _CANONICAL_NAN) if value != value else struct.pack("<d", value + 0.0)
    _check_hashable(source_type)
    return value_to_bytes(source_type, value)


def _looked_up(hashes: npt.NDArray[Any], indices: pa.Array) -> npt.NDArray[Any]:
    """The hash of each row, 0 for a null index; ``hashes`` belong to the values of a dictionary."""
    with_null = np.append(hashes, np.zeros(1, hashes.dtype))
    at = indices if indices.null_count == 0 else indices.cast(pa.int64()).fill_null(len(hashes))
    looked_up: npt.NDArray[Any] = with_null.take(at.to_numpy())
    return looked_up


def _hash(array: pa.Array, source_type: IcebergType) -> Words:
    match source_type:
        case iceberg.IntegerType() | iceberg.DateType():
            return _hash_narrow(fixed_values(array, np.int32))
        case iceberg.AnyTimestampType() if source_type.digits == 9:
            return _hash_wide(fixed_values(array, np.int64) // _NANOS_PER_MICRO)
        case iceberg.LongType() | iceberg.TimeType() | iceberg.AnyTimestampType():
            return _hash_wide(fixed_values(array, np.int64))
        case iceberg.StringType() | iceberg.BinaryType():
            return _hash_strings(array)
        case iceberg.FixedType() | iceberg.UUIDType():
            width, data = array.type.byte_width, np.frombuffer(array.buffers()[1], np.uint8)
            return hash_rows(data, width, len(array), offset=array.offset * width)
        case iceberg.DecimalType():
            return _hash_decimals(array)
        case iceberg.BooleanType():
            return _hash_narrow(array.cast(pa.int32()).fill_null(0).to_numpy())
        case iceberg.FloatType() | iceberg.DoubleType():
            return _hash_doubles(
                fixed_values(array, np.float32 if isinstance(source_type, iceberg.FloatType) else np.float64)
            )
    raise InvalidArgument(f"an array of {array.type} does not hold values of type {source_type}")


def _hash_narrow(values: npt.NDArray[np.int32]) -> Words:
    """Integers of 4 bytes hash as if they had 8, so that a column can be widened."""
    return hash_pairs(values.view(np.uint32), (values >> 31).view(np.uint32))


def _hash_wide(values: npt.NDArray[Any]) -> Words:
    words = values.view("<u4")
    return hash_pairs(words[0::2], words[1::2])


def _hash_doubles(values: npt.NDArray[Any]) -> Words:
    with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN
        bits = (values.astype(np.float64) + 0.0).view(np.uint64)
    bits[np.isnan(values)] = _CANONICAL_NAN
    return _hash_wide(bits)


def _hash_strings(array: pa.Array) -> Words:
    kind = np.dtype(np.int64 if array.type in (pa.large_string(), pa.large_binary()) else np.int32)
    offsets = np.frombuffer(array.buffers()[1], kind, count=len(array) + 1, offset=array.offset * kind.itemsize)
    if _worth_a_dictionary(array, offsets):
        encoded = array.dictionary_encode()
        return _looked_up(_hash_strings(encoded.dictionary), encoded.indices)
    data = array.buffers()[2]
    raw = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return hash_ranges(raw, offsets[:-1], np.diff(offsets))


def _worth_a_dictionary(array: pa.Array, offsets: npt.NDArray[Any]) -> bool:
    """Whether strings repeat so often that a dictionary costs less than hashing all of them."""
    if len(array) < _DICTIONARY_ROWS or int(offsets[-1] - offsets[0]) < _DICTIONARY_BYTES * len(array):
        return False
    sample = array.take(pa.array(np.linspace(0, len(array) - 1, _SAMPLE, dtype=np.int64)))
    return int(pc.count_distinct(sample, mode="all").as_py()) <= _SAMPLE_DISTINCT


def _hash_decimals(array: pa.Array) -> Words:
    """The hashes of decimals. The minimal big-endian bytes of each unscaled value are the last of its 16 bytes."""
    low, high = halves_of(array)
    hashes = np.empty(len(array), np.uint32)
    for start in range(0, len(array), _DECIMAL_ROWS):
        part = slice(start, start + _DECIMAL_ROWS)
        _hash_decimal_chunk(low[part], high[part], hashes[part])
    return hashes


def _hash_decimal_chunk(low: npt.NDArray[np.uint64], high: npt.NDArray[np.int64], out: Words) -> None:
    longs = low.view(np.int64)
    if ((longs >> 63) == high).all():
        sizes = (_bit_lengths((longs ^ (longs >> 63)).view(np.uint64)) >> 3) + 1
        big_endian = low.byteswap().reshape(-1, 1)
    else:
        sizes = _decimal_sizes(low, high)
        big_endian = interleave(high.byteswap(), low.byteswap())
    stored = 8 * big_endian.shape[1]
    for size in range(int(sizes.min()), int(sizes.max()) + 1):
        # One length at a time: most often there are only two or three lengths.
        rows = np.flatnonzero(sizes == size)
        chosen = big_endian.take(rows, axis=0).view(np.uint8).reshape(-1)
        out[rows] = hash_rows(chosen, size, len(rows), stride=stored, offset=stored - size)


def _decimal_sizes(low: npt.NDArray[np.uint64], high: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How many bytes each two's complement number needs: one sign bit and the bits of its magnitude."""
    sign = (high >> 63).view(np.uint64)
    # Flipping the bits of negative numbers makes their leading ones zeros.
    magnitude, above = low ^ sign, high.view(np.uint64) ^ sign
    bits = np.where(above != 0, _bit_lengths(above) + 64, _bit_lengths(magnitude))
    return (bits >> 3) + 1


def _bit_lengths(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """The bit length of each value, from the exponent of its float."""
    # Each bit below a set bit is cleared, so that rounding to a float cannot reach the next power of two.
    exponents = (values & ~(values >> np.uint64(1))).astype(np.float64).view(np.int64) >> 52
    lengths: npt.NDArray[np.int64] = np.maximum(exponents - 1022, 0)
    return lengths
