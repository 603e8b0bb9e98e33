"""The container of Avro files: a header with schema and metadata, then blocks that each end in the sync marker.

Follows "Object Container Files" of the Avro specification. All sizes in a file are compared with the size of the file
before anything is read or allocated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from icefield.abc import InputFile
from icefield.errors import InvalidFile

from icefield_avro.varints import Malformed, Truncated, encode_bytes, encode_long, read_long

MAGIC: Final = b"Obj\x01"
SYNC_SIZE: Final = 16
SCHEMA_KEY: Final = "avro.schema"
CODEC_KEY: Final = "avro.codec"
SPLIT_EVERY: Final = 4 * 1024 * 1024
"""The fewest bytes from one place where a file may be split to the next."""

MAX_HEADER: Final = 64 * 1024 * 1024
MAX_METADATA_ENTRIES: Final = 65_536
MAX_EMPTY_BLOCKS: Final = 65_536
"""Of a file: blocks without a record, which cost a reader time and hold nothing."""

_WHOLE: Final = 8 * 1024 * 1024  # a file up to this size is read in one request
_CHUNK: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a file: key-value metadata, the sync marker, and its size in bytes."""

    metadata: Mapping[str, bytes]
    sync: bytes
    size: int

    @property
    def codec(self) -> str:
        """The codec's name; a file that names none is not compressed."""
        return self.metadata.get(CODEC_KEY, b"null").decode("utf-8", "replace")


class Block(NamedTuple):
    """One block as it is in the file: where it starts, how many records it holds, and its packed bytes."""

    offset: int
    records: int
    payload: bytes | memoryview
    end: int


def parse_header(data: bytes) -> Header:
    """The header at the start of ``data``. Raises ``Truncated`` when more bytes are needed, else ``Malformed``."""
    if len(data) < len(MAGIC):
        raise Truncated
    if data[: len(MAGIC)] != MAGIC:
        raise Malformed("no Avro file: it does not start with 'Obj' and version 1")
    metadata: dict[str, bytes] = {}
    position = len(MAGIC)
    entries = 0
    while True:
        count, position = read_long(data, position)
        if count == 0:
            break
        if count < 0:
            count = -count
            _, position = read_long(data, position)
        entries += count
        if entries > MAX_METADATA_ENTRIES:
            raise Malformed("too many metadata entries")
        for _ in range(count):
            key, position = _sized(data, position)
            metadata[key.decode("utf-8", "replace")], position = _sized(data, position)
    end = position + SYNC_SIZE
    if end > len(data):
        raise Truncated
    return Header(metadata, data[position:end], end)


def _sized(data: bytes, position: int) -> tuple[bytes, int]:
    size, start = read_long(data, position)
    if not 0 <= size <= MAX_HEADER:
        raise Malformed("a metadata entry of impossible size")
    if start + size > len(data):
        raise Truncated
    return data[start : start + size], start + size


def encode_header(metadata: Mapping[str, bytes], sync: bytes) -> bytes:
    """The bytes of a header."""
    parts = [MAGIC]
    if metadata:
        parts.append(encode_long(len(metadata)))
        for key, value in metadata.items():
            parts.append(encode_bytes(key.encode()))
            parts.append(encode_bytes(value))
    parts.append(b"\0")
    parts.append(sync)
    return b"".join(parts)


class Container:
    """An open file: its header, and its blocks from any place on. Reads ahead in chunks of a few MiB."""

    def __init__(self, source: InputFile, location: str, size: int | None = None) -> None:
        self.source = source
        self.location = location
        self.size = source.size if size is None else size
        self._buffer = b""
        self._start = 0
        self.header = self._read_header()

    def invalid(self, reason: str) -> InvalidFile:
        """Return the error for damage of this file, with a reason."""
        return InvalidFile(f"{self.location} is damaged or no Avro file: {reason}", location=self.location)

    def _read_header(self) -> Header:
        want = self.size if self.size <= _WHOLE else 256 * 1024
        while True:
            self._fetch(0, min(want, self.size))
            try:
                return parse_header(self._buffer)
            except Malformed as error:
                raise self.invalid(str(error)) from None
            except Truncated:
                if want >= min(self.size, MAX_HEADER):
                    raise self.invalid("the header ends early") from None
                want *= 4

    def _fetch(self, start: int, size: int) -> None:
        """Fill the buffer with exactly ``size`` bytes from ``start``, and reuse the bytes that it has already."""
        kept = b""
        if self._start <= start < self._start + len(self._buffer):
            kept = self._buffer[start - self._start :]
        parts = [kept] if kept else []
        have = len(kept)
        if have < size:
            parts.append(self.source.read_at(start + have, size - have))
            have += len(parts[-1])
        if have < size:
            raise self.invalid(f"it ends after {start + have:,} bytes instead of {self.size:,}")
        self._buffer = b"".join(parts) if len(parts) != 1 else parts[0]
        self._start = start

    def _view(self, start: int, size: int) -> tuple[bytes, int]:
        """A buffer with at least ``size`` bytes (fewer only at the end of the file) at the offset returned."""
        size = min(size, self.size - start)
        offset = start - self._start
        if offset < 0 or offset + size > len(self._buffer):
            self._fetch(start, min(max(size, _CHUNK), self.size - start))
            offset = 0
        return self._buffer, offset

    def blocks(self, start: int | None = None, stop: int | None = None, *, payloads: bool = True) -> Iterator[Block]:
        """The blocks that start at ``start`` or later and before ``stop``; ``start`` must be where a block starts.

        Without ``payloads`` only their places and counts. Raises ``InvalidFile``.
        """
        position = self.header.size if start is None else start
        stop = self.size if stop is None else min(stop, self.size)
        empty = 0
        while position < stop:
            block = self._buffered_block(position) or self._block(position, payloads)
            if not block.records:
                empty += 1
                if empty > MAX_EMPTY_BLOCKS:
                    raise self.invalid(f"more than {MAX_EMPTY_BLOCKS:,} blocks without a record")
            yield block
            position = block.end

    def whole(self) -> bytes | None:
        """The file, if all of it is in memory."""
        return self._buffer if self._start == 0 and len(self._buffer) == self.size else None

    def _buffered_block(self, position: int) -> Block | None:
        """The block at a position if all of it is in the buffer and sound, as is the case for nearly all blocks."""
        buffer, offset = self._buffer, position - self._start
        try:
            count, body = read_long(buffer, offset)
            size, body = read_long(buffer, body)
        except (Malformed, Truncated):
            return None
        sync = body + size
        if offset < 0 or count < 0 or size < 0 or buffer[sync : sync + SYNC_SIZE] != self.header.sync:
            return None
        return Block(position, count, memoryview(buffer)[body:sync], self._start + sync + SYNC_SIZE)

    def _block(self, position: int, payloads: bool) -> Block:
        buffer, offset = self._view(position, 20)
        try:
            count, after = read_long(buffer, offset)
            size, after = read_long(buffer, after)
        except (Malformed, Truncated):
            raise self.invalid(f"no block at byte {position:,}") from None
        body = position + after - offset
        end = body + size + SYNC_SIZE
        if count < 0 or size < 0 or end > self.size:
            raise self.invalid(f"the block at byte {position:,} reaches beyond the end")
        if not payloads:
            buffer, offset = self._view(end - SYNC_SIZE, SYNC_SIZE)
            self._check_sync(buffer, offset, position)
            return Block(position, count, b"", end)
        buffer, offset = self._view(body, size + SYNC_SIZE)
        self._check_sync(buffer, offset + size, position)
        return Block(position, count, memoryview(buffer)[offset : offset + size], end)

    def _check_sync(self, buffer: bytes, offset: int, block: int) -> None:
        if buffer[offset : offset + SYNC_SIZE] != self.header.sync:
            raise self.invalid(f"the block at byte {block:,} does not end in the sync marker")

    def first_block(self, start: int) -> int | None:
        """Where the first block starts at or after byte ``start``: behind the next sync marker. None when none does."""
        if start <= self.header.size:
            return self.header.size if self.header.size < self.size else None
        position = start - SYNC_SIZE
        while position < self.size:
            buffer, offset = self._view(position, _CHUNK)
            found = buffer.find(self.header.sync, offset)
            if found >= 0:
                block = self._start + found + SYNC_SIZE
                return block if block < self.size else None
            reached = self._start + len(buffer)
            if reached >= self.size:
                return None
            position = reached - SYNC_SIZE + 1
        return None

    def close(self) -> None:
        """Close the input."""
        self._buffer = b""
        if not self.source.closed:
            self.source.close()
