"""Azure Data Lake Storage and Azure Blob Storage, over the interface of blobs.

A file is created by one request with ``If-None-Match: *``, and the store decides. The properties are in the plugin's
README, the forms of a location in ``locations.py``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from azure.core.exceptions import ClientAuthenticationError
from azure.storage.blob.aio import BlobPrefix
from fsspec.asyn import sync
from icefield.abc import FileInfo, FileSystemAbility, InputFile, OutputStream, PutMode
from icefield.errors import AccessDenied, FileExists, FileMissing, IcefieldError, StorageError
from icefield.toolkit import FsspecFileSystem, SharedClients, authorities_named, located, unquoted_etag

from icefield_adls.accounts import account_of
from icefield_adls.client import AdlsClient, is_transient, status_of
from icefield_adls.locations import SCHEMES, place_of
from icefield_adls.reading import AdlsInput
from icefield_adls.settings import PREFIX, settings_of
from icefield_adls.writing import AdlsOutput

_CLIENTS: SharedClients[AdlsClient] = SharedClients()


class AdlsFileSystem(FsspecFileSystem):
    """Files of Azure's storage accounts. Properties begin with ``adls.``."""

    abilities = frozenset({FileSystemAbility.ATOMIC_CREATE, FileSystemAbility.LIST, FileSystemAbility.REMOTE})

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(properties)
        self._clients: dict[tuple[int, str | None], AdlsClient] = {}

    def connect(self, host: str | None = None, location: str = "") -> AdlsClient:
        own, access = self.properties, self.access
        anew = None if access is None else lambda: account_of({**own, **access.properties()}, host, location)
        return AdlsClient(account_of(own, host, location), settings_of(own), access, anew)

    @property
    def fs(self) -> AdlsClient:
        """The client of the account that the properties name."""
        return self.client(None)

    def client(self, host: str | None, location: str = "") -> AdlsClient:
        """The client of this process for the account of a host. ``location`` is named where it is refused."""
        here = (os.getpid(), host)
        client = self._clients.get(here)
        if client is None:
            mine = sorted(item for item in self.properties.items() if item[0].startswith(PREFIX))
            named = sorted({*authorities_named(self.properties, SCHEMES)})
            client = _CLIENTS.get((host, self.access, *mine, *named), lambda: self.connect(host, location))
            self._clients[here] = client
        return client

    def path(self, location: str) -> str:
        place = place_of(location)
        return f"{place.container}/{place.path}"

    def is_transient(self, error: Exception) -> bool:
        return is_transient(error)

    def open_input(self, location: str) -> InputFile:
        with self.translated(location):
            return AdlsInput(*self._file(location), self.translated).open()

    def put(self, location: str, data: bytes, mode: PutMode) -> str | None:
        with self.translated(location, writing=True):
            client, _, container, path = self._file(location)
            create = mode is PutMode.CREATE
            return unquoted_etag(sync(client.loop, client.put_blob, container, path, data, create=create))

    def open_output(self, location: str) -> OutputStream:
        with self.translated(location):
            return AdlsOutput(*self._file(location), self._translated_in_writing)

    def stat(self, location: str) -> FileInfo:
        with self.translated(location):
            client, _, container, path = self._file(location)
            found = sync(client.loop, client.describe, container, path)
            if _is_folder(found):
                raise FileNotFoundError
            return _info(location, found)

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        root = prefix.rstrip("/")
        with self.translated(prefix):
            place = place_of(root)
            client = self.client(place.host, prefix)
        folder = f"{place.path}/" if place.path else ""
        token: str | None = None
        while True:
            with self.translated(prefix):
                try:
                    found, token = sync(
                        client.loop, client.page, place.container, folder, "/" if shallow else "", token
                    )
                except FileNotFoundError:  # no container: nothing is in it
                    return
            for item in found:
                location = f"{root}/{item.name[len(folder) :]}"
                if isinstance(item, BlobPrefix):
                    yield FileInfo(location, 0)
                elif not _is_folder(item):
                    yield _info(location, item)
            if not token:
                return

    def delete_many(self, locations: Iterable[str]) -> None:
        found = list(locations)
        containers: dict[tuple[str | None, str], list[str]] = {}
        for location in found:
            place = place_of(location)
            containers.setdefault((place.host, place.container), []).append(place.path)
        for (host, container), paths in containers.items():
            with self.translated(found[0] if len(found) == 1 else f"{found[0]} and {len(found) - 1} more"):
                client = self.client(host, found[0])
                sync(client.loop, client.delete, container, paths)

    def credentials(self, location: str) -> str | None:
        with self.translated(location):
            account = self.client(place_of(location).host, location).account
            return f"{account.source}, for the account '{account.name}'"

    @contextmanager
    def translated(self, location: str, *, writing: bool = False) -> Iterator[None]:
        """Turn errors of the SDK into Icefield's, without their messages, which may repeat parts of the request."""
        try:
            yield
        except IcefieldError as error:
            raise located(error, location) from None
        except FileNotFoundError:
            if writing:
                message = f"cannot write {location}: the container is not there; create it, or correct the location"
                raise StorageError(message, location=location) from None
            raise FileMissing(f"no file {location}", location=location) from None
        except FileExistsError:
            raise FileExists(f"a file {location} is there already", location=location) from None
        except Exception as error:
            message = f"Azure Storage failed on {location}: {_said(error)}"
            kind = AccessDenied if status_of(error) == 403 else StorageError
            raise kind(message, retryable=is_transient(error), location=location) from None

    def _translated_in_writing(self, location: str) -> Any:
        return self.translated(location, writing=True)

    def _file(self, location: str) -> tuple[AdlsClient, str, str, str]:
        place = place_of(location)
        if not place.path:
            raise FileMissing(f"{location} is no file: it names a container", location=location)
        return self.client(place.host, location), location, place.container, place.path


def _is_folder(entry: Any) -> bool:
    """Whether an entry is a folder, either of a hierarchical namespace, or as a marker of some tools."""
    marked = {name.lower(): value for name, value in (entry.metadata or {}).items()}
    return str(entry.name).endswith("/") or marked.get("hdi_isfolder") == "true"


def _info(location: str, entry: Any) -> FileInfo:
    modified = entry.last_modified
    modified_ms = int(modified.timestamp() * 1_000) if modified else None
    return FileInfo(location, int(entry.size or 0), modified_ms, unquoted_etag(entry.etag))


def _said(error: Exception) -> str:
    """Describe an error and its remedy."""
    status = status_of(error)
    if status == 401 or (status is None and isinstance(error, ClientAuthenticationError)):
        return (
            "the credentials were refused, or none were found; set adls.account-key, adls.sas-token or adls.client-id"
        )
    if status == 403:
        return "403, access denied; check the key or signature, or give the role Storage Blob Data Contributor"
    if status == 429 or (status is not None and status >= 500):
        return (
            f"it answers {status}, throttled or out of service; try again later, or raise adls.retry.total-timeout-ms"
        )
    if status is not None:
        return f"it answers {status}"
    if isinstance(error, TimeoutError):
        return "no answer in time; check adls.account-host and the network, or raise adls.retry.total-timeout-ms"
    if is_transient(error):
        return f"no connection ({type(error).__name__}); check adls.account-host and the network"
    if isinstance(error, ValueError) or type(error).__name__ == "AzureSigningError":
        return "the credentials have a wrong form; check adls.account-key, adls.connection-string and the like"
    return type(error).__name__
