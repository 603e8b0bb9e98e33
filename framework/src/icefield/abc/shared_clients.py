"""Clients of a store, one for all file systems that are configured alike."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

C = TypeVar("C")


class SharedClients(Generic[C]):
    """Clients by what configures them, each kept as long as somebody holds it; a forked process has its own."""

    def __init__(self) -> None:
        self._clients: WeakValueDictionary[tuple[int, Hashable], C] = WeakValueDictionary()

    def get(self, key: Hashable, make: Callable[[], C]) -> C:
        """The client of this process for ``key``, made if there is none."""
        here = (os.getpid(), key)
        client = self._clients.get(here)
        if client is None:
            client = self._clients.setdefault(here, make())
        return client
