"""Amazon S3 and stores that speak its protocol: ``s3://bucket/path``, also spelt ``s3a`` and ``s3n``.

A file is created by one request with ``If-None-Match: *``, and the store decides. The properties are in the plugin's
README.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from fsspec.asyn import sync
from icefield.abc import FileInfo, FileSystemAbility, InputFile, OutputStream, PutMode
from icefield.errors import AccessDenied, FileExists, FileMissing, IcefieldError, StorageError
from icefield.toolkit import FsspecFileSystem, SharedClients, is_true, located, unquoted_etag

from icefield_s3.client import S3Client
from icefield_s3.failures import is_denied, is_transient, said_of
from icefield_s3.locations import split_key
from icefield_s3.reading import S3Input
from icefield_s3.settings import CONDITIONAL_PUT, PREFIXES, given_credentials, settings_of
from icefield_s3.writing import S3Output

_CLIENTS: SharedClients[S3Client] = SharedClients()
_LISTS = frozenset({FileSystemAbility.LIST, FileSystemAbility.REMOTE})
_CREATES = _LISTS | {FileSystemAbility.ATOMIC_CREATE}


class S3FileSystem(FsspecFileSystem):
    """Files of S3. Properties begin with ``s3.``, and with ``client.`` where all AWS clients share them."""

    ability_properties = {FileSystemAbility.ATOMIC_CREATE: f"{CONDITIONAL_PUT}=false"}  # noqa: RUF012

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(properties)
        self._fs: S3Client | None = None
        self._process = os.getpid()
        self._abilities = _CREATES if is_true(self.properties, CONDITIONAL_PUT, True) else _LISTS

    @property
    def abilities(self) -> frozenset[FileSystemAbility]:
        """The abilities; ``ATOMIC_CREATE`` is left out if ``s3.conditional-put`` says that the store lacks it."""
        return self._abilities

    def connect(self) -> S3Client:
        return S3Client(settings_of(self.properties), self.access)

    @property
    def fs(self) -> S3Client:
        """The client of this process."""
        if self._fs is None or self._process != os.getpid():
            mine = sorted(item for item in self.properties.items() if item[0].startswith(PREFIXES))
            self._fs, self._process = _CLIENTS.get((type(self), self.access, *mine), self.connect), os.getpid()
        return self._fs

    def path(self, location: str) -> str:
        return "/".join(self._split(location))

    def is_transient(self, error: Exception) -> bool:
        return is_transient(error)

    def open_input(self, location: str) -> InputFile:
        with self.translated(location):
            return S3Input(self.fs, location, *self._split(location), self.translated).open()

    def put(self, location: str, data: bytes, mode: PutMode) -> str | None:
        create = mode is PutMode.CREATE
        if create:
            self.require(FileSystemAbility.ATOMIC_CREATE, "create a file atomically")
        with self.translated(location, writing=True):
            client = self.fs
            return unquoted_etag(sync(client.loop, client.put_object, *self._split(location), data, create=create))

    def open_output(self, location: str) -> OutputStream:
        with self.translated(location):
            return S3Output(self.fs, location, *self._split(location), self._translated_in_writing)

    def stat(self, location: str) -> FileInfo:
        with self.translated(location):
            client = self.fs
            found = sync(client.loop, client.describe, *self._split(location))
            return _info(location, found["ContentLength"], found)

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        root = prefix.rstrip("/")
        with self.translated(prefix):
            bucket, key = split_key(root, self.properties)
        folder = f"{key}/" if key else ""
        token = None
        while True:
            with self.translated(prefix, writing=True):
                client = self.fs
                page = sync(client.loop, client.page, bucket, folder, "/" if shallow else "", token)
            for below in page.get("CommonPrefixes", ()):
                yield FileInfo(f"{root}/{below['Prefix'][len(folder) :]}", 0)
            for item in page.get("Contents", ()):
                if not item["Key"].endswith("/"):
                    yield _info(f"{root}/{item['Key'][len(folder) :]}", item["Size"], item)
            token = page.get("NextContinuationToken")
            if not token:
                return

    def delete_many(self, locations: Iterable[str]) -> None:
        found = list(locations)
        buckets: dict[str, list[str]] = {}
        for location in found:
            bucket, key = split_key(location, self.properties)
            buckets.setdefault(bucket, []).append(key)
        for bucket, keys in buckets.items():
            with self.translated(found[0] if len(found) == 1 else f"{found[0]} and {len(found) - 1} more"):
                client = self.fs
                sync(client.loop, client.delete, bucket, keys)

    def credentials(self, location: str) -> str | None:
        with self.translated(location):
            client = self.fs
            given = given_credentials(client.settings)
            return given if given is not None else sync(client.loop, client.found_credentials)

    @contextmanager
    def translated(self, location: str, *, writing: bool = False) -> Iterator[None]:
        """Turn errors of the SDK into Icefield's, without their messages, which may repeat parts of the request."""
        try:
            yield
        except IcefieldError as error:
            raise located(error, location) from None
        except FileNotFoundError:
            if writing:
                message = f"cannot use {location}: the bucket is not there; create it, or correct the location"
                raise StorageError(message, location=location) from None
            raise FileMissing(f"no file {location}", location=location) from None
        except FileExistsError:
            raise FileExists(f"a file {location} is there already", location=location) from None
        except Exception as error:
            message = f"S3 failed on {location}: {said_of(error)}"
            kind = AccessDenied if is_denied(error) else StorageError
            raise kind(message, retryable=is_transient(error), location=location) from None

    def _translated_in_writing(self, location: str) -> Any:
        return self.translated(location, writing=True)

    def _split(self, location: str) -> tuple[str, str]:
        """Bucket and key of a file. A key that ends in ``/`` is a placeholder by which some tools mark a folder."""
        bucket, key = split_key(location, self.properties)
        if not key or key.endswith("/"):
            raise FileMissing(f"{location} is no file: a file is s3://bucket/path", location=location)
        return bucket, key


def _info(location: str, size: int, entry: Mapping[str, Any]) -> FileInfo:
    modified = entry.get("LastModified")
    modified_ms = int(modified.timestamp() * 1_000) if modified else None
    return FileInfo(location, int(size), modified_ms, unquoted_etag(entry.get("ETag")))
