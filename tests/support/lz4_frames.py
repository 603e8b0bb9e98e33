"""LZ4 frames that state the size of their content, for files that other engines would write."""

from __future__ import annotations

import struct
from typing import Final

import pyarrow as pa

_LZ4_MAGIC: Final = 0x184D2204
_LZ4_FLAGS: Final = 0b0110_1000
"""Version 1, blocks that do not need each other, the size of the content."""

_LZ4_BLOCK: Final = 4 << 20
_LZ4_BLOCK_CODE: Final = 7 << 4
_LZ4_PLAIN: Final = 1 << 31


def lz4_frame(data: bytes) -> bytes:
    """One frame that holds the data, of blocks that Arrow compresses."""
    codec = pa.Codec("lz4_raw")
    descriptor = struct.pack("<BBQ", _LZ4_FLAGS, _LZ4_BLOCK_CODE, len(data))
    parts = [struct.pack("<I", _LZ4_MAGIC), descriptor, bytes([_xxh32(descriptor) >> 8 & 0xFF])]
    for start in range(0, len(data), _LZ4_BLOCK):
        block = data[start : start + _LZ4_BLOCK]
        packed = codec.compress(block, asbytes=True)
        if len(packed) < len(block):
            parts += struct.pack("<I", len(packed)), packed
        else:
            parts += struct.pack("<I", len(block) | _LZ4_PLAIN), block
    return b"".join([*parts, bytes(4)])


_PRIMES: Final = (2_654_435_761, 2_246_822_519, 3_266_489_917, 668_265_263, 374_761_393)


def _xxh32(data: bytes) -> int:
    """The xxHash (32 bits, seed 0) of fewer than 16 bytes: the checksum of a frame's header."""
    first, second, third, fourth, fifth = _PRIMES
    value = fifth + len(data)
    whole = len(data) // 4 * 4
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        value = _rotated(value + word * third, 17) * fourth
    for byte in data[whole:]:
        value = _rotated(value + byte * fifth, 11) * first
    value &= 0xFFFF_FFFF
    value = (value ^ value >> 15) * second & 0xFFFF_FFFF
    value = (value ^ value >> 13) * third & 0xFFFF_FFFF
    return value ^ value >> 16


def _rotated(value: int, bits: int) -> int:
    value &= 0xFFFF_FFFF
    return (value << bits | value >> (32 - bits)) & 0xFFFF_FFFF
