"""A file system over the stores that ``obstore`` supports: a property names the store of ``objects://<name>/<path>``.

| property | meaning |
|---|---|
| `objects.url` | the store: `file:///folder`, or `s3://bucket` |
| `objects.config.<key>` | a setting of `obstore`, such as `aws_endpoint` |

``put`` with the mode ``create`` is one conditional request of the store, so ``ATOMIC_CREATE`` is declared. A rename of
``obstore`` is a copy and a deletion, in two steps, so ``ATOMIC_RENAME`` is not. ``obstore`` reads paths strictly: none
has an empty segment, and in a folder on a disk none ends in ``#`` and digits. A folder on a disk is for experiments
only: after a power failure, recent writes may be lost there.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from tempfile import SpooledTemporaryFile
from typing import Any

import obstore
from icefield.abc import FileInfo, FileSystem, FileSystemAbility, InputFile, OutputStream, PutMode
from icefield.errors import AccessDenied, FileExists, FileMissing, InvalidArgument, StorageError
from icefield.toolkit import FetchedRange, RangedInput, split_location, unquoted_etag
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import from_url

CONFIG = "objects.config."
FIRST_READ = 1 << 20
IN_MEMORY = 8 << 20
NEVER_PASSING = {errno.ENAMETOOLONG, errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.EINVAL}


@contextmanager
def translated(location: str) -> Iterator[None]:
    """Turn errors of ``obstore`` into errors of Icefield that name the location."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileMissing(f"no file {location}", location=location) from error
    except AlreadyExistsError as error:
        raise FileExists(f"{location} exists already", location=location) from error
    except (PermissionDeniedError, UnauthenticatedError, PermissionError) as error:
        raise AccessDenied(f"no right to {location}", location=location) from error
    except (BaseError, OSError) as error:
        reason = str(error).partition("\n")[0]
        number = re.search(r"\(os error (\d+)\)", reason)
        may_pass = not isinstance(error, NotSupportedError) and (not number or int(number[1]) not in NEVER_PASSING)
        raise StorageError(f"{location}: {reason}", retryable=may_pass, location=location) from error


class ObjectFileSystem(FileSystem):
    """Files in a store of ``obstore``."""

    abilities = frozenset({FileSystemAbility.ATOMIC_CREATE, FileSystemAbility.LIST, FileSystemAbility.REMOTE})

    _opened: Any = None

    @property
    def _store(self) -> Any:
        if self._opened is None:
            config = {key[len(CONFIG) :]: value for key, value in self.properties.items() if key.startswith(CONFIG)}
            self._opened = from_url(self.properties["objects.url"], config=config or None)
        return self._opened

    def _path(self, location: str) -> str:
        """The exact path for ``obstore``; a path that ``obstore`` would change is refused."""
        parts = split_location(location)
        path = f"{parts.authority}/{parts.path}" if parts.path else parts.authority
        if "" in path.split("/") or re.search(r"[\0-\x1f\x7f]", path):
            raise InvalidArgument(f"a store of objects has no name for {location}", location=location)
        if self.properties["objects.url"].startswith("file:") and re.search(r"#\d+$", path):
            raise InvalidArgument(f"a folder of objects keeps names like {location} for itself", location=location)
        return path

    def open_input(self, location: str) -> InputFile:
        return ObjectInput(self._store, self._path(location), location).open()

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        path = self._path(location)
        with translated(location):
            obstore.put(
                self._store, path, data, mode="create" if mode is PutMode.CREATE else "overwrite", use_multipart=False
            )

    def open_output(self, location: str) -> OutputStream:
        return ObjectOutput(self._store, self._path(location), location)

    def stat(self, location: str) -> FileInfo:
        path = self._path(location)
        with translated(location):
            return told(location, obstore.head(self._store, path))

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        folder = self._path(prefix.rstrip("/"))
        above = prefix.rstrip("/")[: -len(folder)]
        with translated(prefix):
            if shallow:
                found = obstore.list_with_delimiter(self._store, folder)
                for name in found["common_prefixes"]:
                    yield FileInfo(f"{above}{name}/", 0)
                for meta in found["objects"]:
                    yield told(above + meta["path"], meta)
                return
            for page in obstore.list(self._store, folder):
                for meta in page:
                    yield told(above + meta["path"], meta)

    def delete_many(self, locations: Iterable[str]) -> None:
        paths = {self._path(location): location for location in locations}
        try:
            for some in pages([*paths], 1000):
                with translated(paths[some[0]]):
                    obstore.delete(self._store, some)
        except FileMissing:  # a folder on a disk stops there
            for path, location in paths.items():
                try:
                    with translated(location):
                        obstore.delete(self._store, path)
                except FileMissing:
                    pass

    def rename(self, source: str, target: str) -> None:
        self.require(FileSystemAbility.ATOMIC_RENAME, f"rename {source}")


def pages(items: list[str], size: int) -> Iterator[list[str]]:
    """The items in lists of at most ``size``."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def told(location: str, meta: Any) -> FileInfo:
    """Return the ``FileInfo`` of a file from a store's metadata."""
    modified_ms = int(meta["last_modified"].timestamp() * 1000)
    return FileInfo(location, meta["size"], modified_ms, unquoted_etag(meta["e_tag"]))


class ObjectInput(RangedInput):
    """A file that is read by ranges."""

    def __init__(self, store: Any, path: str, location: str) -> None:
        super().__init__(location)
        self._store, self._path, self._location = store, path, location

    def fetch_first(self) -> FetchedRange:
        with translated(self._location):
            answer = obstore.get(self._store, self._path)
            data = b"".join(bytes(chunk) for _, chunk in zip(range(1), answer.stream(FIRST_READ), strict=False))
            return FetchedRange(0, data, answer.meta["size"])

    def fetch(self, start: int, end: int) -> FetchedRange:
        with translated(self._location):
            answer = obstore.get(self._store, self._path, options={"range": (start, end)})
            return FetchedRange(answer.range[0], bytes(answer.bytes()), answer.meta["size"])


class ObjectOutput(OutputStream):
    """A new file: gathered in memory, or on the disk where it is large, and sent when it is complete."""

    def __init__(self, store: Any, path: str, location: str) -> None:
        self._store, self._path, self._location = store, path, location
        self._gathered = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - `close` and `abort` close it
        self._size = 0

    @property
    def closed(self) -> bool:
        return self._gathered.closed

    def write(self, data: Any, /) -> int:
        with translated(self._location):
            self._gathered.write(data)
        size = memoryview(data).nbytes
        self._size += size
        return size

    def tell(self) -> int:
        return self._size

    def close(self) -> None:
        if self.closed:
            return
        with self._gathered, translated(self._location):
            self._gathered.seek(0)
            obstore.put(self._store, self._path, self._gathered)

    def abort(self) -> None:
        self._gathered.close()
