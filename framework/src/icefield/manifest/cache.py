"""Values decoded from immutable files, kept by location and bounded by bytes.

Manifests and manifest lists are written once under a unique name, so a decoded value stays right. The cache counts the
bytes of its Arrow buffers. The stored bytes of manifests are kept as well: a change that removes files from a manifest
reads some columns to find them, and then all columns to rewrite it. The file is fetched once for both. A manifest that
this process wrote is not fetched at all. The stored bytes of metadata files are kept for repeated loads of a table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, TypeVar

from icefield.abc import ManifestFormatReader, OutputStream
from icefield.base.concurrency import LruCache
from icefield.storage import FileIO

FILES_MAX_BYTES: Final = 32 * 1024 * 1024
CACHE_ENABLED: Final = "io.manifest.cache-enabled"
"""Property of a catalog: ``false`` keeps its tables out of the cache."""

V = TypeVar("V")

_CACHES: Final[list[LruCache[Any, Any]]] = []


def decoded_cache(
    max_bytes: int,
    size_of: Callable[[V], int] = attrgetter("nbytes"),
    kind: Callable[[int, Callable[[V], int]], LruCache[Hashable, V]] = LruCache,
) -> LruCache[Hashable, V]:
    """A cache of this process that ``clear_caches`` empties."""
    cache = kind(max_bytes, size_of)
    _CACHES.append(cache)
    return cache


def clear_caches() -> None:
    """Drop all decoded manifests and manifest lists of this process, and all objects derived from them.

    Only memory is freed; results never change.
    """
    for cache in _CACHES:
        cache.clear()


def cache_scope(io: FileIO) -> str | None:
    """The cache key of a file IO, which separates its files from another file IO's; None if it must not cache.

    With different properties, the same location may mean other files or other permissions.
    """
    if io.properties.get(CACHE_ENABLED, "true").lower() == "false":
        return None
    string = repr(sorted(io.properties.items()))
    return hashlib.blake2b(string.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@dataclass(slots=True)
class FetchedManifest:
    """A manifest's bytes, and the reader, if ``prepare`` has opened it."""

    data: bytes
    reader: ManifestFormatReader | None = None


FILES: Final[LruCache[Hashable, bytes]] = decoded_cache(FILES_MAX_BYTES, len)
"""The stored bytes of the manifests and metadata files that this process fetched or wrote last."""


def file_key(io: FileIO, scope: str | None, location: str, size: int) -> tuple[Any, ...]:
    """The key of a manifest in ``FILES``."""
    return scope, io.resolve(location), size


class KeptOutput(OutputStream):
    """A stream to a new manifest whose bytes are kept in ``FILES``, unless they exceed a sixteenth of it."""

    def __init__(self, io: FileIO, location: str) -> None:
        self._io, self._location = io, location
        self.file = io.create(location)
        self._stream = self.file.sink
        self._kept: bytearray | None = bytearray()

    def write(self, data: Any, /) -> int:
        count = self._stream.write(data)
        if self._kept is not None:
            self._kept += data
            if len(self._kept) > FILES_MAX_BYTES // 16:
                self._kept = None
        return count

    def tell(self) -> int:
        return self._stream.tell()

    def close(self) -> None:
        self._stream.close()
        kept, self._kept = self._kept, None
        scope = cache_scope(self._io)
        if kept is not None and scope is not None:
            FILES.put(file_key(self._io, scope, self._location, self.file.stored(len(kept))[0]), bytes(kept))

    def abort(self) -> None:
        self._kept = None
        self._stream.abort()

    @property
    def closed(self) -> bool:
        return self._stream.closed
