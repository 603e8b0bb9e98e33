"""A file of an object store, read by ranges.

An object store answers each request separately, so the number of requests determines the cost. The first request
returns the file's size together with bytes; sequential reads are read ahead.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Self

from icefield.abc import InputFile
from icefield.base.concurrency import map_ahead
from icefield.errors import StorageError

_SMALL: Final = 64 * 1024
_MUCH_MORE: Final = 16
_GAP: Final = 256 * 1024
"""Bytes that are fetched in vain rather than that a second request is made."""

_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class FetchedRange:
    """Bytes of a file: from which offset, which, and how many the whole file has."""

    offset: int
    data: bytes
    file_size: int


class RangedInput(InputFile):
    """A file over requests for ranges; a subclass implements ``fetch`` and ``fetch_first`` for its store.

    ``open`` makes the first request, so that a missing file is found at once; later reads use the bytes it returned.
    """

    most_ahead: ClassVar[int] = 8 * 1024 * 1024
    """How many bytes are read ahead at most. Less will do where a request costs little."""

    def __init__(self, location: str) -> None:
        self.location = location
        self.__size: int | None = None
        self.__window = FetchedRange(0, b"", 0)
        self.__next = -1
        self.__ahead = _SMALL
        self.__closed = False

    @abstractmethod
    def fetch(self, start: int, end: int) -> FetchedRange:
        """Bytes from ``start`` to before ``end``, fewer (or none) at the end of the file. Raises ``FileMissing``."""

    @abstractmethod
    def fetch_first(self) -> FetchedRange:
        """The file's last bytes, or its first ones, in one request. Raises ``FileMissing``."""

    def open(self) -> Self:
        """Make the first request. Raises ``FileMissing``."""
        _ = self.size
        return self

    @property
    def size(self) -> int:
        """How many bytes the file has, by the response to the first request."""
        if self.__size is None:
            self.__window = self.fetch_first()
            self.__size = self.__window.file_size
        return self.__size

    @property
    def is_remote(self) -> bool:
        """True."""
        return True

    def read_at(self, offset: int, length: int) -> bytes:
        """Bytes from an offset on, fewer at the end of the file; bytes at hand are not requested again."""
        end = self.__end(offset, length)
        if end <= offset:
            return b""
        data = self.__between(offset, end)
        self.__next = offset + len(data)
        return data

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Read several ranges as ``read_at`` does. Near ranges share a request, and requests are made concurrently."""
        spans = [(offset, max(offset, self.__end(offset, length))) for offset, length in ranges]
        found = [self.__known(start, end) for start, end in spans]
        missing = _merged(span for span, data in zip(spans, found, strict=True) if data is None)
        if len(missing) < 2:
            fetched = [(start, self.read_at(start, end - start)) for start, end in missing]
        else:
            fetched = [*map_ahead(missing, lambda span: (span[0], self.__asked(*span).data), _AT_ONCE)]
        return [
            _part(fetched, start, end) if data is None else data
            for (start, end), data in zip(spans, found, strict=True)
        ]

    def close(self) -> None:
        """Release the bytes that were read ahead."""
        self.__closed = True
        self.__window = FetchedRange(0, b"", 0)

    @property
    def closed(self) -> bool:
        """Whether the file was closed."""
        return self.__closed

    def __end(self, offset: int, length: int) -> int:
        if self.__closed:
            raise ValueError(f"{self.location} is closed")
        if offset < 0 or length < 0:
            raise ValueError(f"no {length} bytes can be read from {offset} on in {self.location}")
        return offset + length if self.__size is None else min(offset + length, self.__size)

    def __known(self, start: int, end: int) -> bytes | None:
        """The bytes of a range, if all of them were fetched before; None otherwise."""
        window = self.__window
        if start == end:
            return b""
        if window.offset <= start and end <= window.offset + len(window.data):
            return window.data[start - window.offset : end - window.offset]
        return None

    def __between(self, start: int, end: int) -> bytes:
        known = self.__known(start, end)
        if known is not None:
            return known
        window = self.__window
        offset, data = window.offset, window.data
        # Bytes at hand are not requested again, unless they are so few that copying costs more.
        if end - start > _MUCH_MORE * len(data):
            return self.__fetched(start, end, start == self.__next)
        if offset <= start < offset + len(data):
            known = data[start - offset :]
            return known + self.__fetched(start + len(known), end, start == self.__next)
        if start < offset < end <= offset + len(data):
            return self.__fetched(start, offset, start == self.__next) + data[: end - offset]
        return self.__fetched(start, end, start == self.__next)

    def __fetched(self, start: int, end: int, in_sequence: bool) -> bytes:
        """Request a range from the store, and bytes after it if reads are sequential."""
        self.__ahead = min(2 * self.__ahead, self.most_ahead) if in_sequence else _SMALL
        until = max(end, start + self.__ahead)
        if self.__size is not None:
            until = min(until, self.__size)
        fetched = self.__asked(start, until)
        self.__size = fetched.file_size
        if len(fetched.data) <= self.most_ahead:
            self.__window = fetched
        return fetched.data if until == end else fetched.data[: end - start]

    def __asked(self, start: int, end: int) -> FetchedRange:
        fetched = self.fetch(start, end)
        if len(fetched.data) != max(0, min(end, fetched.file_size) - start):
            message = f"{len(fetched.data)} bytes came of {self.location}, where {start} to {end} were asked for"
            raise StorageError(message, retryable=True, location=self.location)
        return fetched


def _part(pieces: Sequence[tuple[int, bytes]], start: int, end: int) -> bytes:
    """The bytes of a span, from the piece that begins before it or with it."""
    first, data = next(piece for piece in reversed(pieces) if piece[0] <= start)
    return data[start - first : end - first]


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in order, with spans merged that overlap or have a small gap between them."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start - merged[-1][1] <= _GAP:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged
