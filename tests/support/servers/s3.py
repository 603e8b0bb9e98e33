"""S3 on loopback: moto's server, in memory, one request at a time. It checks no signature."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen
from xml.etree import ElementTree

import pytest

from servers.process import answers, free_port, running, unavailable

BUCKET = "icefield"
SECRET = "planted-secret-of-s3"
# The server reads the signer from a signature, and does not verify the signature.
_SIGNED = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
_MODULES = ("moto", "flask", "flask_cors")
_PROGRAM = Path(__file__).parents[1] / "serial_moto.py"


@dataclass(frozen=True)
class S3:
    """A running server: its address, and the bucket that is there."""

    url: str
    bucket: str = BUCKET

    @property
    def properties(self) -> dict[str, str]:
        """The properties of a file system that reaches it."""
        return {
            "s3.endpoint": self.url,
            "s3.region": "us-east-1",
            "s3.access-key-id": "test",
            "s3.secret-access-key": SECRET,
        }

    def request(self, method: str, path: str, data: bytes | None = None) -> bytes:
        """One request without any client; ``path`` is quoted and begins with the bucket."""
        headers = {} if data is None else {"Content-Type": "application/octet-stream"}
        asked = Request(f"{self.url}/{path}", data=data, headers={**headers, "Authorization": _SIGNED}, method=method)
        with urlopen(asked, timeout=10) as answer:
            return answer.read()

    def get(self, key: str) -> bytes | None:
        """The bytes of an object."""
        try:
            return self.request("GET", f"{self.bucket}/{quote(key)}")
        except HTTPError as error:
            if error.code == 404:
                return None
            raise

    def put(self, key: str, data: bytes) -> None:
        """Write an object."""
        self.request("PUT", f"{self.bucket}/{quote(key)}", data)

    def keys(self, prefix: str) -> list[str]:
        """The names of the objects that begin with a prefix, a page of the store at most."""
        found = self.request("GET", f"{self.bucket}?list-type=2&prefix={quote(prefix, safe='')}")
        return _keys(found)

    def uploads(self, prefix: str) -> list[str]:
        """The names, with a prefix, of the uploads that were begun and neither completed nor aborted."""
        return [key for key in _keys(self.request("GET", f"{self.bucket}?uploads")) if key.startswith(prefix)]

    def unpublished(self, key: str = "") -> int:
        """How many uploads to a key, or to any, were begun and neither completed nor aborted."""
        return sum(key in ("", each) for each in self.uploads(""))


def _keys(answer: bytes) -> list[str]:
    tags = ElementTree.fromstring(answer).iter()
    return [element.text or "" for element in tags if element.tag.rpartition("}")[2] == "Key"]


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    """A server that ends with the session."""
    with serve_s3() as server:
        yield server


@contextmanager
def serve_s3() -> Iterator[S3]:
    """A server that ends with the block."""
    missing = [name for name in _MODULES if find_spec(name) is None]
    if missing:
        unavailable(f"the package {missing[0]} is not installed")
    port = free_port()
    # Parts may be smaller than the 5 MiB of S3, so that tests need no large files.
    settings = {"S3_UPLOAD_PART_MIN_SIZE": "1", "MOTO_S3_DEFAULT_KEY_BUFFER_SIZE": str(2**30)}
    server = S3(f"http://127.0.0.1:{port}")
    with running([sys.executable, _PROGRAM, str(port)], lambda: answers(server.url), environment=settings):
        server.request("PUT", server.bucket)
        yield server
