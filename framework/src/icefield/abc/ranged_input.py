"""A file of an object store, read by ranges.

An object store answers each request on its own, so that what costs is their number. The first request brings the
file's size together with bytes; what is read one piece after another is read ahead.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

_SMALL: Final = 64 * 1024
_MOST_AHEAD: Final = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FetchedRange:
    """Bytes of a file: from which offset, which, and how many the whole file has."""

    offset: int
    data: bytes
    file_size: int


class RangedInput(ABC):
    """A seekable file over requests for ranges; a store gives ``fetch`` and ``fetch_first``.

    Nothing is asked before the first read or the first seek from the end: a missing file is found then.
    """

    def __init__(self, location: str) -> None:
        self.location = location
        self._position = 0
        self._size: int | None = None
        self._window = FetchedRange(0, b"", 0)
        self._next = -1
        self._ahead = _SMALL
        self._closed = False

    @abstractmethod
    def fetch(self, start: int, end: int) -> FetchedRange:
        """Bytes from ``start`` to before ``end``, fewer (or none) at the end of the file. Raises ``FileMissing``."""

    @abstractmethod
    def fetch_first(self) -> FetchedRange:
        """What to ask when only the size is wanted: the file's last bytes, or its first ones, in one request."""

    def read(self, size: int | None = -1, /) -> bytes:
        """The next ``size`` bytes, fewer at the end of the file; all that are left when it is negative or None."""
        self._check_open()
        start = self._position
        end = self._size_of_file() if size is None or size < 0 else start + size
        if self._size is not None:
            end = min(end, self._size)
        if end <= start:
            return b""
        data = self._between(start, end)
        self._position = start + len(data)
        self._next = self._position
        return data

    def readinto(self, buffer: bytearray | memoryview, /) -> int:
        """Fill a buffer; return how many bytes were there to fill it with."""
        target = memoryview(buffer).cast("B")
        data = self.read(len(target))
        target[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Move to an offset from the start (0), the position (1) or the end (2); return the new position."""
        self._check_open()
        if whence == os.SEEK_END:
            offset += self._size_of_file()
        elif whence == os.SEEK_CUR:
            offset += self._position
        elif whence != os.SEEK_SET:
            raise ValueError(f"whence is 0, 1 or 2, not {whence}")
        if offset < 0:
            raise ValueError(f"{offset} lies before the start of {self.location}")
        self._position = offset
        return offset

    def tell(self) -> int:
        """The position, in bytes from the start."""
        self._check_open()
        return self._position

    def close(self) -> None:
        """Let go of what was read ahead."""
        self._closed = True
        self._window = FetchedRange(0, b"", 0)

    @property
    def closed(self) -> bool:
        """Whether the file was closed."""
        return self._closed

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def writable(self) -> bool:
        """False."""
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError(f"{self.location} is closed")

    def _size_of_file(self) -> int:
        if self._size is None:
            self._keep(self.fetch_first())
        assert self._size is not None
        return self._size

    def _keep(self, fetched: FetchedRange) -> None:
        self._size = fetched.file_size
        self._window = fetched

    def _between(self, start: int, end: int) -> bytes:
        window = self._window
        offset, data = window.offset, window.data
        if offset <= start and end <= offset + len(data):
            return data[start - offset : end - offset]
        # What is there already is not asked for again.
        if offset <= start < offset + len(data):
            known = data[start - offset :]
            return known + self._fetched(start + len(known), end, start == self._next)
        if start < offset < end <= offset + len(data):
            return self._fetched(start, offset, start == self._next) + data[: end - offset]
        return self._fetched(start, end, start == self._next)

    def _fetched(self, start: int, end: int, in_sequence: bool) -> bytes:
        """Ask the store; ahead of what is asked for when one piece is read after another."""
        self._ahead = min(2 * self._ahead, _MOST_AHEAD) if in_sequence else _SMALL
        until = max(end, start + self._ahead)
        if self._size is not None:
            until = min(until, self._size)
        fetched = self.fetch(start, until)
        self._size = fetched.file_size
        if len(fetched.data) <= _MOST_AHEAD:
            self._window = fetched
        return fetched.data[: end - start]
