"""Decoded manifests in a folder of this machine, so that a new process need not fetch and decode them again.

A file holds a checksum and an Arrow IPC stream. Its name is a hash of everything that its contents depend on. Files
are read whole and never changed, so that any process may delete them at any time.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, Final
from uuid import uuid4
from zlib import crc32

import pyarrow as pa

from icefield.base.concurrency import reset_after_fork
from icefield.errors import InvalidArgument
from icefield.manifest import schemas as f
from icefield.manifest.columns import struct_array
from icefield.manifest.entries import ManifestEntries, StatisticKey
from icefield.manifest.manifest_file import ManifestFile

CACHE_FOLDER: Final = "io.manifest.cache-folder"
"""Property of a catalog: the folder for decoded manifests; none by default."""

CACHE_FOLDER_BYTES: Final = "io.manifest.cache-folder-bytes"
_DEFAULT_BYTES: Final = 2 << 30

_LAYOUT: Final = b"icefield manifest 1\n"
_CHECKSUM_BYTES: Final = 4
_TOUCHED_AFTER: Final = 3600  # seconds: the order of deletion need not be exact
_SHARE_KEPT: Final = 0.75
_FOLDERS: Final[dict[tuple[str, int], DiskCache]] = {}
_CAN_BE_PRIVATE: Final = {os.open, os.stat, os.unlink, os.rename, os.utime} <= os.supports_dir_fd


def disk_cache(properties: Mapping[str, str]) -> DiskCache | None:
    """The folder that a catalog's properties name, shared in this process; None if they name none.

    Raises ``InvalidArgument`` for a size that is no positive number.
    """
    folder = properties.get(CACHE_FOLDER)
    if not folder:
        return None
    given = properties.get(CACHE_FOLDER_BYTES, str(_DEFAULT_BYTES))
    if not given.isdecimal() or not int(given):
        raise InvalidArgument(f"'{CACHE_FOLDER_BYTES}' is a positive number of bytes, not {given!r}")
    key = os.path.abspath(Path(folder).expanduser()), int(given)
    return _FOLDERS.get(key) or _FOLDERS.setdefault(key, DiskCache(*key))


class DiskCache:
    """A folder with decoded manifests, which only this user can open. No error of it ever reaches a scan.

    Beyond ``max_bytes``, the files that were not used for the longest time are deleted.
    """

    def __init__(self, folder: str, max_bytes: int) -> None:
        self._folder, self._max_bytes = folder, max_bytes
        self._opened: int | None = None
        self._is_usable = True
        self._begin()
        reset_after_fork(self._begin)

    def _begin(self) -> None:
        self._lock = Lock()
        self._unchecked = self._max_bytes  # the first file of a process checks the size of the folder

    def load(self, name: Any, manifest: ManifestFile) -> ManifestEntries | None:
        """The entries that were stored under a name; None if there are none, or if the file is damaged."""
        folder = self._descriptor()
        if folder is None:
            return None
        file = _file_name(name)
        try:
            descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        except OSError:
            return None
        try:
            with open(descriptor, "rb") as opened:
                data = opened.read()
                used = os.fstat(descriptor).st_mtime
            entries = _decode(data, manifest)
            if time.time() - used > _TOUCHED_AFTER:
                os.utime(file, dir_fd=folder)
            return entries
        except OSError:
            return None
        except (ValueError, KeyError, pa.ArrowException):
            self._delete(file)
            return None

    def store(self, name: Any, entries: ManifestEntries) -> None:
        """Store entries under a name."""
        folder = self._descriptor()
        if folder is None:
            return
        file = _file_name(name)
        with suppress(FileNotFoundError):
            os.stat(file, dir_fd=folder)
            return
        data = _encode(entries)
        temporary = f"{uuid4().hex}.tmp"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with open(os.open(temporary, flags, 0o600, dir_fd=folder), "wb") as opened:
                opened.write(data)
            os.rename(temporary, file, src_dir_fd=folder, dst_dir_fd=folder)
            self._account(len(data))
        except OSError:  # a full disk, or someone deleted the folder
            self._is_usable = False
            self._delete(temporary)

    def _descriptor(self) -> int | None:
        """The folder, made if it is missing; None if it cannot be used or others can open it."""
        if not self._is_usable or self._opened is not None:
            return self._opened if self._is_usable else None
        with self._lock:
            if self._opened is None and self._is_usable:
                try:
                    self._opened = _private_folder(self._folder)
                except OSError as error:
                    self._is_usable = False
                    warnings.warn(f"no manifests are kept in {self._folder}: {error}", stacklevel=2)
            return self._opened

    def _account(self, size: int) -> None:
        """Note written bytes. Look at the whole folder after each sixteenth of its bound."""
        with self._lock:
            self._unchecked += size
            if self._unchecked < self._max_bytes // 16:
                return
            self._unchecked = 0
        assert self._opened is not None
        files = []
        for file in os.listdir(self._opened):
            with suppress(OSError):
                found = os.stat(file, dir_fd=self._opened, follow_symlinks=False)
                files.append((found.st_mtime, found.st_size, file))
        total = sum(size for _, size, _ in files)
        if total <= self._max_bytes:
            return
        for _, size, file in sorted(files):
            if total <= self._max_bytes * _SHARE_KEPT:
                break
            self._delete(file)
            total -= size

    def _delete(self, file: str) -> None:
        with suppress(OSError):
            os.unlink(file, dir_fd=self._opened)


def _private_folder(path: str) -> int:
    """Open a folder, made if it is missing. Raises ``PermissionError`` if others own it or may enter it."""
    if not _CAN_BE_PRIVATE:
        raise PermissionError("this system cannot keep a folder private")
    with suppress(FileExistsError):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.mkdir(path, 0o700)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    found = os.fstat(descriptor)
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        os.close(descriptor)
        raise PermissionError("it must belong to this user and have mode 0700")
    return descriptor


def _file_name(name: Any) -> str:
    return hashlib.blake2b(repr(name).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _encode(entries: ManifestEntries) -> bytes:
    arrays, fields, absent = [], [], []
    columns = dict(entries.columns)
    # Arrow loses the length of a struct without fields.
    tuples = columns.get(f.PARTITION)
    is_unpartitioned = tuples is not None and not tuples.type.num_fields
    if is_unpartitioned:
        del columns[f.PARTITION]
    for number, array in columns.items():
        arrays.append(array)
        fields.append(pa.field(str(number), array.type))
    for (kind, field_id, *typed), array in entries.statistics.items():
        if typed:
            continue
        if array is None:
            absent.append(f"{kind}.{field_id}")
        else:
            arrays.append(array)
            fields.append(pa.field(f"{kind}.{field_id}", array.type))
    stated = {
        "rows": str(len(entries)),
        "read": " ".join(map(str, sorted(entries.read))),
        "absent": " ".join(absent),
        "unpartitioned": str(int(is_unpartitioned)),
    }
    schema = pa.schema(fields, stated)
    sink = pa.BufferOutputStream()
    # Threads cost more than the compression of such small buffers.
    compression = "lz4" if pa.Codec.is_available("lz4_frame") else None
    options = pa.ipc.IpcWriteOptions(compression=compression, use_threads=False)
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    stream = sink.getvalue()
    return b"".join((_LAYOUT, crc32(stream).to_bytes(_CHECKSUM_BYTES), stream))


def _decode(data: bytes, manifest: ManifestFile) -> ManifestEntries:
    """The entries in a file. Raises ``ValueError`` or an error of Arrow for a damaged one."""
    start = len(_LAYOUT) + _CHECKSUM_BYTES
    stream = memoryview(data)[start:]
    if not data.startswith(_LAYOUT) or crc32(stream) != int.from_bytes(data[len(_LAYOUT) : start]):
        raise ValueError("damaged")
    with pa.ipc.open_stream(stream, options=pa.ipc.IpcReadOptions(use_threads=False)) as reader:
        batch = reader.read_next_batch()
    stated = batch.schema.metadata
    columns: dict[int, pa.Array] = {}
    statistics: dict[StatisticKey, pa.Array | None] = {_key(one): None for one in stated[b"absent"].decode().split()}
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        if "." in name:
            statistics[_key(name)] = array
        else:
            columns[int(name)] = array
    rows = int(stated[b"rows"])
    if stated[b"unpartitioned"] == b"1":
        columns[f.PARTITION] = struct_array([], [], rows)
    return ManifestEntries(manifest, rows, columns, statistics, frozenset(map(int, stated[b"read"].split())))


def _key(name: str) -> tuple[int, int]:
    kind, number = name.split(".")
    return int(kind), int(number)
