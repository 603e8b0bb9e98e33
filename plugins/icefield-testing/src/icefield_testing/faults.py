"""File systems that fail on purpose: a crash before or after a call, a reply that is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from icefield.abc import FileInfo, FileSystem, FileSystemAbility, InputFile, OutputStream, PutMode
from icefield.errors import StorageError

Fault = Callable[[int, str, str], str | BaseException | None]
"""Called with the number, the name and the location of each call; answers ``crash-before``, ``crash-after``,
``lose-request``, ``lose-reply``, ``late-request``, an exception that is raised when the call is done, or None."""

CHANGES = frozenset({"put", "rename", "close", "delete_many"})
"""The calls that change the storage."""


class Crash(BaseException):
    """The process counts as dead from here on: no error handler may catch this."""


class FaultyFileSystem(FileSystem):
    """Another file system, with faults injected by ``fault`` and every call noted in ``calls``.

    After a crash, no call reaches the storage any more, as if the process had died. A call with the fate
    ``late-request`` fails, and ``deliver_late`` makes it.
    """

    def __init__(self, inner: FileSystem, fault: Fault | None = None) -> None:
        super().__init__(inner.properties)
        self.inner = inner
        self.fault = fault
        self.calls: list[tuple[str, str]] = []
        self.crashed = False
        self._late: list[Callable[[], Any]] = []
        self._lock = threading.Lock()

    @property
    def abilities(self) -> frozenset[FileSystemAbility]:
        """The abilities that the wrapped file system declares."""
        return self.inner.abilities

    def run(self, name: str, location: str, action: Callable[[], Any]) -> Any:
        """Note a call and make it, with the fault before or after it."""
        with self._lock:
            if self.crashed:
                raise Crash(f"{name} after the crash")
            number = len(self.calls)
            self.calls.append((name, location))
        # This is outside the lock: a fault may delay a call while another thread continues.
        verdict = self.fault(number, name, location) if self.fault else None
        if verdict == "crash-before":
            self.crashed = True
            raise Crash(f"before {name} {location}")
        if verdict == "late-request":
            self._late.append(action)
        if verdict in ("lose-request", "late-request"):
            raise StorageError(f"connection lost before {name}", retryable=True, location=location)
        result = action()
        if verdict == "crash-after":
            self.crashed = True
            raise Crash(f"after {name} {location}")
        if isinstance(verdict, BaseException):
            raise verdict
        if verdict == "lose-reply":
            raise StorageError(f"connection lost after {name}", retryable=True, location=location)
        return result

    def deliver_late(self) -> None:
        """Make the calls that were held back. Nobody hears of their result."""
        while self._late:
            with suppress(Exception):  # the stream of a call may be closed meanwhile
                self._late.pop(0)()

    def open_input(self, location: str) -> InputFile:
        file: InputFile = self.run("open_input", location, lambda: self.inner.open_input(location))
        return file

    def put(self, location: str, data: bytes, mode: PutMode) -> str | None:
        etag: str | None = self.run("put", location, lambda: self.inner.put(location, data, mode))
        return etag

    def open_output(self, location: str) -> OutputStream:
        stream: OutputStream = self.run("open_output", location, lambda: self.inner.open_output(location))
        return _FaultyOutput(self, location, stream)

    def stat(self, location: str) -> FileInfo:
        info: FileInfo = self.run("stat", location, lambda: self.inner.stat(location))
        return info

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        found: Iterable[FileInfo] = self.run(
            "list_files", prefix, lambda: [*self.inner.list_files(prefix, shallow=shallow)]
        )
        return iter(found)

    def delete_many(self, locations: Iterable[str]) -> None:
        doomed = [*locations]
        self.run("delete_many", ",".join(doomed), lambda: self.inner.delete_many(doomed))

    def rename(self, source: str, target: str) -> None:
        self.run("rename", target, lambda: self.inner.rename(source, target))

    @property
    def changes(self) -> Sequence[tuple[str, str]]:
        """The calls that changed the storage."""
        return [call for call in self.calls if call[0] in CHANGES]


class _FaultyOutput(OutputStream):
    def __init__(self, owner: FaultyFileSystem, location: str, inner: OutputStream) -> None:
        self._owner, self._location, self._inner = owner, location, inner

    def write(self, data: Any, /) -> int:
        written: int = self._owner.run("write", self._location, lambda: self._inner.write(data))
        return written

    def tell(self) -> int:
        return self._inner.tell()

    def close(self) -> None:
        self._owner.run("close", self._location, self._inner.close)

    def abort(self) -> None:
        # A dead process aborts no stream, but its stream is never published either.
        self._inner.abort()

    @property
    def closed(self) -> bool:
        return self._inner.closed
