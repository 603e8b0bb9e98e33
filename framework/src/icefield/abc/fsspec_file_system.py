"""A base class that turns any fsspec file system into one of Icefield's.

A plugin subclasses ``FsspecFileSystem``, says how to connect and which abilities the store really has, and is done
in about thirty lines.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from icefield.abc.file_system import FileInfo, FileSystem, FileSystemAbility, InputFile, OutputStream, PutMode
from icefield.errors import FileExists, FileMissing, IcefieldError, StorageError

_PASSING = (ConnectionError, TimeoutError, InterruptedError)


class FsspecFileSystem(FileSystem):
    """An fsspec file system behind Icefield's contract.

    ``connect`` is called once, when the first file is touched. A subclass that declares ``ATOMIC_CREATE`` promises
    that its fsspec ``pipe_file(mode="create")`` is one conditional request; one that declares ``ATOMIC_RENAME``
    overrides ``rename``.
    """

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(properties)
        self._fs: Any = None

    @abstractmethod
    def connect(self) -> Any:
        """Build the fsspec file system from ``self.properties``, with listings uncached."""

    def path(self, location: str) -> str:
        """The path that fsspec knows the location by."""
        return str(self.fs._strip_protocol(location))

    def is_passing(self, error: Exception) -> bool:
        """Whether trying again may help after this error of the SDK."""
        return isinstance(error, _PASSING)

    @property
    def fs(self) -> Any:
        """The fsspec file system."""
        if self._fs is None:
            self._fs = self.connect()
        return self._fs

    def open_input(self, location: str) -> InputFile:
        with self.translated(location):
            file: InputFile = self.fs.open(self.path(location), "rb")
            return file

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        with self.translated(location):
            if mode is PutMode.CREATE:
                self.require(FileSystemAbility.ATOMIC_CREATE, "create a file atomically")
                self.fs.pipe_file(self.path(location), data, mode="create")
            else:
                self.fs.pipe_file(self.path(location), data)

    def open_output(self, location: str) -> OutputStream:
        with self.translated(location):
            file = self.fs.open(self.path(location), "wb", autocommit=False)
            return _FsspecOutput(self, location, file)

    def stat(self, location: str) -> FileInfo:
        with self.translated(location):
            entry = self.fs.info(self.path(location))
        if entry.get("type") == "directory":
            raise FileMissing(f"{location} is no file", location=location)
        return _info(location, entry)

    def list(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        self.require(FileSystemAbility.LIST, "list files")
        root = self.path(prefix).rstrip("/")
        with self.translated(prefix):
            try:
                found = self.fs.ls(root, detail=True) if shallow else self.fs.find(root, detail=True).values()
            except FileNotFoundError:
                return
        for entry in found:
            name = str(entry["name"]).rstrip("/")
            if not name.startswith(root + "/"):
                continue
            location = prefix.rstrip("/") + name[len(root) :]
            if entry.get("type") == "directory":
                if shallow:
                    yield FileInfo(location + "/", 0)
            else:
                yield _info(location, entry)

    def delete_many(self, locations: Iterable[str]) -> None:
        for location in locations:
            with self.translated(location), suppress(FileNotFoundError):
                self.fs.rm_file(self.path(location))

    def rename(self, source: str, target: str) -> None:
        self.require(FileSystemAbility.ATOMIC_RENAME, "rename a file without replacing")

    @contextmanager
    def translated(self, location: str) -> Iterator[None]:
        """Turn the SDK's errors into Icefield's, naming the location and never an SDK's whole text."""
        try:
            yield
        except IcefieldError:
            raise
        except FileNotFoundError as error:
            raise FileMissing(f"no file {location}", location=location) from error
        except FileExistsError as error:
            raise FileExists(f"a file {location} is there already", location=location) from error
        except Exception as error:
            retryable = self.is_passing(error)
            message = f"{type(self).__name__} failed on {location}: {type(error).__name__}"
            raise StorageError(message, retryable=retryable, location=location) from error


def _info(location: str, entry: Mapping[str, Any]) -> FileInfo:
    modified = entry.get("mtime") or entry.get("LastModified") or entry.get("last_modified") or entry.get("created")
    stamp = getattr(modified, "timestamp", None)
    if stamp is not None:
        modified = stamp()
    modified_ms = int(modified * 1000) if isinstance(modified, int | float) else None
    return FileInfo(location, int(entry.get("size") or 0), modified_ms)


class _FsspecOutput(OutputStream):
    """A stream that fsspec keeps aside (``autocommit=False``) until it is committed or discarded."""

    def __init__(self, owner: FsspecFileSystem, location: str, file: Any) -> None:
        self._owner, self._location, self._file = owner, location, file
        self._written = 0
        self._ended = False

    def write(self, data: Any, /) -> int:
        if self._ended:
            raise ValueError(f"the stream to {self._location} is closed")
        view = memoryview(data).cast("B")
        with self._owner.translated(self._location):
            self._file.write(view)
        self._written += len(view)
        return len(view)

    def tell(self) -> int:
        return self._written

    def close(self) -> None:
        if not self._ended:
            self._ended = True
            with self._owner.translated(self._location):
                self._file.close()
                self._file.commit()

    def abort(self) -> None:
        if self._ended:
            return
        self._ended = True
        with self._owner.translated(self._location):
            self._file.close()
            self._file.discard()

    @property
    def closed(self) -> bool:
        return self._ended
