"""Compression in Puffin files: one LZ4 frame or one Zstandard frame, which states the size of its content.

Both are read. Zstandard is written: Arrow's own LZ4 frames lack the size, which the specification requires.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from icefield.base.limits import MAX_PUFFIN_BLOB_BYTES
from icefield.errors import InvalidFile, UnsupportedFeature

_INFLATED_AT_ONCE: Final = 1 << 20


def decompress(data: bytes, codec: str, location: str, limit: int = MAX_PUFFIN_BLOB_BYTES) -> bytes:
    """The content of a frame, of at most ``limit`` bytes.

    Raises ``InvalidFile`` for damage and for more bytes than the limit, and ``UnsupportedFeature`` for a codec that
    Puffin does not have.
    """
    if codec not in ("lz4", "zstd"):
        raise UnsupportedFeature(
            f"{location}: compression codec '{codec[:40]}' is unknown; Puffin has lz4 and zstd", location=location
        )
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
    # The Zstandard library compares the sizes itself. An LZ4 frame need not state the size.
    stated = int.from_bytes(data[6:14], "little") if codec == "lz4" and len(data) >= 14 and data[4] & 0b1000 else size
    if stated != size:
        raise InvalidFile(
            f"{location} is damaged: {codec}: the frame states {stated} bytes and holds {size}", location=location
        )
    return b"".join(parts)
