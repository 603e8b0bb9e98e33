"""AES GCM streams: files of blocks that are encrypted one by one, so that any part can be read alone.

A stream is ``AGS1``, the length of a plain block in four bytes (little endian), and the blocks: nonce, ciphertext, tag.
The additional data of a block is the prefix of the file and the block's number in four bytes (little endian). All
blocks are of the same length except for the last. An empty stream has one empty block. Spec: "AES GCM Stream".
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from threading import Lock
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from icefield.abc import FileKey, InputFile, OutputStream
from icefield.errors import DecryptionFailed, UnsupportedFeature

BLOCK: Final = 1 << 20
"""Bytes of a plain block. Java's library reads and writes no others."""

_NONCE, _TAG = 12, 16
_STORED: Final = BLOCK + _NONCE + _TAG
HEADER: Final = b"AGS1" + struct.pack("<i", BLOCK)
_MOST_BLOCKS: Final = 2**31 - 1
_KEPT: Final = 4
"""Decrypted blocks that a file keeps: readers go on where they stopped, and come back to a footer."""


def plain_size(stored: int) -> int | None:
    """The bytes in a stream of ``stored`` bytes; None for a size that no stream has."""
    blocks, rest = divmod(stored - len(HEADER), _STORED)
    if stored < len(HEADER) + _NONCE + _TAG or (rest and rest < _NONCE + _TAG) or blocks > _MOST_BLOCKS:
        return None
    if rest == _NONCE + _TAG and blocks:
        return None  # only an empty stream has an empty block
    return blocks * BLOCK + max(0, rest - _NONCE - _TAG)


def stored_size(plain: int) -> int:
    """The bytes of a stream that holds ``plain`` bytes."""
    return len(HEADER) + plain + max(1, -(-plain // BLOCK)) * (_NONCE + _TAG)


class DecryptingFile(InputFile):
    """The plain content of an encrypted stream, decrypted block by block. Safe for reads from several threads.

    Raises ``DecryptionFailed`` at once for a length that no stream has, and from reads for all other damage.
    """

    def __init__(self, source: InputFile, key: FileKey, location: str) -> None:
        self._source, self._location = source, location
        self._cipher, self._prefix = AESGCM(key.key), key.aad_prefix
        self._stored = source.size if key.length is None else key.length
        size = plain_size(self._stored)
        if size is None:
            raise self._failed(f"no encrypted stream has {self._stored:,} bytes")
        self._size = size
        self._blocks: dict[int, bytes] = {}
        self._lock = Lock()

    @property
    def size(self) -> int:
        return self._size

    @property
    def is_remote(self) -> bool:
        return self._source.is_remote

    @property
    def closed(self) -> bool:
        return self._source.closed

    def close(self) -> None:
        self._source.close()

    def read_at(self, offset: int, length: int) -> bytes:
        return self.read_ranges([(offset, length)])[0]

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        if self.closed:
            raise ValueError("the file is closed")
        if any(offset < 0 or length < 0 for offset, length in ranges):
            raise ValueError("an offset or a length is negative")
        clipped = [(min(offset, self._size), min(offset + length, self._size)) for offset, length in ranges]
        if not self._size:
            self._fetch([0])  # the empty block shows that the key is right
        wanted = {number for start, end in clipped if end > start for number in _numbers(start, end)}
        with self._lock:
            held = {number: self._blocks[number] for number in wanted & self._blocks.keys()}
        held |= self._fetch(sorted(wanted - held.keys()))
        with self._lock:
            for number in sorted(wanted):
                self._blocks.pop(number, None)
                self._blocks[number] = held[number]
            for number in [*self._blocks][:-_KEPT]:
                del self._blocks[number]
        return [_part(held, start, end) for start, end in clipped]

    def _fetch(self, numbers: list[int]) -> dict[int, bytes]:
        """Read and decrypt blocks; neighbours are read together."""
        runs: list[list[int]] = []
        for number in numbers:
            if runs and runs[-1][-1] + 1 == number:
                runs[-1].append(number)
            else:
                runs.append([number])
        spans = []
        for run in runs:
            start = 0 if run[0] == 0 else len(HEADER) + run[0] * _STORED
            end = min(self._stored, len(HEADER) + (run[-1] + 1) * _STORED)
            spans.append((start, end - start))
        found: dict[int, bytes] = {}
        for run, (start, length), data in zip(runs, spans, self._source.read_ranges(spans), strict=True):
            if len(data) != length:
                raise self._failed("it is shorter than its key metadata says")
            if start == 0 and data[: len(HEADER)] != HEADER:
                raise self._failed("it does not begin as an encrypted stream")
            view = memoryview(data)[len(HEADER) if start == 0 else 0 :]
            for place, number in enumerate(run):
                found[number] = self._decrypted(number, view[place * _STORED : (place + 1) * _STORED])
        return found

    def _decrypted(self, number: int, block: memoryview) -> bytes:
        try:
            return self._cipher.decrypt(block[:_NONCE], block[_NONCE:], self._prefix + struct.pack("<i", number))
        except InvalidTag:
            raise self._failed(f"its key does not open block {number}") from None

    def _failed(self, why: str) -> DecryptionFailed:
        return DecryptionFailed(
            f"{self._location} cannot be decrypted: {why}; it is damaged, cut, or another file", location=self._location
        )


class EncryptingStream(OutputStream):
    """A stream that encrypts into another one, block by block. ``tell`` counts plain bytes."""

    def __init__(self, sink: OutputStream, key: FileKey) -> None:
        self._sink, self._prefix = sink, key.aad_prefix
        self._cipher = AESGCM(key.key)
        self._rest = bytearray()
        self._number = 0
        sink.write(HEADER)

    def write(self, data: Any, /) -> int:
        if self.closed:
            raise ValueError("the stream is closed")
        view = memoryview(data).cast("B")
        start = 0
        if self._rest:
            start = BLOCK - len(self._rest)
            self._rest += view[:start]
            if len(self._rest) < BLOCK:
                return len(view)
            self._encrypt(self._rest)
            self._rest = bytearray()
        while len(view) - start >= BLOCK:
            self._encrypt(view[start : start + BLOCK])
            start += BLOCK
        self._rest += view[start:]
        return len(view)

    def tell(self) -> int:
        return self._number * BLOCK + len(self._rest) if not self.closed else self._size

    def close(self) -> None:
        if self.closed:
            return
        self._size = self._number * BLOCK + len(self._rest)
        if self._rest or not self._number:
            self._encrypt(self._rest)
        self._sink.close()

    def abort(self) -> None:
        if not self.closed:
            self._size = self.tell()
        self._sink.abort()

    @property
    def closed(self) -> bool:
        return self._sink.closed

    def _encrypt(self, block: bytearray | memoryview) -> None:
        if self._number >= _MOST_BLOCKS:
            raise UnsupportedFeature("an encrypted stream has at most 2,147,483,647 blocks")
        nonce = os.urandom(_NONCE)
        aad = self._prefix + struct.pack("<i", self._number)
        self._sink.write(nonce + self._cipher.encrypt(nonce, block, aad))
        self._number += 1


def _numbers(start: int, end: int) -> range:
    """The blocks with the plain bytes from ``start`` to ``end``."""
    return range(start // BLOCK, (end - 1) // BLOCK + 1)


def _part(blocks: dict[int, bytes], start: int, end: int) -> bytes:
    if start >= end:
        return b""
    parts = [blocks[number] for number in _numbers(start, end)]
    first = start // BLOCK * BLOCK
    if len(parts) == 1:
        return parts[0][start - first : end - first]
    return b"".join([parts[0][start - first :], *parts[1:-1], parts[-1][: end - (end - 1) // BLOCK * BLOCK]])
