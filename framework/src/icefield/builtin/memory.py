"""Files in the memory of one process: ``memory://name/path``. For tests and for trying things out."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from icefield.abc import FileInfo, FileSystem, FileSystemAbility, InputFile, OutputStream, PutMode
from icefield.base.concurrency import reset_after_fork
from icefield.errors import FileExists, FileMissing
from icefield.toolkit import BytesInput
from icefield.toolkit.authority import check_characters


class MemoryFileSystem(FileSystem):
    """Files that every instance in this process shares, and that end with it."""

    abilities = frozenset({FileSystemAbility.ATOMIC_CREATE, FileSystemAbility.ATOMIC_RENAME, FileSystemAbility.LIST})

    # Shared by design: a location must name the same file in every instance.
    files: ClassVar[dict[str, tuple[bytes, int]]] = {}
    """All files by location: their bytes, and their time in milliseconds. Tests may read and change it."""

    _lock: ClassVar[threading.RLock] = threading.RLock()

    def open_input(self, location: str) -> InputFile:
        return BytesInput(self._get(location)[0])

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        self._publish(location, bytes(data), replace=mode is PutMode.OVERWRITE)

    def open_output(self, location: str) -> OutputStream:
        check_characters(location)
        return _MemoryOutput(self, location)

    def stat(self, location: str) -> FileInfo:
        data, modified = self._get(location)
        return FileInfo(location, len(data), modified)

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        check_characters(prefix)
        root = prefix.rstrip("/") + "/"
        with self._lock:
            below = [(name, *found) for name, found in self.files.items() if name.startswith(root)]
        folders: set[str] = set()
        for name, data, modified in sorted(below):
            head, slash, _ = name[len(root) :].partition("/")
            if not (shallow and slash):
                yield FileInfo(name, len(data), modified)
            elif head not in folders:
                folders.add(head)
                yield FileInfo(f"{root}{head}/", 0)

    def delete_many(self, locations: Iterable[str]) -> None:
        with self._lock:
            for location in locations:
                check_characters(location)
                self.files.pop(location, None)

    def rename(self, source: str, target: str) -> None:
        for location in (source, target):
            check_characters(location)
        with self._lock:
            if source not in self.files:
                raise FileMissing(f"no file {source}", location=source)
            if target in self.files:
                raise FileExists(f"a file {target} is there already", location=target)
            self.files[target] = self.files.pop(source)

    def _get(self, location: str) -> tuple[bytes, int]:
        check_characters(location)
        with self._lock:
            found = self.files.get(location)
        if found is None:
            raise FileMissing(f"no file {location}", location=location)
        return found

    def _publish(self, location: str, data: bytes, *, replace: bool) -> None:
        check_characters(location)
        with self._lock:
            if location in self.files and not replace:
                raise FileExists(f"a file {location} is there already", location=location)
            self.files[location] = (data, time.time_ns() // 1_000_000)


def _unlock() -> None:
    MemoryFileSystem._lock = threading.RLock()


reset_after_fork(_unlock)


class _MemoryOutput(OutputStream):
    """Collects bytes; ``close`` publishes them."""

    def __init__(self, owner: MemoryFileSystem, location: str) -> None:
        self._owner, self._location = owner, location
        self._buffer: io.BytesIO | None = io.BytesIO()
        self._written = 0

    def write(self, data: Any, /) -> int:
        if self._buffer is None:
            raise ValueError(f"the stream to {self._location} is closed")
        count = self._buffer.write(data)
        self._written += count
        return count

    def tell(self) -> int:
        return self._written

    def close(self) -> None:
        if self._buffer is not None:
            buffer, self._buffer = self._buffer, None
            self._owner._publish(self._location, buffer.getvalue(), replace=False)

    def abort(self) -> None:
        self._buffer = None

    @property
    def closed(self) -> bool:
        return self._buffer is None
