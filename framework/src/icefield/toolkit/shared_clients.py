"""Clients of a store, one for all file systems that are configured alike."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from icefield.base.concurrency import reset_after_fork

C = TypeVar("C")


class SharedClients(Generic[C]):
    """Clients by what configures them, each kept as long as somebody holds it; a forked process has its own.

    A forked process never lets go of those of its parent. To close a connection there would take it from the parent's
    event loop, which watches it through the same object of the kernel: an answer would wait until the time-out.
    """

    def __init__(self) -> None:
        self._inherited: list[object] = []
        self._clients: WeakValueDictionary[Hashable, C] = WeakValueDictionary()
        reset_after_fork(self._begin)

    def _begin(self) -> None:
        self._inherited += [self._clients, *self._clients.values()]
        self._clients = WeakValueDictionary()

    def get(self, key: Hashable, make: Callable[[], C]) -> C:
        """The client of this process for ``key``, made if there is none."""
        client = self._clients.get(key)
        if client is None:
            client = self._clients.setdefault(key, make())
        return client
