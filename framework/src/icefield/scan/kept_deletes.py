"""The cache of delete indexes, for later scans in the same process.

Delete manifests never change, so their index is valid for every snapshot that lists the same ones. The size of an index
includes its cached assignments; the least recently used indexes are evicted first.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from icefield.base.concurrency import LruCache
from icefield.manifest import ManifestFile
from icefield.manifest.cache import cache_scope, decoded_cache
from icefield.manifest.reader import MANIFESTS
from icefield.metadata import TableMetadata
from icefield.scan.delete_index import DeleteIndex
from icefield.storage import FileIO

DELETE_INDEXES: Final[LruCache[Hashable, DeleteIndex]] = decoded_cache(64 << 20)
"""Indexes of all live entries of their manifests, up to a size limit."""


def index_key(
    io: FileIO, metadata: TableMetadata, manifests: Sequence[ManifestFile], *others: Hashable
) -> Hashable | None:
    """The cache key for an index of delete manifests; None if caching is off.

    ``others`` are the other inputs of the index: the schema, and the columns to read.
    """
    scope = cache_scope(io)
    if scope is None or not MANIFESTS.capacity:
        return None
    listed = tuple((io.resolve(one.manifest_path), one.sequence_number, one.partition_spec_id) for one in manifests)
    return (scope, metadata.location, metadata.table_uuid, listed, *others)


def kept_index(key: Hashable | None, *, filtered: bool) -> DeleteIndex | None:
    """The cached index of a key. A filtered scan never gets one with equality deletes, since it needs fewer of them."""
    found = None if key is None else DELETE_INDEXES.get(key)
    return None if found is None or (filtered and found.has_equality_deletes) else found
