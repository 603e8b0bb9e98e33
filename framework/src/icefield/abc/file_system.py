"""The contract of a file system: reading, writing and listing of files, and the promises of a store.

Locations are full URIs, passed as the table holds them and never normalised. A file is written once and never changed;
nothing is assumed of directories. A store's promises are declared in ``abilities``, and a check-then-write never
replaces an atomic step.

Locations come from tables, which are not trusted. They are parsed by ``split_location`` of ``icefield.toolkit``, which
refuses ambiguous locations. Credentials are bound to the hosts, accounts and buckets that the configuration names.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from stat import S_ISREG
from typing import Any, ClassVar, Self

import pyarrow as pa

from icefield.abc.access import FileAccess
from icefield.abc.encryption import FileKey
from icefield.abc.local_files import path_for, reported
from icefield.base.concurrency import map_ahead, worker_count
from icefield.errors import FileMissing, InvalidArgument, StorageError, UnsupportedFeature

_STEP, _STEPS = 4 << 20, 4  # to copy a file: the bytes of a read, and the reads at once


class FileSystemAbility(Enum):
    """A declared property of a file system; the kit tests all of them that are promises."""

    ATOMIC_CREATE = "atomic-create"
    """``put(..., CREATE)``: the file appears whole or not at all, and only if no file has that name."""

    ATOMIC_RENAME = "atomic-rename"
    """``rename`` is one atomic step and refuses to replace a file that is there."""

    LIST = "list"
    """``list_files`` yields every file below a prefix."""

    REMOTE = "remote"
    """Requests take milliseconds, so threads send several at once. A hint, not a promise."""


class PutMode(Enum):
    """The behaviour of ``put`` if the file exists."""

    CREATE = "create"
    """Refuse with ``FileExists``. Needs ``ATOMIC_CREATE``."""

    OVERWRITE = "overwrite"
    """Replace whole. For ``version-hint.text`` and nothing else."""


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file: its location and size in bytes, and its modification time (ms) and entity tag, if the store has them.

    ``etag`` is None unless the store changes it with the content of the name, as object stores do. It has no quotes,
    unlike the HTTP header, so that ``stat`` and ``list_files`` give the same string.
    """

    location: str
    size: int
    modified_ms: int | None = None
    etag: str | None = None


class InputFile(ABC):
    """A file open for reading, which never changes: its size, reads at any offset, and a position to read on from.

    A subclass gives ``size``, ``read_at``, ``close`` and ``closed``. The other methods work as in Python's files: the
    position begins at 0 and belongs to one thread, while reads by offset may come from several at once. After ``close``
    every read raises ``ValueError``.
    """

    __position: int = 0
    key: FileKey | None = None
    """The key of a file that its format decrypts; None for a plain file, and for a stream that decrypts."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The size of the file in bytes."""

    @abstractmethod
    def read_at(self, offset: int, length: int) -> bytes:
        """The ``length`` bytes from ``offset`` on; fewer only at the end of the file, none behind it.

        Safe from several threads at once. Leaves the position alone. Raises ``ValueError`` for a negative number.
        """

    @abstractmethod
    def close(self) -> None:
        """Release the file; a second call does nothing."""

    @property
    @abstractmethod
    def closed(self) -> bool:
        """Whether the file was closed."""

    @property
    def is_remote(self) -> bool:
        """Whether a read may be a request over a network: formats then read more at a time, and compare checksums."""
        return False

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """The result of ``read_at`` for each offset and length, in order; a remote file requests them all at once."""
        return [self.read_at(offset, length) for offset, length in ranges]

    def arrow_file(self) -> pa.NativeFile:
        """The file as pyarrow's readers take it, with a position of its own; closing it may close this file.

        Where pyarrow knows the storage itself, a subclass gives pyarrow's own file, which is read without Python.
        """
        return pa.PythonFile(_ArrowView(self), mode="r")

    @contextmanager
    def local_path(self, max_bytes: int) -> Iterator[str]:
        """A path on the local disk during a ``with`` block, for a library that opens files itself.

        The path may name the stored file, or a copy that is deleted after the block: do not write to it. It stays valid
        after ``close``. Raises ``UnsupportedFeature`` if a copy would need more than ``max_bytes`` of the disk.
        """
        self.__check_open()
        if self.size > max_bytes:
            raise UnsupportedFeature(f"the file has {self.size:,} bytes, and at most {max_bytes:,} are copied")
        path, delete = path_for(self)
        try:
            with reported("copy a file to the local disk"), open(path, "xb") as copy:
                ranges = [(start, min(_STEP, self.size - start)) for start in range(0, self.size, _STEP)]
                for first in range(0, len(ranges), _STEPS):
                    copy.writelines(self.read_ranges(ranges[first : first + _STEPS]))
                if copy.tell() != self.size:
                    raise StorageError(f"the file ended after {copy.tell():,} of {self.size:,} bytes")
            yield path
        finally:
            delete()

    def read(self, size: int | None = -1, /) -> bytes:
        """The next ``size`` bytes, fewer at the end of the file; all that are left when it is negative or None."""
        if size is None or size < 0:
            size = max(0, self.size - self.__position)
        data = self.read_at(self.__position, size)
        self.__position += len(data)
        return data

    def readinto(self, buffer: bytearray | memoryview, /) -> int:
        """Fill a buffer; return the number of bytes read."""
        target = memoryview(buffer).cast("B")
        data = self.read(len(target))
        target[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Move to an offset from the start (0), the position (1) or the end (2); return the new position."""
        self.__check_open()
        if whence == os.SEEK_END:
            offset += self.size
        elif whence == os.SEEK_CUR:
            offset += self.__position
        elif whence != os.SEEK_SET:
            raise ValueError(f"whence is 0, 1 or 2, not {whence}")
        if offset < 0:
            raise ValueError(f"the offset {offset} is before the start of the file")
        self.__position = offset
        return offset

    def tell(self) -> int:
        """The position, in bytes from the start."""
        self.__check_open()
        return self.__position

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

    def __exit__(self, *_: object) -> None:
        self.close()

    def __check_open(self) -> None:
        if self.closed:
            raise ValueError("the file is closed")


class _ArrowView(InputFile):
    """A position of its own in an input file, which it does not close: pyarrow seeks and then reads."""

    def __init__(self, source: InputFile) -> None:
        self._source = source

    @property
    def size(self) -> int:
        return self._source.size

    def read_at(self, offset: int, length: int) -> bytes:
        return self._source.read_at(offset, length)

    def close(self) -> None:
        """Do nothing: the caller that opened the file closes it."""

    @property
    def closed(self) -> bool:
        return self._source.closed


class OutputStream(ABC):
    """A sequential stream to a new file.

    ``close`` publishes the file whole and durable; ``abort`` leaves nothing. Leaving a ``with`` block by an
    exception aborts. After either, further writes raise ``ValueError``; a second ``close`` or ``abort`` does nothing.
    """

    key: FileKey | None = None
    """The key with which the format encrypts the file; None for a plain file, and for a stream that encrypts."""

    @abstractmethod
    def write(self, data: Any, /) -> int:
        """Append a bytes-like object; return the number of bytes taken, always all of them."""

    def adoptable_path(self) -> str:
        """A path where a file for ``adopt`` can be written. A file that is not adopted is deleted with this stream."""
        return path_for(self)[0]

    def adopt(self, path: str, /) -> None:
        """Append a finished local file and delete it, also after an error; a stream to a local disk may rename it.

        Raises ``ValueError``, and keeps the file, if the stream is closed or ``path`` names no regular file.
        """
        if self.closed:
            raise ValueError("the stream is closed")
        if not (os.path.lexists(path) and S_ISREG(os.lstat(path).st_mode)):
            raise InvalidArgument(f"{path} is no regular file")
        try:
            with reported(f"read {path}"), open(path, "rb") as file:
                while data := file.read(_STEP):
                    self.write(data)
        finally:
            with suppress(OSError):
                os.unlink(path)

    @abstractmethod
    def tell(self) -> int:
        """The number of bytes written so far."""

    @abstractmethod
    def close(self) -> None:
        """Publish the file: complete, durable, visible under its name."""

    @abstractmethod
    def abort(self) -> None:
        """Discard the file: nothing remains visible under its name."""

    @property
    @abstractmethod
    def closed(self) -> bool:
        """Whether ``close`` or ``abort`` has ended the stream."""

    # pyarrow's writers need these methods in any Python file.
    def flush(self) -> None:  # noqa: B027 -- only close makes bytes visible
        """Do nothing: only ``close`` makes bytes visible."""

    def readable(self) -> bool:
        """False: a stream is only written."""
        return False

    def writable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """False: bytes come one after another."""
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


class FileSystem(ABC):
    """Opens, writes, lists and deletes files by URI.

    An instance is built from string properties alone and pickled as these properties, so that an executor opens its own
    connections.

    Credentials are sent only to the hosts, accounts and buckets that the configuration names. These are the endpoint in
    the properties or the store's default; for a location with a host or account in it, those of ``authorities_named``.
    Any other location raises ``LocationRefused`` before a request is sent or a name is resolved.

    Every method raises ``StorageError`` (with ``retryable``) when the store fails, ``AccessDenied`` when a permission
    is missing, and never an error class of an SDK.
    """

    contract: ClassVar[int] = 1
    """The version of this contract. A plugin states the versions that it fulfils in its ``Provider``."""

    @property
    def abilities(self) -> frozenset[FileSystemAbility]:
        """The declared abilities, usually a class attribute: ``abilities = frozenset({...})``.

        Instances may differ, for example by a setting of the store. Read it from an instance, not from the class.
        """
        return frozenset()

    ability_properties: ClassVar[Mapping[FileSystemAbility, str]] = {}
    """The property, ``"name=value"``, that tells the file system that its store lacks an ability, if there is one.

    ``icefield doctor`` names this property if a store breaks the promise of an ability.
    """

    access: FileAccess | None = None
    """Renews the credentials in the properties, or signs requests. The code that builds the file system sets it.

    Each request checks ``due`` first, because ``properties`` may wait for a service.
    """

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self.properties: dict[str, str] = dict(properties or {})

    def __reduce__(self) -> tuple[Any, ...]:
        given = type(self), (self.properties,)
        return given if self.access is None else (*given, {"access": self.access})

    def __repr__(self) -> str:  # properties may hold credentials
        return f"<{type(self).__module__}.{type(self).__qualname__}>"

    @abstractmethod
    def open_input(self, location: str) -> InputFile:
        """Open a file for reading. Raises ``FileMissing``.

        The result may also be any other seekable binary file. ``FileIO`` wraps it, as ``as_input_file`` of
        ``icefield.toolkit`` does. The wrapped file counts as remote if ``REMOTE`` is declared.
        """

    @abstractmethod
    def put(self, location: str, data: bytes, mode: PutMode) -> str | None:
        """Write a whole small file in one step, durable on return; the entity tag that ``stat`` will give.

        None unless the store's reply contains the tag: no extra request is sent for it.

        With ``CREATE``, raises ``FileExists`` when the name is taken, and the file appears whole or not at all; a
        file system without ``ATOMIC_CREATE`` raises ``UnsupportedFeature`` instead. When the outcome of a create is
        not known (the reply was lost) ``FileExists`` may name the file that this very call wrote: the caller
        compares the bytes.
        """

    @abstractmethod
    def open_output(self, location: str) -> OutputStream:
        """Open a stream to a new file under a name that the caller knows to be unique."""

    @abstractmethod
    def stat(self, location: str) -> FileInfo:
        """Return size and time of a file. Raises ``FileMissing``."""

    def stat_many(self, locations: Sequence[str]) -> list[FileInfo | None]:
        """Return size and time of a few files, in their order; None for a missing file.

        Sends one request per file, in parallel for a ``REMOTE`` store. The results are not one consistent snapshot.
        """

        def look(location: str) -> FileInfo | None:
            try:
                return self.stat(location)
            except FileMissing:
                return None

        if FileSystemAbility.REMOTE not in self.abilities or len(locations) < 2:
            return [look(location) for location in locations]
        return [*map_ahead(locations, look, worker_count(None, waiting=True))]

    @abstractmethod
    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        """Yield every file below the folder ``prefix``, recursively, in any order.

        With ``shallow``, yield only its direct children; a folder's location then ends in ``/`` and its size is 0. A
        prefix with nothing below it yields nothing. Locations come back under the scheme and authority of ``prefix``.
        Without ``LIST``, raises ``UnsupportedFeature``.
        """

    @abstractmethod
    def delete_many(self, locations: Iterable[str]) -> None:
        """Delete files; a missing file is no error."""

    @abstractmethod
    def rename(self, source: str, target: str) -> None:
        """Rename without replacing. Raises ``FileExists`` if ``target`` exists, ``FileMissing`` without ``source``.

        Without ``ATOMIC_RENAME``, raises ``UnsupportedFeature``.
        """

    def credentials(self, location: str) -> str | None:
        """A description of the credentials for a location and of their source, without secrets.

        None without credentials. Meant for finding configuration errors; raises as other methods do.
        """
        return None

    def remove_empty_folder(self, location: str) -> None:  # noqa: B027 -- most stores have no folders
        """Remove a folder with nothing in it, where the store has folders. Best effort: raises nothing."""

    def require(self, ability: FileSystemAbility, what: str) -> None:
        """Raise ``UnsupportedFeature`` unless the ability is declared."""
        if ability not in self.abilities:
            raise UnsupportedFeature(f"{type(self).__name__} cannot {what}: it does not declare {ability.name}")
