"""The compressed chunks of an ORC file's tail.

A chunk begins with three bytes: its length, and whether it is uncompressed. No chunk unpacks to more than the file's
block size, so the unpacked size is bounded before anything is unpacked.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import pyarrow as pa
from icefield.errors import UnsupportedFeature

from icefield_orc.protobuf import varint

NONE, ZLIB, SNAPPY, LZO, LZ4, ZSTD = range(6)
NAMES = {NONE: "none", ZLIB: "zlib", SNAPPY: "snappy", LZO: "lzo", LZ4: "lz4", ZSTD: "zstd"}
_HEADER = 3
_LARGEST_BLOCK = 1 << 23
_LZ4_LEAST_MATCH = 4


def unpack(data: bytes, codec: int, block_size: int, limit: int) -> bytes:
    """The bytes that chunks hold.

    Raises ``ValueError`` for damaged chunks and for more than ``limit`` bytes, ``UnsupportedFeature`` for a codec
    that is not known here.
    """
    if codec == NONE:
        return data
    decompress = _DECOMPRESSORS.get(codec)
    if not 0 < block_size <= _LARGEST_BLOCK:
        raise ValueError(f"a compression block of {block_size} bytes")
    parts, position, size = [], 0, 0
    while position < len(data):
        header = int.from_bytes(data[position : position + _HEADER], "little")
        start, length = position + _HEADER, header >> 1
        if start + length > len(data):
            raise ValueError("a compressed chunk is cut off")
        chunk = data[start : start + length]
        if not header & 1:
            if decompress is None:
                raise UnsupportedFeature(f"ORC files with the compression {NAMES.get(codec, codec)} cannot be read")
            chunk = decompress(chunk, block_size)
        size += len(chunk)
        if size > limit:
            raise ValueError(f"more than {limit} bytes of metadata")
        parts.append(chunk)
        position = start + length
    return b"".join(parts)


def pack_plain(data: bytes, codec: int, block_size: int) -> bytes:
    """Put bytes into uncompressed chunks, which every codec allows."""
    if codec == NONE:
        return data
    pieces = [data[start : start + block_size] for start in range(0, len(data), block_size)]
    return b"".join((len(piece) << 1 | 1).to_bytes(_HEADER, "little") + piece for piece in pieces)


def pack(data: bytes, codec: int, block_size: int) -> bytes:
    """Pack bytes into compressed chunks; a chunk that does not shrink stays uncompressed."""
    if codec == NONE:
        return data
    compress = _COMPRESSORS[codec]
    out = []
    for start in range(0, len(data), block_size):
        piece = data[start : start + block_size]
        small = compress(piece)
        kept = len(small) >= len(piece)
        body = piece if kept else small
        out.append((len(body) << 1 | kept).to_bytes(_HEADER, "little") + body)
    return b"".join(out)


def _deflate(data: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return stream.compress(data) + stream.flush()


def _by_codec(name: str) -> Callable[[bytes], bytes]:
    return lambda data: pa.Codec(name).compress(data, asbytes=True)


def _zlib(data: bytes, size: int) -> bytes:
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        out = stream.decompress(data, size)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not stream.eof and stream.decompress(stream.unconsumed_tail, 1):
        raise ValueError("a chunk is larger than its block")
    return out


def _snappy(data: bytes, size: int) -> bytes:
    length, _ = varint(data, 0)
    if length > size:
        raise ValueError("a chunk is larger than its block")
    return pa.Codec("snappy").decompress(data, decompressed_size=length, asbytes=True) if length else b""


def _zstd(data: bytes, size: int) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        out: bytes = stream.read(size + 1)
    if len(out) > size:
        raise ValueError("a chunk is larger than its block")
    return out


def _lz4(data: bytes, size: int) -> bytes:
    """Decompress an LZ4 block in Python: the block does not state its unpacked size, which Arrow's codec needs.

    This is slow, but tails are small.
    """
    out = bytearray()
    position, end = 0, len(data)
    while position < end:
        token = data[position]
        count, position = _lz4_length(data, position + 1, token >> 4)
        if position + count > end or len(out) + count > size:
            raise ValueError("a run of bytes is cut off")
        out += data[position : position + count]
        position += count
        if position == end:
            break
        back = int.from_bytes(data[position : position + 2], "little")
        count, position = _lz4_length(data, position + 2, token & 15)
        count += _LZ4_LEAST_MATCH
        if not 0 < back <= len(out) or len(out) + count > size:
            raise ValueError("a repetition reaches outside its block")
        start = len(out) - back
        pattern = bytes(out[start : start + count])
        out += (pattern * (count // len(pattern) + 1))[:count]
    return bytes(out)


def _lz4_length(data: bytes, position: int, length: int) -> tuple[int, int]:
    if length < 15:
        return length, position
    while True:
        if position >= len(data):
            raise ValueError("a length is cut off")
        byte = data[position]
        length, position = length + byte, position + 1
        if byte < 255:
            return length, position


_DECOMPRESSORS: dict[int, Callable[[bytes, int], bytes]] = {
    ZLIB: _zlib,
    SNAPPY: _snappy,
    LZ4: _lz4,
    ZSTD: _zstd,
}

_COMPRESSORS: dict[int, Callable[[bytes], bytes]] = {
    ZLIB: _deflate,
    SNAPPY: _by_codec("snappy"),
    LZ4: _by_codec("lz4_raw"),
    ZSTD: _by_codec("zstd"),
}
