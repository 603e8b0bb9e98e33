"""A base class that turns any fsspec file system into one of Icefield's.

A plugin subclasses ``FsspecFileSystem``, implements ``connect`` and declares the abilities that the store really has:
about thirty lines.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from icefield.abc.file_system import FileInfo, FileSystem, FileSystemAbility, InputFile, OutputStream, PutMode
from icefield.base.secrets import scrub
from icefield.errors import AccessDenied, FileExists, FileMissing, IcefieldError, LocationRefused, StorageError
from icefield.toolkit.authority import (
    LocationParts,
    authorities_named,
    check_characters,
    credentials_refused,
    shown,
    split_location,
)
from icefield.toolkit.input_files import as_input_file

_PASSING = (ConnectionError, TimeoutError, InterruptedError)
_SLASH: Final = r"(?:/|%2f|%5c)"
_IN_NO_PATH_OF_A_URL: Final = re.compile(
    rf"[?#\\\x00-\x20\x7f]|(?:^|{_SLASH})(?:\.|%2e){{1,2}}(?=$|{_SLASH})", re.IGNORECASE
)
_OF_A_CONNECTION: Final = ("host", "port", "username", "user", "password")


class FsspecFileSystem(FileSystem):
    """An fsspec file system behind Icefield's contract.

    ``connect`` is called once, when the first file is touched. A subclass that declares ``ATOMIC_CREATE`` promises
    that its fsspec ``pipe_file(mode="create")`` is one conditional request. A subclass that declares ``ATOMIC_RENAME``
    overrides ``rename``.
    """

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(properties)
        self.__fs: Any = None

    @abstractmethod
    def connect(self) -> Any:
        """Build the fsspec file system from ``self.properties``, with listings uncached."""

    def path(self, location: str) -> str:
        """The path of the location in fsspec.

        Raises ``LocationRefused`` if fsspec takes the location for another one, and if it names a host other than the
        connected host. An fsspec file system of whole URLs, such as HTTP, takes the host from each URL. So it gets only
        URLs of hosts that the configuration names; an override must ensure the same.
        """
        parts = split_location(location)
        path = str(self.fs._strip_protocol(location))
        if "://" in path:
            self.__check_url(location, path, parts)
        elif path.strip("/") != "/".join(parts[1:]).strip("/"):
            if not parts.authority or path.strip("/") != parts.path.strip("/"):
                raise LocationRefused(
                    f"{shown(location)} is refused: fsspec takes it for {shown(path)!r}", location=location
                )
            self.__check_connection(location)
        return path

    def is_transient(self, error: Exception) -> bool:
        """Whether trying again may help after this error of the SDK."""
        return isinstance(error, _PASSING)

    @property
    def fs(self) -> Any:
        """The fsspec file system."""
        if self.__fs is None:
            self.__fs = self.connect()
        return self.__fs

    def open_input(self, location: str) -> InputFile:
        with self.translated(location):
            file = self.fs.open(self.__file_path(location), "rb")
        # Files that fsspec does not know as local may take a request for each read.
        return as_input_file(file, is_remote=not getattr(self.fs, "local_file", False))

    def put(self, location: str, data: bytes, mode: PutMode) -> str | None:
        with self.translated(location):
            if mode is PutMode.CREATE:
                self.require(FileSystemAbility.ATOMIC_CREATE, "create a file atomically")
                self.fs.pipe_file(self.__file_path(location), data, mode="create")
            elif _writes_in_place(type(self.fs)):
                with _FsspecOutput(
                    self, location, self.fs.open(self.__file_path(location), "wb", autocommit=False)
                ) as sink:
                    sink.write(data)
            else:
                self.fs.pipe_file(self.__file_path(location), data)
        return None

    def open_output(self, location: str) -> OutputStream:
        with self.translated(location):
            file = self.fs.open(self.__file_path(location), "wb", autocommit=False)
            return _FsspecOutput(self, location, file)

    def stat(self, location: str) -> FileInfo:
        with self.translated(location):
            entry = self.fs.info(self.__file_path(location))
        if entry.get("type") == "directory":
            raise FileMissing(f"{location} is no file", location=location)
        return _info(location, entry)

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        self.require(FileSystemAbility.LIST, "list files")
        root = self.__path(prefix).rstrip("/")
        for entry in self.__entries(prefix, root, shallow):
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
                self.fs.rm_file(self.__file_path(location))

    def rename(self, source: str, target: str) -> None:
        self.require(FileSystemAbility.ATOMIC_RENAME, "rename a file without replacing")

    def __path(self, location: str) -> str:
        """The path of a location. Its characters are always checked, even if a subclass overrides ``path``."""
        check_characters(location)
        return self.path(location)

    def __file_path(self, location: str) -> str:
        """The path of a file. fsspec cuts slashes at the end, which would make ``f/`` the file ``f``."""
        path = self.__path(location)
        if location.endswith("/"):
            raise LocationRefused(f"{shown(location)} is refused: it ends with a slash", location=location)
        return path

    def __check_url(self, location: str, path: str, parts: LocationParts) -> None:
        """Refuse a URL that a client would send in another form, and a host that the configuration does not name."""
        if path.rstrip("/") != location.rstrip("/") or _IN_NO_PATH_OF_A_URL.search(parts.path):
            raise LocationRefused(f"{shown(location)} is refused: it is not sent as it is", location=location)
        if not any(place[:2] == parts[:2] for place in authorities_named(self.properties, frozenset({parts.scheme}))):
            raise credentials_refused(location, f"'{parts.authority}'", "the warehouse")

    def __check_connection(self, location: str) -> None:
        """Refuse a location of another host than the connected one: fsspec would look for its path there."""
        fs = self.fs
        named = fs._get_kwargs_from_urls(location)
        wanted = {name: str(named[name]).lower() for name in _OF_A_CONNECTION if named.get(name)}
        known = {name: str(getattr(fs, name, None) or fs.storage_options.get(name)).lower() for name in wanted}
        if "host" not in wanted or wanted != known:
            raise LocationRefused(
                f"{shown(location)} is refused: {type(self).__name__} is not connected to the host that it names",
                location=location,
            )

    def __entries(self, prefix: str, root: str, shallow: bool) -> Iterator[Mapping[str, Any]]:
        """The entries of a listing, folder by folder where ``find`` is not the store's own."""
        entries = self.__find(root, shallow)
        while True:
            with self.translated(prefix):
                try:
                    entry = next(entries, None)
                except FileNotFoundError:
                    return
            if entry is None:
                return
            yield entry

    def __find(self, root: str, shallow: bool) -> Iterator[Mapping[str, Any]]:
        if shallow or _lists_flat(type(self.fs)):
            yield from self.fs.ls(root, detail=True) if shallow else self.fs.find(root, detail=True).values()
            return
        # fsspec's own walk takes a folder that cannot be listed for an empty one.
        folders = [root]
        while folders:
            folder = folders.pop()
            try:
                entries = self.fs.ls(folder, detail=True)
            except FileNotFoundError:  # missing, or removed while others were listed
                continue
            for entry in entries:
                if entry.get("type") != "directory":
                    yield entry
                elif (below := str(entry["name"]).rstrip("/")) != folder:
                    folders.append(below)

    @contextmanager
    def translated(self, location: str) -> Iterator[None]:
        """Turn the SDK's errors into Icefield's, naming the location and never an SDK's whole message."""
        try:
            yield
        except IcefieldError:
            raise
        except FileNotFoundError as error:
            raise FileMissing(f"no file {location}", location=location) from scrub(error, self.properties)
        except FileExistsError as error:
            raise FileExists(f"a file {location} is there already", location=location) from scrub(
                error, self.properties
            )
        except PermissionError as error:
            raise AccessDenied(f"no access to {location}", location=location) from scrub(error, self.properties)
        except Exception as error:
            retryable = self.is_transient(error)
            message = f"{type(self).__name__} failed on {location}: {type(error).__name__}"
            raise StorageError(message, retryable=retryable, location=location) from scrub(error, self.properties)


# Modules are compared by name, because an import of fsspec takes longer than many operations without it.
def _writes_in_place(kind: type) -> bool:
    """Whether ``pipe_file`` is fsspec's own, which opens the final name and writes there."""
    return not hasattr(kind, "_pipe_file") and kind.pipe_file.__module__ == "fsspec.spec"  # type: ignore[attr-defined]


def _lists_flat(kind: type) -> bool:
    """Whether ``find`` is the store's, and not fsspec's own, which lists folder by folder."""
    return getattr(kind, "_find", kind.find).__module__ not in ("fsspec.spec", "fsspec.asyn")  # type: ignore[attr-defined]


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
