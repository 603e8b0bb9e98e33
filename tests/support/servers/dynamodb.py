"""DynamoDB on loopback: dynalite, which enforces the conditions of writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from servers.process import free_port, listens, npm_package, running


@pytest.fixture(scope="session")
def dynamodb() -> Iterator[dict[str, str]]:
    """The properties that reach a server which ends with the session."""
    port = free_port()
    command = [npm_package("dynalite", "4.0.0") / "dynalite", "--host", "127.0.0.1", "--port", str(port)]
    goes_on = {"NODE_OPTIONS": f"--require={Path(__file__).with_name('goes_on.cjs')}"}
    command += ["--createTableMs", "0", "--deleteTableMs", "0"]
    with running(command, lambda: listens(port), environment=goes_on):
        yield {
            "dynamodb.endpoint": f"http://127.0.0.1:{port}",
            "dynamodb.region": "us-east-1",
            "dynamodb.access-key-id": "test",
            "dynamodb.secret-access-key": "planted-secret",
        }
