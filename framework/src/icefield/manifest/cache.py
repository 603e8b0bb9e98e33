"""What was decoded of immutable files, kept by location and bounded by bytes.

Manifests and manifest lists are written once under a unique name, so what was decoded of one stays right. An entry
counts with the bytes of its Arrow buffers; the least recently used ones go first.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, Final, Generic, Protocol, TypeVar
from weakref import WeakSet

from icefield.base import reset_after_fork
from icefield.errors import InvalidArgument
from icefield.storage import FileIO

DEFAULT_MAX_BYTES: Final = 256 * 1024 * 1024
CACHE_ENABLED: Final = "io.manifest.cache-enabled"
"""Property of a catalog: ``false`` keeps its tables out of the cache."""


class _Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


V = TypeVar("V", bound=_Sized)

_CACHES: Final[WeakSet[ByteBoundedCache[Any]]] = WeakSet()


class ByteBoundedCache(Generic[V]):
    """A thread-safe cache that holds the values used last, up to a number of bytes."""

    def __init__(self, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._begin()
        _CACHES.add(self)
        reset_after_fork(self._begin)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._total = 0
        self._values: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        return self._total

    @property
    def max_bytes(self) -> int:
        """The bound."""
        return self._max_bytes

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> V | None:
        """The value of a key, which then counts as used last."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: V) -> None:
        """Keep a value, or weigh one anew that has grown; others go until all fit. One beyond the bound is not kept."""
        size = value.nbytes
        with self._lock:
            self._remove(key)
            if size > self._max_bytes:
                return
            self._values[key] = (value, size)
            self._total += size
            self._shrink()

    def resize(self, max_bytes: int) -> None:
        """Set the bound. Raises ``InvalidArgument`` below zero."""
        if max_bytes < 0:
            raise InvalidArgument(f"a cache cannot hold {max_bytes} bytes")
        with self._lock:
            self._max_bytes = max_bytes
            self._shrink()

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._values.clear()
            self._total = 0

    def _remove(self, key: Hashable) -> None:
        found = self._values.pop(key, None)
        if found is not None:
            self._total -= found[1]

    def _shrink(self) -> None:
        while self._total > self._max_bytes:
            _, (_, size) = self._values.popitem(last=False)
            self._total -= size


def clear_caches() -> None:
    """Drop all that this process has decoded of manifests and manifest lists, and what was made of it.

    Only memory is freed; results never change.
    """
    for cache in list(_CACHES):
        cache.clear()


def cache_scope(io: FileIO) -> str | None:
    """What separates the cached files of one file IO from those of another; None when it must not cache.

    Different properties may mean other files, or other rights, under the same location.
    """
    if io.properties.get(CACHE_ENABLED, "true").lower() == "false":
        return None
    string = repr(sorted(io.properties.items()))
    return hashlib.blake2b(string.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
