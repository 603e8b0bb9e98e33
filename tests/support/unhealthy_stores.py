"""Stores that each do one thing wrong: an examination must find exactly that."""

from __future__ import annotations

import io
import time
from collections.abc import Iterable, Iterator
from typing import ClassVar

from icefield.abc import FileInfo, FileSystemAbility, InputFile, OutputStream, PutMode
from icefield.builtin.memory import MemoryFileSystem
from icefield.errors import AccessDenied, FileExists, StorageError
from icefield.plugins import Provider, hookimpl

SECRET = "planted-secret-of-a-store"


class IgnoresPreconditions(MemoryFileSystem):
    """Replaces an existing file, like stores without conditional requests."""

    ability_properties: ClassVar = {FileSystemAbility.ATOMIC_CREATE: "sick.conditional-put=false"}

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        super().put(location, data, PutMode.OVERWRITE)

    def rename(self, source: str, target: str) -> None:
        data, _ = self._get(source)
        self._publish(target, data, replace=True)
        self.delete_many([source])


class LooksFirst(MemoryFileSystem):
    """Looks before it writes, which is not atomic."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        if mode is PutMode.CREATE and location in self.files:
            super().put(location, data, mode)  # raises
        time.sleep(0.02)
        super().put(location, data, PutMode.OVERWRITE)


class RefusesAndReplaces(MemoryFileSystem):
    """Reports that a name is taken, and overwrites the file nevertheless."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        taken = mode is PutMode.CREATE and location in self.files
        super().put(location, data, PutMode.OVERWRITE)
        if taken:
            raise FileExists(f"{location} is there", location=location)


class RenamesTwice(MemoryFileSystem):
    """Renames over an existing file."""

    def rename(self, source: str, target: str) -> None:
        data, _ = self._get(source)
        self._publish(target, data, replace=True)
        self.delete_many([source])


class ForgetsOnes(MemoryFileSystem):
    """Lists nothing."""

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        return iter(())


class KeepsAll(MemoryFileSystem):
    """Deletes nothing, and says nothing."""

    def delete_many(self, locations: Iterable[str]) -> None:
        pass


class DeniesDeletes(MemoryFileSystem):
    """Has no right to delete."""

    def delete_many(self, locations: Iterable[str]) -> None:
        raise AccessDenied(f"the store refused to delete {next(iter(locations))}: 403")


class DeniesLists(MemoryFileSystem):
    """Has no right to list."""

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        raise AccessDenied(f"the store refused to list {prefix}: 403", location=prefix)


class DeniesWrites(MemoryFileSystem):
    """Can only be read."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        raise AccessDenied(f"the store refused to write {location}: 403", location=location)

    def open_output(self, location: str) -> OutputStream:
        raise AccessDenied(f"the store refused to write {location}: 403", location=location)


class DeniesAll(DeniesWrites, DeniesLists, DeniesDeletes):
    """Does not know who asks."""

    def stat(self, location: str) -> FileInfo:
        raise AccessDenied("the credentials were refused; renew them", location=location)


class Full(MemoryFileSystem):
    """Has no space left, and raises an error only when a file is closed."""

    def open_output(self, location: str) -> OutputStream:
        stream = super().open_output(location)

        def close() -> None:
            stream.abort()
            raise StorageError(f"cannot use {location}: No space left on device", location=location)

        stream.close = close  # type: ignore[method-assign]
        return stream


class Ahead(MemoryFileSystem):
    """Its clock is ten minutes ahead."""

    skew_ms: ClassVar[int] = 600_000

    def stat(self, location: str) -> FileInfo:
        found = super().stat(location)
        assert found.modified_ms is not None
        return FileInfo(location, found.size, found.modified_ms + self.skew_ms)


class Behind(Ahead):
    """Its clock is twenty seconds behind."""

    skew_ms = -20_000


class Timeless(MemoryFileSystem):
    """Does not state when a file was written."""

    def stat(self, location: str) -> FileInfo:
        return FileInfo(location, super().stat(location).size)


class ReadsElse(MemoryFileSystem):
    """Gives back something else."""

    def open_input(self, location: str) -> InputFile:
        return io.BytesIO(b"else")


class ReadsOneOff(MemoryFileSystem):
    """Seeks to the byte before."""

    def open_input(self, location: str) -> InputFile:
        class Off(io.BytesIO):
            def seek(self, offset: int, whence: int = 0, /) -> int:
                return super().seek(offset - 1 if offset > 0 else offset, whence)

        return Off(self._get(location)[0])


class KeepsHalves(MemoryFileSystem):
    """Publishes an aborted file."""

    def open_output(self, location: str) -> OutputStream:
        stream = super().open_output(location)
        stream.abort = stream.close  # type: ignore[method-assign]
        return stream


class ReadsStale(MemoryFileSystem):
    """Keeps the first content of a name."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        if mode is PutMode.CREATE or location not in self.files:
            super().put(location, data, mode)


class Raises(MemoryFileSystem):
    """Lets an error of its SDK through, which contains the credential that was sent."""

    def open_output(self, location: str) -> OutputStream:
        raise RuntimeError(f"PUT {location}?sig={SECRET} failed")


class Modest(MemoryFileSystem):
    """Renames atomically and offers nothing else."""

    abilities = frozenset({FileSystemAbility.ATOMIC_RENAME})

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        raise AssertionError("what is not offered is not to be tried")

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        assert mode is PutMode.OVERWRITE, "what is not offered is not to be tried"
        super().put(location, data, mode)


class Healthy(MemoryFileSystem):
    """Does all that it says."""


STORES: dict[type[MemoryFileSystem], set[str]] = {
    Healthy: set(),
    Modest: set(),
    Timeless: set(),
    IgnoresPreconditions: {"atomic create", "atomic rename"},
    LooksFirst: {"atomic create"},
    RefusesAndReplaces: {"atomic create"},
    RenamesTwice: {"atomic rename"},
    ForgetsOnes: {"list what was written"},
    KeepsAll: {"delete", "clean-up"},
    DeniesDeletes: {"delete", "clean-up"},
    DeniesLists: {"list", "list what was written"},
    DeniesWrites: {"write"},
    DeniesAll: {"credentials", "list", "write"},
    Full: {"write"},
    Ahead: {"clock"},
    Behind: set(),
    ReadsElse: {"read", "ranges", "replace", "atomic create", "atomic rename"},
    ReadsOneOff: {"ranges"},
    KeepsHalves: {"abandoned write"},
    ReadsStale: {"replace"},
    Raises: {"write"},
}
"""Each store with the checks that must fail on it, and no others."""


class UnhealthyPlugin:
    """Serves the stores, each under its name in lower case."""

    @hookimpl
    def icefield_file_systems(self) -> list[Provider]:
        return [Provider((kind.__name__.lower(),), f"unhealthy_stores:{kind.__name__}") for kind in STORES]


PLUGIN = UnhealthyPlugin()
