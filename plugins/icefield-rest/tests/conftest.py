"""The server of this repository, over SQLite, for the client to stand before; and a judge of what the client asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from icefield import load_catalog
from icefield_rest import connection
from icefield_rest_server import app
from jsonschema import ValidationError
from rest_description import check_whole_request
from rest_served import served


@pytest.fixture
def our_rest(tmp_path: Path) -> Iterator[str]:
    """The address of a server whose catalog is new."""
    uri, warehouse = f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse"
    with load_catalog("served", type="sql", uri=uri, warehouse=warehouse) as catalog, served(app(catalog)) as address:
        yield address


@pytest.fixture(autouse=True)
def all_requests_are_as_described(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The OpenAPI description judges every request of the protocol that a test has the client make."""
    wrong: list[str] = []
    made = connection.client_of

    def judged(settings: Any) -> Any:
        client = made(settings)
        base = httpx.URL(settings.uri).path.rstrip("/")

        def judge(request: httpx.Request) -> None:
            path = request.url.raw_path.decode()
            if not path.startswith(f"{base}/v1/") or path.startswith(f"{base}/v1/oauth/"):
                return  # what a service names itself, and tokens
            headers = {name.lower(): value for name, value in request.headers.items()}
            try:
                check_whole_request(
                    request.method, path.removeprefix(base), headers, request.read(), prefix=settings.prefix
                )
            except (ValidationError, ValueError) as error:
                wrong.append(f"{request.method} {path}: {str(error)[:1_000]} in {request.content[:2_000]!r}")

        client.event_hooks = {"request": [judge]}
        return client

    monkeypatch.setattr(connection, "client_of", judged)
    yield
    assert not wrong, "\n".join(wrong)
