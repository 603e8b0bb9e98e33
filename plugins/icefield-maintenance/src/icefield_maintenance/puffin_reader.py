"""Reading a Puffin file: its footer, and single blobs on request.

Spec: Puffin, "File structure". Each size is compared with the file's before anything of that size is read. Compressed
data is one LZ4 frame or one Zstandard frame, which states the size of its content.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final, Self

import msgspec
import pyarrow as pa
from icefield.abc import InputFile
from icefield.errors import InvalidFile, UnsupportedFeature
from icefield.puffin import MAGIC, MAX_PUFFIN_BLOB_BYTES, MAX_PUFFIN_FOOTER_BYTES, Blob, FooterPayload, read_range

_TAIL: Final = struct.Struct("<iI4s")
"""Size of the payload, flags, magic."""

_COMPRESSED: Final = 1
_AT_ONCE: Final = 16 << 10
"""Bytes of the first read at the end of a file: most footers are shorter."""

_DECODER: Final = msgspec.json.Decoder(FooterPayload)
_INFLATED_AT_ONCE: Final = 1 << 20


class PuffinReader:
    """An open Puffin file; ``with`` closes it. ``location`` is for messages.

    Raises ``InvalidFile`` for an incomplete or damaged Puffin file, and ``UnsupportedFeature`` for unknown flags.
    """

    def __init__(self, source: InputFile, location: str) -> None:
        self._source = source
        self._location = location
        try:
            self._size = source.size
            footer = _decode_footer(self._payload(), location)
            for blob in footer.blobs:
                self._check(blob)
        except BaseException:
            source.close()
            raise
        self.blobs: tuple[Blob, ...] = footer.blobs
        self.properties: Mapping[str, str] = footer.properties or {}

    def read(self, blob: Blob) -> bytes:
        """The content of a blob, decompressed. Raises ``InvalidFile``, and ``UnsupportedFeature`` for a codec."""
        data = self.read_stored(blob)
        codec = blob.compression_codec
        return data if codec is None else decompress(data, codec, self._location)

    def read_stored(self, blob: Blob) -> bytes:
        """The stored bytes of a blob, still compressed."""
        if blob.length > MAX_PUFFIN_BLOB_BYTES:
            raise self._damaged(f"a blob of {blob.length:,} bytes; no more than {MAX_PUFFIN_BLOB_BYTES:,} are read")
        return read_range(self._source, blob.offset, blob.length, self._location)

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _payload(self) -> bytes:
        least = 2 * len(MAGIC) + _TAIL.size
        if self._size < least:
            raise self._damaged(f"{self._size} bytes are too few for a Puffin file")
        start = max(0, self._size - _AT_ONCE)
        tail = read_range(self._source, start, self._size - start, self._location)
        length, flags, magic = _TAIL.unpack(tail[-_TAIL.size :])
        if magic != MAGIC:
            raise self._damaged("it does not end as a Puffin file does")
        if flags & ~_COMPRESSED:
            raise UnsupportedFeature(
                f"{self._location}: unknown flags {flags:#x} in a Puffin footer", location=self._location
            )
        if not 0 <= length <= self._size - least:
            raise self._damaged(f"a footer of {length} bytes in a file of {self._size}")
        if length > MAX_PUFFIN_FOOTER_BYTES:
            raise self._damaged(f"a footer of {length:,} bytes; no more than {MAX_PUFFIN_FOOTER_BYTES:,} are read")
        self._end = self._size - _TAIL.size - length - len(MAGIC)
        held = (
            tail if self._end >= start else read_range(self._source, self._end, self._size - self._end, self._location)
        )
        footer = held[len(held) - (self._size - self._end) :]
        head = footer if not self._end else read_range(self._source, 0, len(MAGIC), self._location)
        if head[:4] != MAGIC or footer[:4] != MAGIC:
            raise self._damaged("it does not begin as a Puffin file does, or its footer does not")
        payload = footer[len(MAGIC) : len(MAGIC) + length]
        return decompress(payload, "lz4", self._location, MAX_PUFFIN_FOOTER_BYTES) if flags & _COMPRESSED else payload

    def _check(self, blob: Blob) -> None:
        if blob.offset < len(MAGIC) or blob.offset + blob.length > self._end:
            raise self._damaged(
                f"a blob of {blob.length} bytes at {blob.offset} is outside its {self._end} bytes of blobs"
            )

    def _damaged(self, why: str) -> InvalidFile:
        return InvalidFile(f"{self._location} is damaged: {why}", location=self._location)


def _decode_footer(payload: bytes, location: str) -> FooterPayload:
    """The footer of that JSON. Raises ``InvalidFile``."""
    try:
        return _DECODER.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidFile(f"{location} is damaged: the Puffin footer: {error}", location=location) from error


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
