"""A cache of the stored bytes of manifests.

A change that removes files from a manifest reads some columns to find them, and then all columns to rewrite the
manifest. The file is fetched once for both.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from icefield.abc import ManifestFormatReader
from icefield.base.concurrency import LruCache
from icefield.base.limits import MAX_MANIFEST_BYTES
from icefield.manifest.cache import decoded_cache
from icefield.manifest.manifest_file import ManifestFile
from icefield.storage import FileIO

FILES_MAX_BYTES: Final = 32 * 1024 * 1024


@dataclass(slots=True)
class FetchedManifest:
    """A manifest's bytes, and the reader, if ``prepare`` has opened it."""

    data: bytes
    reader: ManifestFormatReader | None = None


FILES: Final[LruCache[Hashable, bytes]] = decoded_cache(FILES_MAX_BYTES, len)
"""The manifests that this process fetched last."""


def fetch_manifest(io: FileIO, manifest: ManifestFile, scope: str | None) -> FetchedManifest:
    """The file, from the cache if it is there. ``scope`` is None if nothing is cached."""
    known = None if scope is None else FILES.get(_key(io, manifest, scope))
    if known is not None:
        return FetchedManifest(known)
    return FetchedManifest(io.read(manifest.manifest_path, limit=MAX_MANIFEST_BYTES))


def keep_file(io: FileIO, manifest: ManifestFile, scope: str, data: bytes) -> None:
    """Keep a file that was found sound: a damaged one is fetched again, since it may have been damaged on its way."""
    FILES.put(_key(io, manifest, scope), data)


def _key(io: FileIO, manifest: ManifestFile, scope: str) -> tuple[str, str, int]:
    return scope, io.resolve(manifest.manifest_path), manifest.manifest_length
