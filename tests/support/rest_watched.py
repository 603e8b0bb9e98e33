"""A REST server in its own process, which reports the longest time that its event loop was blocked."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from socket import socket
from typing import Any

import uvicorn
from forked import forking
from icefield import load_catalog
from icefield_rest_server import Settings, app
from icefield_rest_server.wire import BoundedHttp
from rest_process import end
from servers.process import answers, listening, uri_of

LONGEST = "/longest-gap"
"""Answers with the longest gap between two turns of the loop since it was asked last."""

_TICK = 0.002


@contextmanager
def watched(properties: Mapping[str, str], **of_wire: Any) -> Iterator[str]:
    """The address of the server, until the block ends. ``of_wire`` are the limits of its connections."""
    with listening() as address:
        process = forking().Process(target=_serve, args=(dict(properties), address, of_wire), daemon=True)
        process.start()
        uri = uri_of(address)
        while not answers(f"{uri}/health/live"):
            assert process.is_alive(), "the server ended before it answered"
    try:
        yield uri
    finally:
        end(process)


class _Watching:
    """An application that measures the gaps between turns of the event loop.

    A gap is in seconds of the process's own CPU time, so that other processes of the machine do not count.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._longest = 0.0
        self._watch: asyncio.Task[None] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._watch is None:
            self._watch = asyncio.get_running_loop().create_task(self._turns())
        if scope["type"] != "http" or scope["path"] != LONGEST:
            return await self._inner(scope, receive, send)
        found, self._longest = self._longest, 0.0
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": f"{found:.6f}".encode()})
        return None

    async def _turns(self) -> None:
        last = time.process_time()
        while True:
            await asyncio.sleep(_TICK)
            now = time.process_time()
            self._longest = max(self._longest, now - last)
            last = now


def _serve(properties: Mapping[str, str], address: socket, of_wire: Mapping[str, Any]) -> None:
    bounded: Any = type("Bounded", (BoundedHttp,), {**of_wire, "_unread": {}})
    with contextlib.suppress(KeyboardInterrupt), load_catalog("served", **properties) as catalog:
        given: dict[str, Any] = {"http": bounded, "proxy_headers": False, "log_level": "warning"}
        uvicorn.Server(uvicorn.Config(_Watching(app(catalog, Settings())), **given)).run(sockets=[address])
