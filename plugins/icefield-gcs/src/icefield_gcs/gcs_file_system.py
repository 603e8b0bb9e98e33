"""Google Cloud Storage: ``gs://bucket/path`` and ``gcs://bucket/path``.

One request creates a file, on the condition that no generation of it exists, which the store checks. The properties
are in the plugin's README.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

import google.auth.exceptions
from fsspec.asyn import sync
from gcsfs.retry import NonRetryableError
from icefield.abc import FileInfo, FileSystemAbility, InputFile, OutputStream, PutMode
from icefield.errors import AccessDenied, FileExists, FileMissing, IcefieldError, LocationRefused, StorageError
from icefield.toolkit import FsspecFileSystem, SharedClients, located, split_location, unquoted_etag

from icefield_gcs.client import GcsClient, is_transient, status_of
from icefield_gcs.reading import GcsInput
from icefield_gcs.settings import PREFIX, given_credentials, settings_of
from icefield_gcs.writing import GcsOutput

_BUCKET: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){0,221}(?<!\.)")
_CLIENTS: SharedClients[GcsClient] = SharedClients()


class GcsFileSystem(FsspecFileSystem):
    """Files of Google Cloud Storage. Properties begin with ``gcs.``."""

    abilities = frozenset({FileSystemAbility.ATOMIC_CREATE, FileSystemAbility.LIST, FileSystemAbility.REMOTE})

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(properties)
        self._fs: GcsClient | None = None
        self._process = os.getpid()

    def connect(self) -> GcsClient:
        return GcsClient(settings_of(self.properties, self.access))

    @property
    def fs(self) -> GcsClient:
        """The client of this process."""
        if self._fs is None or self._process != os.getpid():
            mine = tuple(sorted((name, value) for name, value in self.properties.items() if name.startswith(PREFIX)))
            self._fs, self._process = _CLIENTS.get((self.access, *mine), self.connect), os.getpid()
        return self._fs

    def path(self, location: str) -> str:
        return "/".join(_split(location))

    def is_transient(self, error: Exception) -> bool:
        return is_transient(error)

    def open_input(self, location: str) -> InputFile:
        with self.translated(location):
            return GcsInput(self.fs, location, *_split(location), self.translated).open()

    def put(self, location: str, data: bytes, mode: PutMode) -> str | None:
        with self.translated(location, writing=True):
            client = self.fs
            create = mode is PutMode.CREATE
            return unquoted_etag(sync(client.loop, client.put_object, *_split(location), data, create=create))

    def open_output(self, location: str) -> OutputStream:
        with self.translated(location):
            return GcsOutput(self.fs, location, *_split(location), self._translated_in_writing)

    def stat(self, location: str) -> FileInfo:
        with self.translated(location):
            client = self.fs
            found = sync(client.loop, client.describe, *_split(location))
            if found["name"].endswith("/"):
                raise FileNotFoundError  # a placeholder by which some tools mark a folder
            return _info(location, found)

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        root = prefix.rstrip("/")
        with self.translated(prefix):
            bucket, folder = _split_folder(root)
        token = None
        while True:
            with self.translated(prefix):
                client = self.fs
                page = sync(client.loop, client.page, bucket, folder, "/" if shallow else "", token)
            for name in page.get("prefixes", ()):
                yield FileInfo(f"{root}/{name[len(folder) :]}", 0)
            for item in page.get("items", ()):
                if not item["name"].endswith("/"):
                    yield _info(f"{root}/{item['name'][len(folder) :]}", item)
            token = page.get("nextPageToken")
            if not token:
                return

    def delete_many(self, locations: Iterable[str]) -> None:
        found = list(locations)
        if found:
            with self.translated(found[0] if len(found) == 1 else f"{found[0]} and {len(found) - 1} more"):
                client = self.fs
                sync(client.loop, client.delete, [_split(location) for location in found])

    def credentials(self, location: str) -> str | None:
        with self.translated(location):
            given = given_credentials(self.properties)
            if given is not None:
                return given
            found = self.fs.credentials.credentials
        if found is None:
            return "none: anonymous, since the SDK's default chain found nothing"
        account = getattr(found, "service_account_email", None)
        whose = f" of {account}" if account and account != "default" else ""
        return f"{type(found).__module__}.{type(found).__qualname__}{whose}, found by the SDK's default chain"

    @contextmanager
    def translated(self, location: str, *, writing: bool = False) -> Iterator[None]:
        """Turn errors of gcsfs into Icefield's, without their messages, which may repeat parts of the request."""
        try:
            yield
        except IcefieldError as error:
            raise located(error, location) from None
        except FileNotFoundError:
            if writing:
                message = f"cannot write {location}: the bucket is not there; create it, or correct the location"
                raise StorageError(message, location=location) from None
            raise FileMissing(f"no file {location}", location=location) from None
        except FileExistsError:
            raise FileExists(f"a file {location} is there already", location=location) from None
        except Exception as error:
            message = f"Google Cloud Storage failed on {location}: {_said(error)}"
            kind = AccessDenied if _is_denied(error) else StorageError
            raise kind(message, retryable=is_transient(error), location=location) from None

    def _translated_in_writing(self, location: str) -> Any:
        return self.translated(location, writing=True)


def _split(location: str) -> tuple[str, str]:
    """Bucket and key, to the letter."""
    bucket, key = _split_bucket(location)
    if not key:
        raise FileMissing(f"{location} is no file: a file is gs://bucket/path", location=location)
    return bucket, key


def _split_folder(root: str) -> tuple[str, str]:
    """Return the bucket, and the prefix of all objects below a folder or in the whole bucket."""
    bucket, key = _split_bucket(root)
    return bucket, f"{key}/" if key else ""


def _split_bucket(location: str) -> tuple[str, str]:
    _, bucket, key = split_location(location)
    if not bucket:
        raise FileMissing(f"{location} is no file: a file is gs://bucket/path", location=location)
    if _BUCKET.fullmatch(bucket) is None:
        raise LocationRefused(f"{location} is refused: '{bucket}' is no name of a bucket", location=location)
    return bucket, key


def _info(location: str, entry: Mapping[str, Any]) -> FileInfo:
    updated = entry.get("updated")
    modified = int(datetime.fromisoformat(updated).timestamp() * 1_000) if updated else None
    return FileInfo(location, int(entry.get("size") or 0), modified, unquoted_etag(entry.get("etag")))


def _is_denied(error: Exception) -> bool:
    return status_of(error) == 403 or str(error).startswith("Forbidden")


def _said(error: Exception) -> str:
    """Describe an error and its remedy."""
    status = status_of(error)
    if status == 401 or isinstance(error, google.auth.exceptions.GoogleAuthError | NonRetryableError):
        return "the credentials were refused or have expired; renew them, or set gcs.oauth2.token"
    if _is_denied(error):
        return "403, access denied; give the credentials the right to read and write objects of the bucket"
    if status == 429 or (status is not None and status >= 500):
        return f"it answers {status}, throttled or out of service; try again later, or raise gcs.retry.total-timeout-ms"
    if status is not None:
        return f"it answers {status}"
    if isinstance(error, TimeoutError):
        return "no answer in time; check gcs.service.host and the network, or raise gcs.retry.total-timeout-ms"
    if is_transient(error):
        return f"no connection ({type(error).__name__}); check gcs.service.host and the network"
    return type(error).__name__
