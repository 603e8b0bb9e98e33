"""Decoded manifests in the caches of this process and, if a folder is set, of this machine.

A manifest is kept in two parts. The columns and statistics that filters test are one; all other columns are the other.
Repeated filters use the first part of each manifest and the second part of few, so that under pressure the second part
goes first. Whole maps of statistics have a small cache of their own: they never displace what plans need.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Final

import pyarrow as pa

from icefield.base.concurrency import LruCache, ReuseCache, lazy
from icefield.base.memory import memory_limit
from icefield.errors import InvalidArgument
from icefield.manifest import schemas as f
from icefield.manifest.cache import FILES, FILES_MAX_BYTES, decoded_cache
from icefield.manifest.columns import MAP_TYPES, PLAN_COLUMNS
from icefield.manifest.disk_cache import DiskCache
from icefield.manifest.entries import ManifestEntries, StatisticKey
from icefield.manifest.manifest_file import ManifestFile
from icefield.manifest.statistics import StatisticsRequest

TESTED_COLUMNS: Final = frozenset({f.STATUS, f.PARTITION, f.RECORD_COUNT})
"""The columns that filters test, besides statistics."""

_SHARE_OF_MEMORY: Final = 8
_LEAST_BYTES: Final = 64 << 20
_MOST_BYTES: Final = 4 << 30
_STATISTICS_MAX_BYTES: Final = 192 << 20
_LEAST_ON_DISK: Final = 16 * 1024
"""The size in bytes below which a manifest is decoded as fast as it is loaded."""


@dataclass(frozen=True)
class ManifestRequest:
    """The wanted parts of a manifest.

    ``columns``: ids of entry and data file fields; statistics maps among them are read whole. ``statistics``: the
    statistics of single fields instead, by map. ``where_unbounded``: further statistics, read only for fields that lack
    bounds in some entry. ``statistics`` must ask for the bounds of these fields. ``partly``: entries from a cache may
    have only the columns of ``TESTED_COLUMNS``; the caller reads the others for the manifests with matching entries.
    ``encoded``: whole maps may be the bytes that a ``ManifestWriter`` takes for them, since nothing else reads them.
    """

    columns: frozenset[int] = PLAN_COLUMNS
    statistics: StatisticsRequest = field(default_factory=dict)
    where_unbounded: StatisticsRequest = field(default_factory=dict)
    partly: bool = False
    encoded: bool = False

    @lazy
    def tested(self) -> ManifestRequest:
        """The part of this request for the columns and statistics that filters test."""
        return replace(self, columns=self.columns & TESTED_COLUMNS | {f.STATUS}, partly=False)

    @lazy
    def keys(self) -> frozenset[StatisticKey]:
        """The keys of the single statistics."""
        both = (*self.statistics.items(), *self.where_unbounded.items())
        return frozenset((kind, number) for kind, ids in both for number in ids)


@dataclass(slots=True)
class DecodedManifest:
    """The decoded part of a manifest, and the single statistics that were requested so far."""

    entries: ManifestEntries
    statistics: frozenset[StatisticKey] = field(default_factory=frozenset)

    @property
    def nbytes(self) -> int:
        """The bytes of the columns."""
        return self.entries.nbytes

    def only(self, columns: Collection[int], keys: Collection[StatisticKey] | None = None) -> DecodedManifest:
        """Some of the columns, and the single statistics of some keys, or all."""
        entries, statistics = self.entries, self.entries.statistics
        if keys is not None:
            statistics = {key: value for key, value in list(statistics.items()) if key[:2] in keys}
        read = entries.read.intersection(columns)
        kept = {number: array for number, array in entries.columns.items() if number in read}
        made = ManifestEntries(entries.manifest, len(entries), kept, statistics, read)
        return DecodedManifest(made, self.statistics if keys is None else self.statistics.intersection(keys))


def default_capacity() -> int:
    """The bytes that decoded manifests may take by default: an eighth of the memory, 64 MiB to 4 GiB."""
    return min(max(_LEAST_BYTES, memory_limit() // _SHARE_OF_MEMORY), _MOST_BYTES)


MANIFESTS: Final[LruCache[Hashable, DecodedManifest]] = decoded_cache(default_capacity(), kind=ReuseCache)
"""The parts of all manifests that were decoded in this process, up to a bound."""

STATISTICS: Final[LruCache[Hashable, DecodedManifest]] = decoded_cache(_STATISTICS_MAX_BYTES, kind=ReuseCache)
"""The whole statistics of manifests, which are many times larger than the columns that plans need."""


def resize_caches(max_bytes: int | None = None) -> None:
    """Let decoded manifests take up to this many bytes. Zero keeps none.

    The default is an eighth of the memory of the machine, or of its container if it has less: 64 MiB at least and 4 GiB
    at most. In addition, the stored bytes of manifests take up to an eighth of it and at most 32 MiB, and whole
    statistics up to an eighth and at most 192 MiB.

    Raises ``InvalidArgument`` below zero.
    """
    capacity = default_capacity() if max_bytes is None else max_bytes
    if capacity < 0:
        raise InvalidArgument(f"a cache cannot hold {capacity} bytes")
    MANIFESTS.resize(capacity)
    FILES.resize(min(FILES_MAX_BYTES, capacity // 8))
    STATISTICS.resize(min(_STATISTICS_MAX_BYTES, capacity // 8))


class KnownManifests:
    """The decoded manifests of one file IO: in memory, and in a folder if ``disk`` is given."""

    def __init__(self, disk: DiskCache | None) -> None:
        self._disk = disk

    @staticmethod
    def in_memory(key: Hashable) -> bool:
        """Whether a part of a manifest is in memory."""
        return (True, key) in MANIFESTS or (False, key) in MANIFESTS

    def get(self, key: Hashable, manifest: ManifestFile, request: ManifestRequest) -> DecodedManifest | None:
        """The known part of a manifest, if any of what ``request`` asks for is known."""
        parts = [MANIFESTS.get((True, key))]
        if not request.partly and not request.columns <= TESTED_COLUMNS:
            parts.append(MANIFESTS.get((False, key)))
            if request.columns & MAP_TYPES.keys() and not request.encoded:
                parts.append(STATISTICS.get(key))
        held = [part for part in parts if part is not None]
        found = reduce(merged, held) if held else None
        if self._disk is None or not _belongs_on_disk(manifest, request):
            return found
        for stored in _on_disk(request):
            if found is None or missing_part(found, stored) is not None:
                entries = self._disk.load(_name(key, stored), manifest)
                if entries is not None:
                    loaded = DecodedManifest(entries, frozenset(entries.statistics))
                    found = loaded if found is None else merged(found, loaded)
                    _keep(key, stored, found)
        return found

    def put(self, key: Hashable, manifest: ManifestFile, request: ManifestRequest, decoded: DecodedManifest) -> None:
        """Keep a manifest that was decoded for ``request``."""
        _keep(key, request, decoded)
        if self._disk is not None and _belongs_on_disk(manifest, request):
            for stored in _on_disk(request):
                self._disk.store(_name(key, stored), decoded.only(stored.columns, stored.keys).entries)


def _keep(key: Hashable, request: ManifestRequest, decoded: DecodedManifest) -> None:
    """Keep both parts of a manifest in memory."""
    tested = decoded.only(TESTED_COLUMNS)
    if not MANIFESTS.put((True, key), tested):
        # There may be no room for the statistics of other fields.
        MANIFESTS.put((True, key), tested.only(TESTED_COLUMNS, request.keys))
    if columns := decoded.entries.read - TESTED_COLUMNS - MAP_TYPES.keys():
        MANIFESTS.put((False, key), decoded.only(columns, ()))
    if (maps := decoded.entries.read & MAP_TYPES.keys()) and not request.encoded:
        STATISTICS.put(key, decoded.only(maps, ()))


def _on_disk(request: ManifestRequest) -> list[ManifestRequest]:
    """A request, divided by files: one for the parts that filters test, and one for the other columns."""
    tested = [request.tested] if request.statistics else []
    return tested if request.partly and tested else [*tested, ManifestRequest(request.columns)]


def _belongs_on_disk(manifest: ManifestFile, asked: ManifestRequest) -> bool:
    """Whether a part of a manifest may be on disk: never of an encrypted one."""
    plain = manifest.key_metadata is None and manifest.manifest_length >= _LEAST_ON_DISK
    return plain and not asked.columns & MAP_TYPES.keys()


def _name(key: Hashable, stored: ManifestRequest) -> tuple[Any, ...]:
    return key, sorted(stored.columns), sorted(stored.keys)


def _lacks_bounds(statistic: Callable[[tuple[int, int]], pa.Array | None], number: int) -> bool:
    """Whether a field has no lower or upper bound in some entry."""
    bounds = [statistic((kind, number)) for kind in (f.LOWER_BOUNDS, f.UPPER_BOUNDS)]
    return any(one is None or one.null_count > 0 for one in bounds)


def among(request: StatisticsRequest, ids: Collection[int]) -> StatisticsRequest:
    """The request, limited to these field ids."""
    narrowed = {kind: wanted.intersection(ids) for kind, wanted in request.items()}
    return {kind: wanted for kind, wanted in narrowed.items() if wanted}


def joined_requests(left: StatisticsRequest, right: StatisticsRequest) -> StatisticsRequest:
    """Both requests together."""
    return {kind: left.get(kind, frozenset()) | right.get(kind, frozenset()) for kind in {*left, *right}}


def missing_part(known: DecodedManifest, request: ManifestRequest) -> ManifestRequest | None:
    """The request for the parts that are not decoded yet; None if all are."""
    columns = request.columns - known.entries.read
    statistics = _unread(known, request.statistics)
    more = _unread(known, request.where_unbounded)
    if more and not statistics:
        # The bounds are known, so the fields that need more statistics are known, too.
        fields = {number for ids in more.values() for number in ids}
        lacking = {number for number in fields if _lacks_bounds(lambda key: known.entries.statistic(*key), number)}
        statistics, more = among(more, lacking), {}
    rest = replace(request, columns=columns, statistics=statistics, where_unbounded=more)
    return rest if columns or statistics else None


def _unread(known: DecodedManifest, request: StatisticsRequest) -> StatisticsRequest:
    return {
        kind: frozenset(left)
        for kind, ids in request.items()
        if kind not in known.entries.read and (left := [one for one in ids if (kind, one) not in known.statistics])
    }


def merged(known: DecodedManifest, more: DecodedManifest) -> DecodedManifest:
    """Everything that is known of a manifest. The old object stays unchanged: other threads may be reading it."""
    held = known.entries.statistics
    entries = ManifestEntries(
        known.entries.manifest,
        known.entries.num_rows,
        {**known.entries.columns, **more.entries.columns},
        # Bounds that are decoded later are kept with the known part.
        {**held, **more.entries.statistics} if more.entries.statistics else held,
        known.entries.read | more.entries.read,
    )
    return DecodedManifest(entries, known.statistics | more.statistics)
