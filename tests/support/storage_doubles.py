"""File systems that refuse, record or fail: they refuse operations that a table format may not ask of storage.

Each is served under a scheme of its own by the plugin ``PLUGIN``, over the files of the memory file system.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, NoReturn

from icefield.abc import FileInfo, FileSystemAbility, InputFile, OutputStream, PutMode
from icefield.builtin.memory import MemoryFileSystem
from icefield.errors import StorageError
from icefield.plugins import Provider, hookimpl


class Forbidden(AssertionError):
    """An operation that the table format may not ask of storage."""


class StrictFileSystem(MemoryFileSystem):
    """Write-once storage: nothing is overwritten, appended to, moved or listed; streams only go forward.

    It declares ATOMIC_CREATE, so that tables without a metastore can live on it. ``version-hint.text`` alone may be
    replaced.
    """

    abilities = frozenset({FileSystemAbility.ATOMIC_CREATE})
    written: ClassVar[Counter[str]] = Counter()
    calls: ClassVar[Counter[str]] = Counter()

    def open_input(self, location: str) -> InputFile:
        self.calls["open_input"] += 1
        return super().open_input(location)

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        self.calls["put"] += 1
        if mode is PutMode.OVERWRITE and not location.endswith("/version-hint.text"):
            raise Forbidden(f"{location} would be overwritten")
        if mode is PutMode.CREATE:
            super().put(location, data, mode)
            self.written[location] += 1
        else:
            super().put(location, data, mode)

    def open_output(self, location: str) -> OutputStream:
        self.calls["open_output"] += 1
        self.written[location] += 1
        if self.written[location] > 1:
            raise Forbidden(f"{location} is written twice")
        return ForwardStream(super().open_output(location))

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        # The directory catalog finds names by listing the folder of a namespace, ``db`` in these tests. Nothing below a
        # table may be listed.
        if "/db/" in prefix and not prefix.endswith("/.icefield"):
            raise Forbidden(f"{prefix} would be listed")
        return super().list_files(prefix, shallow=shallow)

    def rename(self, source: str, target: str) -> None:
        raise Forbidden(f"{source} would be renamed")


class RenamingFileSystem(StrictFileSystem):
    """The same storage with an atomic rename instead of an atomic create: only the rename of a commit is allowed."""

    abilities = frozenset({FileSystemAbility.ATOMIC_RENAME})

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        if mode is PutMode.CREATE:
            raise Forbidden(f"{location} would be created atomically")
        super().put(location, data, mode)

    def rename(self, source: str, target: str) -> None:
        if not target.endswith(".metadata.json") and "/.icefield/" not in target:
            raise Forbidden(f"{source} would be renamed to {target}")
        self.calls["rename"] += 1
        MemoryFileSystem.rename(self, source, target)

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        return MemoryFileSystem.list_files(self, prefix, shallow=shallow)


class ForwardStream(OutputStream):
    """A stream with ``write``, ``tell``, ``close`` and ``abort``, and nothing else."""

    def __init__(self, inner: OutputStream) -> None:
        self._inner = inner

    def write(self, data: Any, /) -> int:
        return self._inner.write(data)

    def tell(self) -> int:
        return self._inner.tell()

    def close(self) -> None:
        self._inner.close()

    def abort(self) -> None:
        self._inner.abort()

    @property
    def closed(self) -> bool:
        return self._inner.closed

    def seek(self, *_: Any) -> NoReturn:
        raise Forbidden("a writer seeks back")

    truncate = seek


class ReadOnlyFileSystem(MemoryFileSystem):
    """A mount that can only be read."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise Forbidden("a reader writes")

    put = open_output = delete_many = rename = _refuse  # type: ignore[assignment]


class FailingFileSystem(MemoryFileSystem):
    """Fails on the operation that ``fail`` picks, by its name, location and count."""

    abilities = MemoryFileSystem.abilities
    fail: ClassVar[Callable[[str, str, int], bool]] = staticmethod(lambda name, location, count: False)
    count: ClassVar[int] = 0
    trace: ClassVar[list[tuple[str, str]]] = []

    def _step(self, name: str, location: str) -> None:
        kind = type(self)
        kind.count += 1
        kind.trace.append((name, location))
        if kind.fail(name, location, kind.count):
            raise StorageError(f"injected: {name} {location}", location=location)

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        self._step("put", location)
        super().put(location, data, mode)

    def open_output(self, location: str) -> OutputStream:
        self._step("open_output", location)
        return _FailingStream(self, location, super().open_output(location))

    def rename(self, source: str, target: str) -> None:
        self._step("rename", target)
        super().rename(source, target)

    def delete_many(self, locations: Iterable[str]) -> None:
        found = list(locations)
        self._step("delete_many", ",".join(found))
        super().delete_many(found)


class _FailingStream(ForwardStream):
    def __init__(self, owner: FailingFileSystem, location: str, inner: OutputStream) -> None:
        super().__init__(inner)
        self._owner, self._location = owner, location

    def close(self) -> None:
        if not self.closed:
            self._owner._step("close", self._location)
        super().close()


class DoublesPlugin:
    """Serves the doubles."""

    @hookimpl
    def icefield_file_systems(self) -> list[Provider]:
        return [
            Provider(("strict",), "storage_doubles:StrictFileSystem"),
            Provider(("renaming",), "storage_doubles:RenamingFileSystem"),
            Provider(("readonly",), "storage_doubles:ReadOnlyFileSystem"),
            Provider(("failing",), "storage_doubles:FailingFileSystem"),
        ]


PLUGIN = DoublesPlugin()
