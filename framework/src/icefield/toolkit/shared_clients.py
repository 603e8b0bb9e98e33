"""Clients of a store, one for all file systems that are configured alike."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from typing import Any, Final, Generic, TypeVar
from weakref import WeakSet, WeakValueDictionary

C = TypeVar("C")


class SharedClients(Generic[C]):
    """Clients by what configures them, each kept as long as somebody holds it; a forked process has its own.

    A forked process never lets go of those of its parent. To close a connection there would take it from the parent's
    event loop, which watches it through the same object of the kernel: an answer would wait until the time-out.
    """

    def __init__(self) -> None:
        self._clients: WeakValueDictionary[tuple[int, Hashable], C] = WeakValueDictionary()
        _SHARED.add(self)

    def get(self, key: Hashable, make: Callable[[], C]) -> C:
        """The client of this process for ``key``, made if there is none."""
        here = (os.getpid(), key)
        client = self._clients.get(here)
        if client is None:
            client = self._clients.setdefault(here, make())
        return client


_SHARED: Final[WeakSet[SharedClients[Any]]] = WeakSet()
_INHERITED: Final[list[Any]] = []


def _inherit() -> None:
    for shared in list(_SHARED):
        _INHERITED.extend(shared._clients.values())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_inherit)
