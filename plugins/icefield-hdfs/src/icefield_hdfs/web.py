"""HDFS over WebHDFS, its REST interface, or over HttpFS, a gateway that speaks the same."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from http.client import HTTPConnection
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode

from icefield.toolkit import Backoff

from icefield_hdfs.client import HdfsFailure, Reader, Status, Writer
from icefield_hdfs.web_listing import pages, status_in, status_of, whole_listing
from icefield_hdfs.web_requests import BROKEN, Requests, ServerAddress, checked, lost, read_answer

T = TypeVar("T")

_RETRIES: Final = 4
_BACKOFF: Final = Backoff(0.25, 2.0)
_MAX_REDIRECTIONS: Final = 5
_MAX_READ: Final = 64 * 1024 * 1024  # in one request
_SHORT: Final = 1024 * 1024  # the limit for the body of an error or of a redirection


class WebClient:
    """Steps by requests to the name node, which sends them on to data nodes where bytes travel."""

    def __init__(self, address: ServerAddress, requests: Requests, identity: Mapping[str, str]) -> None:
        self._address, self._requests = address, requests
        self._identity = dict(identity)

    def open(self, path: str) -> Reader:
        found = self.status(path)
        if found.is_folder:
            raise FileNotFoundError(path)
        return _WebReader(self, path, found.size)

    def create(self, path: str) -> Writer:
        return _WebWriter(self, path)

    def begin(self, path: str) -> tuple[ServerAddress, HTTPConnection]:
        """Ask the name node for a data node, and begin to send a new file there."""
        asked = self._target(path, "CREATE", overwrite="true")
        status, headers, _ = _persist(lambda: self._requests.ask("PUT", self._address, asked))
        if status != 307:
            raise HdfsFailure(f"the server answers {status} where a data node was asked for", passing=False)
        address, target = self._requests.follow(self._address, headers.get("Location"))
        connection = self._requests.connection(address)
        try:
            connection.putrequest("PUT", target)
            connection.putheader("Content-Type", "application/octet-stream")
            connection.putheader("Transfer-Encoding", "chunked")
            connection.endheaders()
        except BROKEN as error:
            connection.close()
            raise lost(address, error) from error
        return address, connection

    def status(self, path: str) -> Status:
        return status_of(path, self._repeated("GET", path, "GETFILESTATUS"))

    def children(self, path: str) -> Iterator[Status]:
        for entry in self._entries(path):
            name = entry["pathSuffix"]  # empty when the path is a file
            yield status_in(f"{path.rstrip('/')}/{name}" if name else path, entry)

    def _entries(self, path: str) -> Iterator[Mapping[str, Any]]:
        """Iterate over the entries of a folder by pages; a server before Hadoop 2.8 has no pages and lists it whole."""
        paged = False

        def page(after: str) -> Mapping[str, Any]:
            nonlocal paged
            found = self._repeated("GET", path, "LISTSTATUS_BATCH", startAfter=after)
            paged = True
            return found

        try:
            yield from pages(page)
        except HdfsFailure as failure:
            if paged or failure.kind != "IllegalArgumentException":
                raise
            yield from whole_listing(self._repeated("GET", path, "LISTSTATUS"))

    def delete(self, path: str) -> None:
        self._repeated("DELETE", path, "DELETE", recursive="false")

    def make_folder(self, path: str) -> None:
        self._repeated("PUT", path, "MKDIRS")

    def rename(self, source: str, target: str) -> None:
        """Rename without replacing.

        With this option the name node raises an error; HttpFS ignores it and answers with a boolean.
        """
        if self._ask("PUT", source, "RENAME", destination=target, renameoptions="NONE").get("boolean", True):
            return
        self.status(source)
        try:
            self.status(target)
        except FileNotFoundError:
            raise FileNotFoundError(f"the folder of {target}") from None
        raise FileExistsError(target)

    def replace(self, source: str, target: str) -> None:
        if not self._ask("PUT", source, "RENAME", destination=target, renameoptions="OVERWRITE").get("boolean", True):
            self.delete(target)
            self.rename(source, target)

    def read_range(self, path: str, start: int, end: int) -> bytes:
        """The bytes of a file from ``start`` to before ``end``."""
        target = self._target(path, "OPEN", offset=str(start), length=str(end - start))

        def attempt() -> bytes:
            address, asked = self._address, target
            for _ in range(_MAX_REDIRECTIONS):
                status, headers, body = self._requests.ask("GET", address, asked, max(end - start, _SHORT))
                if status == 200:
                    if len(body) != end - start:
                        raise HdfsFailure("fewer bytes came than were asked for", passing=True)
                    return body
                address, asked = self._requests.follow(address, headers.get("Location"))
            raise HdfsFailure("the server redirects without end", passing=False)

        return _persist(attempt)

    def _repeated(self, method: str, path: str, operation: str, **more: str) -> dict[str, Any]:
        """A request that may be made twice."""
        return _persist(lambda: self._ask(method, path, operation, **more))

    def _ask(self, method: str, path: str, operation: str, **more: str) -> dict[str, Any]:
        status, _, body = self._requests.ask(method, self._address, self._target(path, operation, **more))
        if status != 200:
            raise HdfsFailure(f"the server answers {operation} with {status}", passing=False)
        if not body.strip():
            return {}
        try:
            found = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise HdfsFailure(f"the answer to {operation} is no JSON: is it WebHDFS?", passing=False) from error
        return found if isinstance(found, dict) else {}

    def _target(self, path: str, operation: str, **more: str) -> str:
        query = urlencode({"op": operation, **self._identity, **more}, quote_via=quote, safe="")
        return f"/webhdfs/v1{quote(path, safe='/')}?{query}"


class _WebReader:
    def __init__(self, client: WebClient, path: str, size: int) -> None:
        self._client, self._path = client, path
        self.size = size

    def read_range(self, start: int, end: int) -> bytes:
        parts = [
            self._client.read_range(self._path, at, min(at + _MAX_READ, end)) for at in range(start, end, _MAX_READ)
        ]
        return parts[0] if len(parts) == 1 else b"".join(parts)


class _WebWriter:
    """Sends bytes in chunks to a data node as they come; the file is created with the first."""

    def __init__(self, client: WebClient, path: str) -> None:
        self._client, self._path = client, path
        self._begun: tuple[ServerAddress, HTTPConnection] | None = None

    def write(self, data: bytes | bytearray) -> None:
        if data:  # a chunk of no bytes would be the end
            self._send(b"%x\r\n%b\r\n" % (len(data), bytes(data)))

    def close(self) -> None:
        self._send(b"0\r\n\r\n")
        assert self._begun is not None
        (address, connection), self._begun = self._begun, None
        try:
            answer = read_answer(connection.getresponse())
        except BROKEN as error:
            raise lost(address, error) from error
        finally:
            connection.close()
        checked(answer)

    def give_up(self) -> None:
        # A data node may still be about to create the file: finish the request, so that the deletion comes after it.
        if self._begun is not None:
            with suppress(Exception):
                self.close()
        self._begun = None

    def _send(self, data: bytes) -> None:
        if self._begun is None:
            self._begun = self._client.begin(self._path)
        address, connection = self._begun
        try:
            connection.send(data)
        except OSError as error:
            self._begun = None
            connection.close()
            raise lost(address, error) from error


def _persist(attempt: Callable[[], T]) -> T:
    """Call ``attempt``, and retry after failures that may pass, with growing, random waits."""
    for wait in _BACKOFF.waits(_RETRIES):
        try:
            return attempt()
        except HdfsFailure as failure:
            if not failure.passing:
                raise
        time.sleep(wait)
    return attempt()
