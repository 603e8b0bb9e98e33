"""Clients of a store, shared by all file systems with the same configuration."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary, finalize

from icefield.base.concurrency import reset_after_fork

C = TypeVar("C")


class SharedClients(Generic[C]):
    """Clients by their configuration, each kept as long as it is referenced; a forked process has its own clients.

    A forked process never releases the clients of its parent. Closing a connection there would remove it from the
    parent's event loop, which watches it through the same kernel object: a response would wait until the time-out.
    """

    def __init__(self) -> None:
        self._inherited: list[object] = []
        self._clients: WeakValueDictionary[Hashable, C] = WeakValueDictionary()
        reset_after_fork(self._begin)

    def _begin(self) -> None:
        self._inherited += [self._clients, *self._clients.values()]
        self._clients = WeakValueDictionary()

    def get(self, key: Hashable, make: Callable[[], C]) -> C:
        """The client of this process for ``key``; a missing client is made."""
        client = self._clients.get(key)
        if client is None:
            client = self._clients.setdefault(key, make())
        return client


def close_with(owner: object, loop: asyncio.AbstractEventLoop, *opened: Any) -> None:
    """Close connections when their owner is garbage, only in the process that opened them, without waiting.

    ``opened`` are objects whose ``close`` is a coroutine function, which runs in ``loop``; an object without it needs
    no closing.
    """
    finalize(owner, _close, os.getpid(), loop, [one.close for one in opened if hasattr(one, "close")])


def _close(process: int, loop: asyncio.AbstractEventLoop, closing: Sequence[Callable[[], Awaitable[None]]]) -> None:
    if process == os.getpid() and loop.is_running():
        asyncio.run_coroutine_threadsafe(_each(closing), loop)


async def _each(closing: Sequence[Callable[[], Awaitable[None]]]) -> None:
    for close in closing:
        await close()
