"""Decoded manifests in a folder of this machine, so that a new process need not fetch and decode them again.

A file holds a checksum of its name and contents, and an Arrow IPC stream. Its name is a hash of everything that its
contents depend on. Files are read whole and never changed, so that any process may delete them at any time. Other files
in the folder stay.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final
from uuid import uuid4
from zlib import crc32

import pyarrow as pa

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
_OWN_NAME: Final = re.compile(r"[0-9a-f]{32}\.manifest(\.tmp)?")
_CHECKSUM_BYTES: Final = 4
_TOUCHED_AFTER: Final = 3600  # seconds: the order of deletion need not be exact
_FOLDERS: Final[dict[tuple[str, int], DiskCache | None]] = {}
_CAN_BE_PRIVATE: Final = {os.open, os.stat, os.unlink, os.rename} <= os.supports_dir_fd and os.utime in os.supports_fd


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
    key = os.path.abspath(os.path.expanduser(folder)), int(given)
    if key not in _FOLDERS:
        try:
            _FOLDERS[key] = DiskCache(_private_folder(key[0]), key[1])
        except (OSError, ValueError) as error:
            _FOLDERS[key] = None
            warnings.warn(f"no manifests are kept in {folder}: {error}", stacklevel=2)
    return _FOLDERS[key]


class DiskCache:
    """A folder with decoded manifests, which only this user can open. No error of it ever reaches a scan.

    Beyond ``max_bytes``, the files that were not used for the longest time are deleted.
    """

    def __init__(self, folder: int, max_bytes: int) -> None:
        self._folder, self._max_bytes = folder, max_bytes
        self._unchecked = max_bytes  # the first file of a process checks the size of the folder

    def load(self, name: Any, manifest: ManifestFile) -> ManifestEntries | None:
        """The entries that were stored under a name; None if there are none, or if the file is damaged."""
        file = _file_name(name)
        try:
            data = self._read(file)
        except OSError:
            return None
        try:
            return _decode(data, file, manifest)
        except Exception:  # any contents are possible, and Arrow has many errors for them
            self._delete(file)
            return None

    def _read(self, file: str) -> bytes:
        """The bytes of a file; none if they cannot be those of ``store``."""
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=self._folder)
        try:
            found = os.fstat(descriptor)
            is_own = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
            if not is_own or found.st_size > self._max_bytes:
                return b""
            if time.time() - found.st_mtime > _TOUCHED_AFTER:
                with suppress(OSError):  # a read-only disk
                    os.utime(descriptor)
            with open(descriptor, "rb", closefd=False) as opened:
                return opened.read(found.st_size)
        finally:
            os.close(descriptor)

    def store(self, name: Any, entries: ManifestEntries) -> None:
        """Store entries under a name."""
        file, folder = _file_name(name), self._folder
        with suppress(OSError):
            os.stat(file, dir_fd=folder, follow_symlinks=False)
            return
        data = _encode(entries, file)
        if len(data) > self._max_bytes // 4:  # it would displace most of the others
            return
        temporary = f"{uuid4().hex}.manifest.tmp"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with open(os.open(temporary, flags, 0o600, dir_fd=folder), "wb") as opened:
                opened.write(data)
            os.rename(temporary, file, src_dir_fd=folder, dst_dir_fd=folder)
            self._account(len(data))
        except OSError:  # a full disk, or someone deleted the folder
            self._delete(temporary)

    def _account(self, size: int) -> None:
        """Note written bytes. Look at the whole folder after each sixteenth of its bound."""
        self._unchecked += size
        if self._unchecked < self._max_bytes // 16:
            return
        self._unchecked = 0
        files = []
        for file in filter(_OWN_NAME.fullmatch, os.listdir(self._folder)):
            with suppress(OSError):
                found = os.stat(file, dir_fd=self._folder, follow_symlinks=False)
                files.append((found.st_mtime, found.st_size, file))
        excess = sum(size for _, size, _ in files) - self._max_bytes
        for _, size, file in sorted(files) if excess > 0 else ():
            if excess > -self._max_bytes // 4:
                self._delete(file)
                excess -= size

    def _delete(self, file: str) -> None:
        with suppress(OSError):
            os.unlink(file, dir_fd=self._folder)


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
    return hashlib.blake2b(repr(name).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest() + ".manifest"


def _checksum(file: str, stream: Any) -> bytes:
    return crc32(stream, crc32(file.encode())).to_bytes(_CHECKSUM_BYTES)


def _encode(entries: ManifestEntries, file: str) -> bytes:
    arrays = {str(number): array for number, array in entries.columns.items()}
    # Arrow loses the length of a struct without fields.
    if not entries.partition.type.num_fields:
        arrays.pop(str(f.PARTITION), None)
    for (kind, field_id, *typed), array in list(entries.statistics.items()):
        if not typed:  # a bound that is decoded to a type is not stored
            arrays[f"{kind}.{field_id}"] = pa.nulls(len(entries)) if array is None else array
    stated = {"rows": str(len(entries)), "read": " ".join(map(str, sorted(entries.read)))}
    schema = pa.schema([pa.field(name, array.type) for name, array in arrays.items()], stated)
    sink = pa.BufferOutputStream()
    # Threads cost more than the compression of such small buffers.
    compression = "lz4" if pa.Codec.is_available("lz4_frame") else None
    options = pa.ipc.IpcWriteOptions(compression=compression, use_threads=False)
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(list(arrays.values()), schema=schema))
    stream = sink.getvalue()
    return b"".join((_LAYOUT, _checksum(file, stream), stream))


def _decode(data: bytes, file: str, manifest: ManifestFile) -> ManifestEntries:
    """The entries in a file. Raises ``ValueError``, an error of Arrow or another one if the file is damaged."""
    start = len(_LAYOUT) + _CHECKSUM_BYTES
    stream = memoryview(data)[start:]
    if not data.startswith(_LAYOUT) or _checksum(file, stream) != data[len(_LAYOUT) : start]:
        raise ValueError("damaged")
    with pa.ipc.open_stream(stream, options=pa.ipc.IpcReadOptions(use_threads=False)) as reader:
        batch = reader.read_next_batch()
    batch.validate(full=True)
    stated = batch.schema.metadata
    rows, read = int(stated[b"rows"]), frozenset(map(int, stated[b"read"].split()))
    columns = {f.PARTITION: struct_array([], [], rows)} if f.PARTITION in read else {}
    statistics: dict[StatisticKey, pa.Array | None] = {}
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        kind, _, field_id = name.partition(".")
        if field_id:
            statistics[int(kind), int(field_id)] = None if pa.types.is_null(array.type) else array
        else:
            columns[int(kind)] = array
    return ManifestEntries(manifest, rows, columns, statistics, read)
