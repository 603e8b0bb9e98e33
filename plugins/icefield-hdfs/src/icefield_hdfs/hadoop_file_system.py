"""HDFS as a file system of Icefield, for every client.

The name node renames in one step that never replaces a file: ``ATOMIC_RENAME``. A file is visible from its creation on,
so creation is not atomic, and each file is written under a temporary name.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Final
from uuid import uuid4

from icefield.abc import FileInfo, FileSystem, FileSystemAbility, InputFile, OutputStream, PutMode
from icefield.errors import (
    AccessDenied,
    FileExists,
    FileMissing,
    IcefieldError,
    InvalidArgument,
    LocationRefused,
    StorageError,
)
from icefield.toolkit import Backoff, LocationParts, split_host, split_location

from icefield_hdfs.client import Client, HdfsFailure, Status
from icefield_hdfs.streams import HdfsInput, HdfsOutput

TEMPORARY_SUFFIX: Final = ".icefield-tmp"
"""Names ending so are of files that were never published; orphan removal takes them."""

_SCHEMES: Final = ("hdfs", "viewfs", "webhdfs", "swebhdfs")
_THREADS: Final = 8
_DEEPEST: Final = 1000  # the limit of a name node
_FOLDER_TRIES: Final = 3
_RETRIES: Final = 2
_BACKOFF: Final = Backoff(0.1, 0.5, growth=5)


class HadoopFileSystem(FileSystem):
    """Files by a client of HDFS; a subclass says which."""

    abilities = frozenset({FileSystemAbility.ATOMIC_RENAME, FileSystemAbility.LIST, FileSystemAbility.REMOTE})

    @abstractmethod
    def client(self, location: str) -> Client:
        """The client of the name node that the location names."""

    @abstractmethod
    def check(self, location: str) -> None:
        """Raise ``LocationRefused`` for a host to which no credential goes. Nothing is asked."""

    def open_input(self, location: str) -> InputFile:
        return HdfsInput(location, lambda: self._client(location).open(_file_path_of(location)), self.translated).open()

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        if mode is PutMode.CREATE:
            self.require(FileSystemAbility.ATOMIC_CREATE, "create a file atomically: use the commit strategy rename")
        with self.translated(location):
            client = self._client(location)
            temporary = _temporary(_file_path_of(location))
            writer = client.create(temporary)
            try:
                writer.write(data)
                writer.close()
                self._replace(client, temporary, _file_path_of(location))
            except BaseException:
                writer.give_up()
                with suppress(Exception):  # the caller needs the first error, not an error of the clean-up
                    client.delete(temporary)
                raise

    def open_output(self, location: str) -> OutputStream:
        path = _file_path_of(location)
        temporary = _temporary(path)
        with self.translated(location):
            client = self._client(location)
            writer = client.create(temporary)

        def publish(size: int) -> None:
            self._publish(client, location, temporary, path, size)

        return HdfsOutput(location, writer, publish, lambda: self._discard(client, temporary), self.translated)

    def stat(self, location: str) -> FileInfo:
        with self.translated(location):
            found = self._client(location).status(_file_path_of(location))
        if found.is_folder:
            raise FileMissing(f"{location} is no file", location=location)
        return FileInfo(location, found.size, found.modified_ms)

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        root = path_of(prefix).rstrip("/")
        above = prefix.rstrip("/")
        folders = [root]
        while folders:
            for found in self._children(prefix, folders.pop()):
                if found.is_folder and not shallow:
                    if found.path.count("/") > _DEEPEST:
                        said = f"{prefix} is listed with folders more than {_DEEPEST} levels deep, beyond HDFS"
                        raise StorageError(said, location=prefix)
                    folders.append(found.path)
                else:
                    yield _info(above + found.path[len(root) :], found)

    def delete_many(self, locations: Iterable[str]) -> None:
        doomed = [*locations]
        if len(doomed) <= 2:
            for location in doomed:
                self._delete(location)
            return
        with ThreadPoolExecutor(min(_THREADS, len(doomed)), thread_name_prefix="icefield-hdfs") as pool:
            for _ in pool.map(self._delete, doomed):
                pass

    def rename(self, source: str, target: str) -> None:
        with self.translated(source, target):
            here, there = (authority_of(location)[1].lower() for location in (source, target))
            if here != there:
                for location in (source, target):
                    self.check(location)
            if here and there and here != there:
                raise InvalidArgument(f"{target} is no new name of {source}: it is on another host", location=target)
            self._rename(self._client(source), _file_path_of(source), _file_path_of(target))

    def remove_empty_folder(self, location: str) -> None:
        with suppress(Exception):
            client = self._client(location)
            if client.status(path_of(location)).is_folder:
                client.delete(path_of(location))  # refused if the folder is not empty

    @contextmanager
    def translated(self, location: str, target: str | None = None) -> Iterator[None]:
        """Turn a client's errors into Icefield's."""
        try:
            yield
        except IcefieldError:
            raise
        except FileNotFoundError as error:
            raise FileMissing(f"no file {location}", location=location) from error
        except FileExistsError as error:
            taken = target or location
            raise FileExists(f"a file {taken} is there already", location=taken) from error
        except HdfsFailure as error:
            message = f"HDFS failed on {location}: {error.said}"
            kind = AccessDenied if error.denied else StorageError
            raise kind(message, retryable=error.passing, location=location) from error

    def _client(self, location: str) -> Client:
        return self.client(location)

    def _children(self, prefix: str, folder: str) -> Iterator[Status]:
        """Iterate over the children of a folder; a missing folder or a file has none."""
        with self.translated(prefix):
            try:
                for found in self._client(prefix).children(folder or "/"):
                    if found.path.startswith(folder + "/"):
                        yield found
            except FileNotFoundError:
                return

    def _delete(self, location: str) -> None:
        with self.translated(location):
            self._client(location).delete(_file_path_of(location))

    def _discard(self, client: Client, path: str) -> None:
        """Delete a temporary file that no other process knows."""
        with self.translated(path):
            client.delete(path)

    def _rename(self, client: Client, source: str, target: str) -> None:
        """Rename, creating the folder of the target where it is missing, or where another process removed it."""
        for _ in range(_FOLDER_TRIES):
            with suppress(FileNotFoundError):
                client.rename(source, target)
                return
            # Either the source or the folder of the target is missing. A client that repeats a request after a lost
            # reply also reports a missing source.
            client.status(source)
            client.make_folder(target.rpartition("/")[0] or "/")
        client.rename(source, target)

    def _replace(self, client: Client, temporary: str, path: str) -> None:
        """Rename a file and replace the target. Nobody else moves the source: if it is gone, the rename succeeded."""
        try:
            client.replace(temporary, path)
        except (FileNotFoundError, HdfsFailure) as error:
            if isinstance(error, HdfsFailure) and not error.passing:
                raise
            if _is_there(client, temporary):
                raise

    def _publish(self, client: Client, location: str, temporary: str, path: str, size: int) -> None:
        """Rename a temporary file to its own final name. After a lost reply, look for the file, or rename it again."""
        for wait in (*_BACKOFF.waits(_RETRIES), None):
            try:
                with self.translated(location):
                    client.rename(temporary, path)
                return
            except (FileMissing, StorageError) as error:
                if isinstance(error, StorageError) and not error.retryable:
                    raise
                if self._arrived(client, location, temporary, path, size):
                    return
                if wait is None or isinstance(error, FileMissing):
                    raise
                time.sleep(wait)

    def _arrived(self, client: Client, location: str, temporary: str, path: str, size: int) -> bool:
        with self.translated(location):
            return not _is_there(client, temporary) and client.status(path).size == size


def _is_there(client: Client, path: str) -> bool:
    try:
        client.status(path)
    except FileNotFoundError:
        return False
    return True


def path_of(location: str) -> str:
    """The path of a location, to the letter: nothing is decoded."""
    return f"/{_parts_of(location).path}"


def _file_path_of(location: str) -> str:
    """The path of a file. HDFS cuts a slash at the end, which would make ``f/`` the file ``f``."""
    if location.endswith("/"):
        raise LocationRefused(f"{location} is refused: it ends with a slash", location=location)
    return path_of(location)


def authority_of(location: str) -> tuple[str, str]:
    """Scheme and authority of a location; the authority may be empty, as in ``hdfs:/path``, else it is a host's."""
    scheme, authority, _ = _parts_of(location)
    if scheme not in _SCHEMES:  # by a file IO none other comes here
        raise LocationRefused(f"{location} is refused: HDFS has the schemes {', '.join(_SCHEMES)}", location=location)
    if authority:
        split_host(authority, location)
    return scheme, authority


def _parts_of(location: str) -> LocationParts:
    _, separator, rest = location.partition(":")
    if not separator or not rest.startswith("/"):
        raise InvalidArgument(f"{location} is no location of HDFS: write hdfs://namenode:8020/path")
    return split_location(location)


def _temporary(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"{folder}/.{name[:100]}.{uuid4().hex}{TEMPORARY_SUFFIX}"


def _info(location: str, found: Status) -> FileInfo:
    return FileInfo(location + "/", 0) if found.is_folder else FileInfo(location, found.size, found.modified_ms)
