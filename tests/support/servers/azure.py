"""Azure Blob Storage on loopback: Azurite from npm, in memory, with the account and the key that everybody knows."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.error import HTTPError
from urllib.parse import quote, unquote
from urllib.request import Request, urlopen
from xml.etree import ElementTree

import pytest

from servers.process import answers, free_port, npm_package, running

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
CONTAINER = "icefield"
_VERSION = "2021-12-02"


@dataclass(frozen=True)
class Azure:
    """A running server: its address, and the container that is there."""

    url: str
    container: str = CONTAINER

    @property
    def connection_string(self) -> str:
        """The connection string for clients."""
        return f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={self.url};"

    @property
    def properties(self) -> dict[str, str]:
        """The properties of a file system that reaches it."""
        return {"adls.connection-string": self.connection_string}

    def request(self, method: str, path: str, data: bytes | None = None, **headers: str) -> bytes:
        """One request, signed, without any client: ``path`` is quoted and begins with the container."""
        sent = {"x-ms-date": _now(), "x-ms-version": _VERSION, **{k.replace("_", "-"): v for k, v in headers.items()}}
        resource, _, query = path.partition("?")
        canonical = "".join(f"{name}:{value}\n" for name, value in sorted(sent.items()))
        pairs = sorted(pair.partition("=")[::2] for pair in query.split("&") if pair)
        wanted = f"/{ACCOUNT}/{ACCOUNT}/{resource}" + "".join(f"\n{name}:{unquote(value)}" for name, value in pairs)
        length = str(len(data)) if data else ""
        kind = "application/octet-stream" if data is not None else ""
        text = f"{method}\n\n\n{length}\n\n{kind}\n\n\n\n\n\n\n{canonical}{wanted}"
        key = base64.b64decode(KEY)
        signature = base64.b64encode(hmac.new(key, text.encode(), hashlib.sha256).digest()).decode()
        sent["Authorization"] = f"SharedKey {ACCOUNT}:{signature}"
        if data is not None:
            sent["Content-Type"] = kind
        asked = Request(f"{self.url}/{path}", data=data, headers=sent, method=method)
        with urlopen(asked, timeout=10) as answer:
            return answer.read()

    def get(self, path: str) -> bytes | None:
        """A blob's bytes, read without the plugin; None where none is."""
        try:
            return self.request("GET", f"{self.container}/{quote(path)}")
        except HTTPError as error:
            if error.code == 404:
                return None
            raise

    def put(self, path: str, data: bytes) -> None:
        """Write a blob without the plugin."""
        self.request("PUT", f"{self.container}/{quote(path)}", data, x_ms_blob_type="BlockBlob")

    def unpublished(self, prefix: str) -> int:
        """How many blobs below a prefix have blocks that were sent and never published."""
        return len(self.uncommitted(prefix))

    def names(self, prefix: str, include: str = "") -> list[str]:
        """The names of the blobs that begin with a prefix, a page of the store at most, without the plugin."""
        query = f"restype=container&comp=list&prefix={quote(prefix, safe='')}{include}"
        found = ElementTree.fromstring(self.request("GET", f"{self.container}?{query}"))
        return [each.findtext("Name") or "" for each in found.iter("Blob")]

    def uncommitted(self, prefix: str) -> list[str]:
        """The names of the blobs below a prefix that have blocks and were never published."""
        published = self.names(prefix)
        return [each for each in self.names(prefix, "&include=uncommittedblobs") if each not in published]


@pytest.fixture(scope="session")
def azure() -> Iterator[Azure]:
    """A server that ends with the session."""
    with serve_azure() as server:
        yield server


@contextmanager
def serve_azure() -> Iterator[Azure]:
    """A server that ends with the block."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/{ACCOUNT}"
    command = [npm_package("azurite", "3.37.0") / "azurite-blob", "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    options = ["--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry"]
    with running([*command, *options], lambda: answers(f"{url}?comp=list")):
        server = Azure(url)
        server.request("PUT", f"{CONTAINER}?restype=container", b"")
        yield server


def _now() -> str:
    return datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
