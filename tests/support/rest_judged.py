"""A wrapper of a REST server that records every request of a client that violates the OpenAPI description."""

from __future__ import annotations

import json
from typing import Final
from urllib.request import urlopen

from jsonschema import ValidationError
from rest_description import check_whole_request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_JUDGEMENT: Final = "/judgement"
_OWN: Final = ("/health", "/metrics", _JUDGEMENT)
_SHOWN: Final = 20


class Judged:
    """An ASGI application in front of a server: it passes requests on unchanged, and records their defects."""

    def __init__(self, inner: ASGIApp) -> None:
        self._inner = inner
        self.count = 0
        self.wrong: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._inner(scope, receive, send)
        path = scope["raw_path"].decode()
        if path == _JUDGEMENT:
            return await _said(send, {"count": self.count, "wrong": self.wrong[:_SHOWN]})
        if path.startswith(_OWN):
            return await self._inner(scope, receive, send)
        messages: list[Message] = []
        while not messages or messages[-1].get("more_body"):
            messages.append(await receive())
        self._judge(scope, path, b"".join(each.get("body", b"") for each in messages))
        left = iter(messages)

        async def again() -> Message:
            return next(left, None) or await receive()

        await self._inner(scope, again, send)
        return None

    def _judge(self, scope: Scope, path: str, body: bytes) -> None:
        self.count += 1
        url = path + ("?" + scope["query_string"].decode() if scope["query_string"] else "")
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            check_whole_request(scope["method"], url, headers, body)
        except (ValidationError, ValueError) as error:
            self.wrong.append(f"{scope['method']} {url}: {str(error)[:1_000]} in {body[:2_000]!r}")


def judgement(uri: str) -> int:
    """The number of requests to a judged server. Raises ``AssertionError`` if one violated the description."""
    with urlopen(f"{uri}{_JUDGEMENT}", timeout=30) as answer:
        found = json.load(answer)
    assert not found["wrong"], "\n".join(found["wrong"])
    count: int = found["count"]
    return count


async def _said(send: Send, found: object) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": json.dumps(found).encode()})
