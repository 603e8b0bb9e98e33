"""The delete index of a table, kept for the next scans of the same process.

A delete manifest never changes, so the index of certain ones is right for every snapshot that lists them. An index
counts with what it holds and with what was assigned through it; the least recently used ones go first.
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
"""Indexes of all live entries of their manifests, up to a bound."""


def index_key(
    io: FileIO, metadata: TableMetadata, manifests: Sequence[ManifestFile], *others: Hashable
) -> Hashable | None:
    """What an index of delete manifests of a table is kept under; None where nothing is kept.

    ``others`` is whatever else the index depends on: the schema, and the columns that are read.
    """
    scope = cache_scope(io)
    if scope is None or not MANIFESTS.capacity:
        return None
    listed = tuple((io.resolve(one.manifest_path), one.sequence_number, one.partition_spec_id) for one in manifests)
    return (scope, metadata.location, metadata.table_uuid, listed, *others)


def kept_index(key: Hashable | None, *, filtered: bool) -> DeleteIndex | None:
    """The index of a key. One with equality deletes serves no scan with a filter, to which fewer of them apply."""
    found = None if key is None else DELETE_INDEXES.get(key)
    return None if found is None or (filtered and found.has_equality_deletes) else found
