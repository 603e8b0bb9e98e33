"""Compression in Puffin files: one LZ4 frame or one Zstandard frame, which states the size of its content.

Arrow's own LZ4 frames do not state the size of their content, which the specification requires. Therefore this module
builds frames from blocks that Arrow compresses. Arrow reads them.
"""

from __future__ import annotations

import struct
from typing import Final, Literal

import pyarrow as pa

from icefield.base.limits import MAX_PUFFIN_BLOB_BYTES
from icefield.errors import InvalidFile, UnsupportedFeature

BlobCodec = Literal["lz4", "zstd"]

_LZ4_MAGIC: Final = 0x184D2204
_LZ4_FLAGS: Final = 0b0110_1000
"""Version 1, blocks that do not need each other, the size of the content."""

_LZ4_BLOCK: Final = 4 << 20
_LZ4_BLOCK_CODE: Final = 7 << 4
_LZ4_PLAIN: Final = 1 << 31
_INFLATED_AT_ONCE: Final = 1 << 20


def compress(data: bytes, codec: BlobCodec) -> bytes:
    """One frame that holds the data. Raises ``UnsupportedFeature`` for a codec that Puffin does not have."""
    check_codec(codec, "a Puffin file")
    return _lz4_frame(data) if codec == "lz4" else pa.compress(data, "zstd", asbytes=True)


def decompress(data: bytes, codec: str, location: str, limit: int = MAX_PUFFIN_BLOB_BYTES) -> bytes:
    """The content of a frame, of at most ``limit`` bytes.

    Raises ``InvalidFile`` for damage and for more bytes than the limit, and ``UnsupportedFeature`` for a codec that
    Puffin does not have.
    """
    check_codec(codec, location)
    parts, size = [], 0
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), codec) as stream:
            while part := stream.read(_INFLATED_AT_ONCE):
                size += len(part)
                if size > limit:
                    raise InvalidFile(
                        f"{location}: compressed data holds more than {limit:,} bytes, the most that is read of it",
                        location=location,
                    )
                parts.append(part)
    except (pa.ArrowException, OSError) as error:
        raise InvalidFile(f"{location} is damaged: {codec}: {error}", location=location) from error
    stated = _content_size(data, codec)
    if stated is not None and stated != size:
        raise InvalidFile(
            f"{location} is damaged: {codec}: the frame states {stated} bytes and holds {size}", location=location
        )
    return b"".join(parts)


def check_codec(codec: str, location: str) -> None:
    """Raise ``UnsupportedFeature`` for a codec that Puffin does not have."""
    if codec not in ("lz4", "zstd"):
        raise UnsupportedFeature(
            f"{location}: compression codec '{codec[:40]}' is unknown; Puffin has lz4 and zstd", location=location
        )


def _content_size(data: bytes, codec: str) -> int | None:
    """The content size that an LZ4 frame states, or None. The Zstandard library checks the size itself."""
    if codec == "lz4" and len(data) >= 14 and data[4] & 0b1000:
        return int.from_bytes(data[6:14], "little")
    return None


def _lz4_frame(data: bytes) -> bytes:
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
