"""A file of an object store, read by ranges.

An object store answers each request on its own, so that what costs is their number. The first request brings the
file's size together with bytes; what is read one piece after another is read ahead.
"""

# See docs/decisions/0046.

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import TracebackType
from typing import ClassVar, Final, Self

from icefield.errors import StorageError

_SMALL: Final = 64 * 1024
_MUCH_MORE: Final = 16


@dataclass(frozen=True, slots=True)
class FetchedRange:
    """Bytes of a file: from which offset, which, and how many the whole file has."""

    offset: int
    data: bytes
    file_size: int


class RangedInput(ABC):
    """A seekable file over requests for ranges; a store gives ``fetch`` and ``fetch_first``.

    ``open`` makes the first request, so that a missing file is found at once; what it brings is read from then on.
    """

    most_ahead: ClassVar[int] = 8 * 1024 * 1024
    """How many bytes are read ahead at most. Less will do where a request costs little."""

    def __init__(self, location: str) -> None:
        self.location = location
        self.__position = 0
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
        self.__size_of_file()
        return self

    def read(self, size: int | None = -1, /) -> bytes:
        """The next ``size`` bytes, fewer at the end of the file; all that are left when it is negative or None."""
        self.__check_open()
        start = self.__position
        end = self.__size_of_file() if size is None or size < 0 else start + size
        if self.__size is not None:
            end = min(end, self.__size)
        if end <= start:
            return b""
        data = self.__between(start, end)
        self.__position = start + len(data)
        self.__next = self.__position
        return data

    def readinto(self, buffer: bytearray | memoryview, /) -> int:
        """Fill a buffer; return how many bytes were there to fill it with."""
        target = memoryview(buffer).cast("B")
        data = self.read(len(target))
        target[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Move to an offset from the start (0), the position (1) or the end (2); return the new position."""
        self.__check_open()
        if whence == os.SEEK_END:
            offset += self.__size_of_file()
        elif whence == os.SEEK_CUR:
            offset += self.__position
        elif whence != os.SEEK_SET:
            raise ValueError(f"whence is 0, 1 or 2, not {whence}")
        if offset < 0:
            raise ValueError(f"{offset} lies before the start of {self.location}")
        self.__position = offset
        return offset

    def tell(self) -> int:
        """The position, in bytes from the start."""
        self.__check_open()
        return self.__position

    def close(self) -> None:
        """Let go of what was read ahead."""
        self.__closed = True
        self.__window = FetchedRange(0, b"", 0)

    @property
    def closed(self) -> bool:
        """Whether the file was closed."""
        return self.__closed

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

    def __check_open(self) -> None:
        if self.__closed:
            raise ValueError(f"{self.location} is closed")

    def __size_of_file(self) -> int:
        if self.__size is None:
            self.__keep(self.fetch_first())
        assert self.__size is not None
        return self.__size

    def __keep(self, fetched: FetchedRange) -> None:
        self.__size = fetched.file_size
        self.__window = fetched

    def __between(self, start: int, end: int) -> bytes:
        window = self.__window
        offset, data = window.offset, window.data
        if offset <= start and end <= offset + len(data):
            return data[start - offset : end - offset]
        # What is there already is not asked for again, unless it is so little that copying costs more.
        if end - start > _MUCH_MORE * len(data):
            return self.__fetched(start, end, start == self.__next)
        if offset <= start < offset + len(data):
            known = data[start - offset :]
            return known + self.__fetched(start + len(known), end, start == self.__next)
        if start < offset < end <= offset + len(data):
            return self.__fetched(start, offset, start == self.__next) + data[: end - offset]
        return self.__fetched(start, end, start == self.__next)

    def __fetched(self, start: int, end: int, in_sequence: bool) -> bytes:
        """Ask the store; ahead of what is asked for when one piece is read after another."""
        self.__ahead = min(2 * self.__ahead, self.most_ahead) if in_sequence else _SMALL
        until = max(end, start + self.__ahead)
        if self.__size is not None:
            until = min(until, self.__size)
        fetched = self.fetch(start, until)
        if len(fetched.data) != max(0, min(until, fetched.file_size) - start):
            message = f"{len(fetched.data)} bytes came of {self.location}, where {start} to {until} were asked for"
            raise StorageError(message, retryable=True, location=self.location)
        self.__size = fetched.file_size
        if len(fetched.data) <= self.most_ahead:
            self.__window = fetched
        return fetched.data if until == end else fetched.data[: end - start]
