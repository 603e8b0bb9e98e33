"""A client in the process of an application, which sees the client as a program on its own machine."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient


class LocalClient(TestClient):
    """Requests as they come over the loopback interface, without a socket."""

    def __init__(self, application: Any, **more: Any) -> None:
        given = {"base_url": "http://127.0.0.1:8181", "client": ("127.0.0.1", 50000), **more}
        super().__init__(application, **given)
