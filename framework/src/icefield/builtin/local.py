"""Local disks: ``file:///path``, ``file:/path`` or an absolute path.

A file gets its name only when it is complete: it is written under a temporary name in the same folder, flushed to disk,
and linked. ``link`` refuses an existing name, unlike POSIX ``rename``, and never shows a partial file, unlike
``O_EXCL``.
"""

from __future__ import annotations

import errno
import os
import stat as stats
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar
from uuid import uuid4

import pyarrow as pa

from icefield.abc import FileInfo, FileSystem, FileSystemAbility, InputFile, OutputStream, PutMode
from icefield.abc.local_files import path_for
from icefield.errors import (
    AccessDenied,
    FileExists,
    FileMissing,
    IcefieldError,
    LocationRefused,
    NotDurable,
    StorageError,
)
from icefield.storage import local_path
from icefield.toolkit import ArrowInput

T = TypeVar("T")

TEMPORARY_SUFFIX = ".icefield-tmp"
"""The suffix of files that were never published; orphan removal deletes them."""

_REFUSALS: Final = frozenset(
    getattr(errno, name)
    for name in (
        *("EACCES", "EPERM", "EROFS", "ENOENT", "ENOTDIR", "EISDIR", "EEXIST", "ENOTEMPTY", "ELOOP", "EMLINK", "EXDEV"),
        *("ENAMETOOLONG", "ENOSPC", "EDQUOT", "EFBIG", "EINVAL", "ENOSYS", "ENOTSUP", "EOPNOTSUPP"),
    )
    if hasattr(errno, name)
)
"""Errors that prove that nothing was done.

After any other error a network disk may have done the operation, or still do it.
"""

_FOLDER_TRIES: Final = 3
_FLUSHES_NO_FOLDERS: Final = frozenset({errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})


class LocalFileSystem(FileSystem):
    """The file system of this machine. The property ``file.sync`` = ``false`` leaves flushing to the system."""

    abilities = frozenset({FileSystemAbility.ATOMIC_CREATE, FileSystemAbility.ATOMIC_RENAME, FileSystemAbility.LIST})

    def open_input(self, location: str) -> InputFile:
        path = local_path(location)
        with translated(location):
            if not stats.S_ISREG(os.stat(path).st_mode):
                raise FileMissing(f"{location} is no file", location=location)
            return _LocalInput(path, location)

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        target = local_path(location)
        with translated(location):
            temporary, identity = self._write_temporary(target, data)
            with self._flushed(target):
                try:
                    if mode is PutMode.CREATE:
                        _link(temporary, target)
                    else:
                        _replace(temporary, target, identity)
                finally:
                    with suppress(OSError):  # published or refused: a leftover name must not change the outcome
                        os.unlink(temporary)

    def open_output(self, location: str) -> OutputStream:
        target = local_path(location)
        with translated(location):
            return _LocalOutput(self, location, target, *self._open_temporary(target))

    def stat(self, location: str) -> FileInfo:
        found = _look(location)
        if found is None:
            raise FileMissing(f"no file {location}", location=location)
        return found

    def stat_many(self, locations: Sequence[str]) -> list[FileInfo | None]:
        return [_look(location) for location in locations]

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        yield from _walk(local_path(prefix).rstrip("/") or "/", prefix.rstrip("/"), shallow)

    def delete_many(self, locations: Iterable[str]) -> None:
        for location in locations:
            with translated(location), suppress(FileNotFoundError):
                os.unlink(local_path(location))

    def rename(self, source: str, target: str) -> None:
        with translated(source, target):
            self._in_folder(local_path(target), lambda: self._move(local_path(source), local_path(target)))

    def credentials(self, location: str) -> str | None:
        return f"those of the user with the id {os.geteuid()}" if hasattr(os, "geteuid") else None

    def remove_empty_folder(self, location: str) -> None:
        with suppress(OSError, StorageError):
            os.rmdir(local_path(location))

    @property
    def _syncs(self) -> bool:
        return self.properties.get("file.sync", "true").lower() != "false"

    def _write_temporary(self, target: str, data: bytes) -> tuple[str, os.stat_result]:
        temporary, descriptor = self._open_temporary(target)
        try:
            _write_all(descriptor, data)
            if self._syncs:
                os.fsync(descriptor)
            return temporary, os.fstat(descriptor)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        finally:
            os.close(descriptor)

    def _open_temporary(self, target: str) -> tuple[str, int]:
        temporary = _temporary(target)
        return temporary, self._in_folder(target, lambda: _create(temporary))

    def _move(self, source: str, target: str) -> None:
        with self._flushed(target):
            _link(source, target)
            with suppress(OSError):  # the file has its new name: no later step may fail
                os.unlink(source)

    def _in_folder(self, path: str, make: Callable[[], T]) -> T:
        """Make the folder of a path, then something in it; again if another process removed the empty folder."""
        for _ in range(_FOLDER_TRIES):
            with suppress(FileNotFoundError):
                self._make_folder(os.path.dirname(path))
                return make()
        self._make_folder(os.path.dirname(path))
        return make()

    def _make_folder(self, path: str) -> None:
        """Make a folder and those above it, and make their names durable: a file is no safer than its folder."""
        parent = os.path.dirname(path)
        if os.path.isdir(path) or parent == path:
            return
        self._make_folder(parent)
        try:
            os.mkdir(path)
        except FileExistsError:  # somebody was faster, and may not have flushed it yet
            if os.path.lexists(path) and not os.path.isdir(path):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from None
        self._flush_folder(parent)

    @contextmanager
    def _flushed(self, path: str) -> Iterator[None]:
        """Make the file name that the block creates durable, also if an error leaves open whether it was created.

        Raises ``NotDurable``.
        """
        refused = False
        try:
            yield
        except OSError as error:
            refused = not isinstance(error, StorageError)
            raise
        finally:
            if not refused:
                try:
                    self._flush_folder(os.path.dirname(path))
                except Exception as error:
                    raise NotDurable(
                        f"{path} may be gone after a loss of power: its folder could not be flushed", location=path
                    ) from error

    def _flush_folder(self, path: str) -> None:
        if not self._syncs:
            return
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except PermissionError:  # a folder that may be written into and not be read
            return
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in _FLUSHES_NO_FOLDERS:
                raise
        finally:
            with suppress(OSError):
                os.close(descriptor)


def _look(location: str) -> FileInfo | None:
    """Size and time of a file, or None without a file: no error, because most commits look for unused names."""
    path = local_path(location)
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _failure(f"cannot use {location}", error, location) from error
    if not stats.S_ISREG(found.st_mode):
        return None
    return FileInfo(location, found.st_size, found.st_mtime_ns // 1_000_000)


@contextmanager
def translated(location: str, target: str | None = None) -> Iterator[None]:
    """Turn ``OSError`` into the contract's errors, and into ``LocationRefused`` for an impossible file name."""
    try:
        yield
    except IcefieldError:
        raise
    except FileNotFoundError as error:
        raise FileMissing(f"no file {location}", location=location) from error
    except FileExistsError as error:
        raise FileExists(f"a file {target or location} is there already", location=target or location) from error
    except OSError as error:
        raise _failure(f"cannot use {location}", error, location) from error


def _link(source: str, target: str) -> None:
    """Link a file under a second name, unless the name exists.

    Over NFS the reply may be lost after the link was made, and the repeated request then finds its own name. If both
    names refer to one file, the link was made: see open(2), "O_EXCL". Raises a retryable ``StorageError`` if the
    outcome is unknown.
    """
    try:
        os.link(source, target)
    except OSError as error:
        try:
            linked = os.path.samefile(source, target)
        except FileNotFoundError:
            linked = False
        except OSError as again:  # a file that cannot be looked at may be ours
            raise _left_open(again, target) from error
        if not linked:
            raise _left_open(error, target) from error


def _replace(source: str, target: str, identity: os.stat_result) -> None:
    """Rename a file onto a name that may exist, like ``_link``; ``identity`` is the ``stat`` result of the file."""
    try:
        os.replace(source, target)
    except OSError as error:
        with suppress(OSError):
            if os.path.samestat(os.stat(target), identity):
                return
        raise _left_open(error, target) from error


def _left_open(error: OSError, location: str) -> OSError:
    """The error to raise for a failed publishing step: a refusal unchanged, else a retryable ``StorageError``."""
    if error.errno in _REFUSALS:
        return error
    said = os.strerror(error.errno) if error.errno else error
    return StorageError(f"cannot tell whether {location} is published: {said}", retryable=True, location=location)


def _failure(what: str, error: OSError, location: str) -> IcefieldError:
    if error.errno == errno.ENAMETOOLONG:
        return LocationRefused(f"{what}: no file can have so long a name", location=location)
    kind = AccessDenied if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) else StorageError
    return kind(f"{what}: {os.strerror(error.errno) if error.errno else error}", location=location)


def _temporary(target: str) -> str:
    folder, name = os.path.split(target)
    return os.path.join(folder, f".{name[:100]}.{uuid4().hex}{TEMPORARY_SUFFIX}")


def _create(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)


def _write_all(descriptor: int, data: Any) -> int:
    view = memoryview(data).cast("B")
    written = 0
    while written < len(view):
        written += os.write(descriptor, view[written:])
    return written


def _walk(path: str, location: str, shallow: bool) -> Iterator[FileInfo]:
    try:
        with os.scandir(path) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise _failure(f"cannot list {location}", error, location) from error
    for entry in entries:
        below = f"{location}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            if shallow:
                yield FileInfo(below + "/", 0)
            else:
                yield from _walk(entry.path, below, shallow)
        elif entry.is_dir():
            # A link to a folder is not a file: deleting it would make everything behind it unreachable. It is not
            # followed either, since it may form a cycle.
            if shallow:
                yield FileInfo(below + "/", 0)
        else:
            with suppress(FileNotFoundError):  # deleted between listing and looking
                size = entry.stat()
                yield FileInfo(below, size.st_size, size.st_mtime_ns // 1_000_000)


class _LocalInput(ArrowInput):
    """pyarrow's own file, so that Arrow's readers need no Python to read it."""

    def __init__(self, path: str, location: str) -> None:
        super().__init__(pa.OSFile(path, "rb"))
        self._path, self._location = path, location

    @contextmanager
    def local_path(self, max_bytes: int) -> Iterator[str]:
        self.tell()  # raises ``ValueError`` after ``close``
        with translated(self._location):
            os.stat(self._path)  # it may have been deleted
        yield self._path


class _LocalOutput(OutputStream):
    """Writes under a temporary name; ``close`` flushes and links."""

    def __init__(self, owner: LocalFileSystem, location: str, target: str, temporary: str, descriptor: int) -> None:
        self._owner, self._location, self._target, self._temporary = owner, location, target, temporary
        self._descriptor: int | None = descriptor
        self._written, self._process = 0, os.getpid()

    def write(self, data: Any, /) -> int:
        if self._descriptor is None:
            raise ValueError(f"the stream to {self._location} is closed")
        with translated(self._location):
            count = _write_all(self._descriptor, data)
        self._written += count
        return count

    def adoptable_path(self) -> str:
        return path_for(self, os.path.dirname(self._target))[0]

    def adopt(self, path: str, /) -> None:
        with suppress(OSError):  # a file of another disk or user is copied
            found = os.lstat(path)
            alone = stats.S_ISREG(found.st_mode) and found.st_nlink == 1  # no other name can change it later
            if alone and not self._written and self._descriptor is not None:
                os.chmod(path, stats.S_IMODE(os.fstat(self._descriptor).st_mode))
                with open(path, "ab") as file:
                    _replace(path, self._temporary, os.fstat(file.fileno()))
                    os.dup2(file.fileno(), self._descriptor, inheritable=False)
                self._written = found.st_size
                return
        super().adopt(path)

    def tell(self) -> int:
        return self._written

    def close(self) -> None:
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        with translated(self._location):
            try:
                if self._owner._syncs:
                    os.fsync(descriptor)
                os.close(descriptor)
                with self._owner._flushed(self._target):
                    _link(self._temporary, self._target)
            finally:
                with suppress(OSError):
                    os.unlink(self._temporary)

    def abort(self) -> None:
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        os.close(descriptor)
        with suppress(OSError):
            os.unlink(self._temporary)

    def __del__(self) -> None:
        # A forgotten stream publishes nothing. In a forked process, it keeps the files of the parent.
        if getattr(self, "_descriptor", None) is not None and self._process == os.getpid():
            self.abort()

    @property
    def closed(self) -> bool:
        return self._descriptor is None
