"""The REST server of this repository in processes of its own, over a catalog that the caller describes."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing import parent_process
from multiprocessing.process import BaseProcess
from typing import Any

import uvicorn
from forked import forking
from icefield import Plugins, load_catalog
from icefield_rest_server import Settings, app
from killing import Steps, killing_plugins, stepping
from rest_judged import Judged
from servers.process import answers, listening, uri_of
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SECONDS = 60
_PRELOADED = ("rest_process", "icefield_sql.backend", "icefield_sql.strategy")

Methods = tuple[tuple[type, str], ...]


def begin(
    properties: Mapping[str, str],
    address: socket.socket,
    *,
    settings: Mapping[str, Any] | None = None,
    deadly: int | None = None,
    also: Methods = (),
    judged: bool = False,
) -> BaseProcess:
    """A server at an address, over the catalog with these properties; ``judged`` by the description.

    With ``deadly`` its process dies at that step of the first commit. ``killing`` counts the steps; there is one before
    and after each part of the response. ``also`` are further methods that count as steps, with their classes.
    """
    arguments = (dict(properties), address, dict(settings or {}), deadly, also, judged)
    process = forking(*_PRELOADED).Process(target=_serve, args=arguments, daemon=True)
    process.start()
    return process


@contextmanager
def serving(properties: Mapping[str, str], *, judged: bool = False, **settings: Any) -> Iterator[str]:
    """The address of a server that ends with the block."""
    with listening() as address:
        process = begin(properties, address, settings=settings, judged=judged)
        uri = uri_of(address)
        deadline = time.monotonic() + _SECONDS
        while not answers(f"{uri}/health/live"):
            assert process.is_alive(), "the server ended before it answered"
            assert time.monotonic() < deadline, "the server does not answer"
    try:
        yield uri
    finally:
        end(process)


def end(process: BaseProcess) -> None:
    """Stop a server as an operator does; it must end in time."""
    process.terminate()
    process.join(_SECONDS)
    assert process.exitcode is not None, "the server did not stop"


def _serve(
    properties: Mapping[str, str],
    address: socket.socket,
    settings: Mapping[str, Any],
    deadly: int | None,
    also: Methods,
    judged: bool,
) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for owner, name in also:
        setattr(owner, name, stepping(getattr(owner, name)))
    plugins = Plugins.installed() if deadly is None else killing_plugins()
    with load_catalog("served", plugins=plugins, **properties) as catalog:
        served: ASGIApp = app(catalog, Settings(**settings))
        if deadly is not None:
            served = _Deadly(served, deadly)
        if judged:
            served = Judged(served)
        uvicorn.Server(uvicorn.Config(served, log_level="warning")).run(sockets=[address])


def _end_with_parent() -> None:
    """End the server when the process that started it ends, in any way."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


class _Deadly:
    """An application that begins to count steps with the first request that changes something."""

    def __init__(self, inner: ASGIApp, deadly: int) -> None:
        self._inner, self._deadly = inner, deadly

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            return await self._inner(scope, receive, send)

        async def sent(message: Message) -> None:
            Steps.step()
            await send(message)
            Steps.step()

        Steps.done, Steps.deadly = 0, self._deadly
        await self._inner(scope, receive, sent)
        return None
