"""Input files over bytes in memory, pyarrow's own files and other seekable binary files, and reads of a whole file."""

from __future__ import annotations

import os
import threading
from typing import Any

import pyarrow as pa

from icefield.abc import InputFile
from icefield.base.concurrency import reset_after_fork
from icefield.errors import InvalidFile


class BytesInput(InputFile):
    """Bytes in memory as a file."""

    def __init__(self, data: bytes) -> None:
        self.__data = data
        self.__size = len(data)
        self.__arrow: pa.NativeFile | None = None
        self.__closed = False

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return self.__size

    def read_at(self, offset: int, length: int) -> bytes:
        """A part of the bytes; the same object if the part is the whole."""
        if self.__closed:
            raise ValueError("the file is closed")
        check_range(offset, length)
        return self.__data[offset : offset + length]

    def arrow_file(self) -> pa.NativeFile:
        """A buffer of pyarrow, which shares the bytes."""
        if self.__arrow is None:
            self.__arrow = pa.BufferReader(self.__data)
        return self.__arrow

    def close(self) -> None:
        """Release the bytes."""
        self.__closed, self.__data = True, b""

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self.__closed


class ArrowInput(InputFile):
    """A seekable file of pyarrow's own, such as ``pyarrow.OSFile``, which several threads may read at any offset."""

    def __init__(self, file: pa.NativeFile, *, is_remote: bool = False) -> None:
        self.__file = file
        self.__size = int(file.size())
        self.__is_remote = is_remote

    @property
    def size(self) -> int:
        """How many bytes the file had when it was opened."""
        return self.__size

    @property
    def is_remote(self) -> bool:
        """The value given to the constructor."""
        return self.__is_remote

    def read_at(self, offset: int, length: int) -> bytes:
        """A part of the file."""
        check_range(offset, length)
        offset = min(offset, self.__size)
        # pyarrow allocates as many bytes as are requested.
        data: bytes = self.__file.read_at(min(length, self.__size - offset), offset)
        return data

    def arrow_file(self) -> pa.NativeFile:
        """The file itself, which Arrow reads without Python."""
        return self.__file

    def close(self) -> None:
        """Close the file."""
        self.__file.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed, by pyarrow's reader too."""
        return bool(self.__file.closed)


class _PythonInput(InputFile):
    """A seekable binary file of Python, which has one position for all: a lock keeps reads apart."""

    def __init__(self, file: Any, *, is_remote: bool) -> None:
        self._file = file
        self._is_remote = is_remote
        self._unlock()
        reset_after_fork(self._unlock)
        self._size: int | None = None

    def _unlock(self) -> None:
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        with self._lock:
            if self._size is None:
                self._file.seek(0, os.SEEK_END)
                self._size = int(self._file.tell())
            return self._size

    @property
    def is_remote(self) -> bool:
        return self._is_remote

    def read_at(self, offset: int, length: int) -> bytes:
        check_range(offset, length)
        parts = []
        with self._lock:
            self._file.seek(offset)
            # An unbuffered file may return less than requested.
            while length and (part := self._file.read(length)):
                parts.append(part if isinstance(part, bytes) else bytes(part))
                length -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        self._file.close()

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)


def as_input_file(file: Any, *, is_remote: bool = False) -> InputFile:
    """Any seekable binary file as an input file; an input file is returned unchanged.

    ``file`` has ``read``, ``seek``, ``tell``, ``close`` and ``closed``, as Python's and pyarrow's files have; it is
    read from its start, and closed with the input file. ``is_remote`` states whether a read of it may be a request.
    """
    if isinstance(file, InputFile):
        return file
    if isinstance(file, pa.NativeFile):
        return ArrowInput(file, is_remote=is_remote)
    return _PythonInput(file, is_remote=is_remote)


def check_range(offset: int, length: int) -> None:
    """Raise ``ValueError`` for a negative offset or length."""
    if offset < 0 or length < 0:
        raise ValueError(f"no {length} bytes can be read from the offset {offset} on")


def read_bounded(source: InputFile, location: str, limit: int | None) -> bytes:
    """The bytes of an open file. Raises ``InvalidFile`` for more than ``limit``, before they are read.

    The size that the file states is not trusted: bytes beyond it are counted as well.
    """
    # Read as many bytes as the file states, because a read of ``limit`` bytes would allocate all of them.
    size = source.seek(0, os.SEEK_END)
    if limit is not None and size > limit:
        raise _too_long(location, limit)
    source.seek(0)
    parts = [source.read(size) if limit is not None else source.read()]
    have = len(parts[0])
    while limit is not None and (part := source.read(1 if have >= size else size - have)):
        have += len(part)
        parts.append(part)
        if have > limit:
            raise _too_long(location, limit)
        size = max(size, min(2 * have, limit + 1)) if have > size else size
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_long(location: str, limit: int) -> InvalidFile:
    return InvalidFile(f"{location} has more than {limit:,} bytes, the most that is read of it", location=location)
