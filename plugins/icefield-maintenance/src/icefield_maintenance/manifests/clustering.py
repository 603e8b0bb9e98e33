"""Sorting the entries of manifests, and cutting them into manifests of about equal size.

Live entries are numbered over their manifests. Sorting needs only their partitions. Their other columns are read when
the new manifests are written, for as many new manifests at a time as fit into bounded memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

import numpy as np
from icefield import manifest as f
from icefield.engine import Head
from icefield.manifest import ALL_COLUMNS, EntryStatus, ManifestContent, ManifestEntries, ManifestFile

from icefield_maintenance.manifests.sorting import EXPANSION, HELD_BYTES, EntryReader, Ints, fits, sorted_places

_KEYS: Final = frozenset({f.STATUS, f.PARTITION})


@dataclass(frozen=True, slots=True)
class Clustering:
    """The plan to rewrite some manifests.

    ``order`` holds the numbers of their live entries. ``bounds`` states where each new manifest begins in it, and where
    the last one ends. ``starts`` is the number of the first entry of each old manifest.
    """

    manifests: tuple[ManifestFile, ...]
    spec_id: int
    content: ManifestContent
    order: Ints = field(repr=False)
    starts: Ints = field(repr=False)
    bounds: Ints = field(repr=False)
    live_bytes: int = 0
    held: list[ManifestEntries] = field(default_factory=list, repr=False)

    @property
    def added(self) -> int:
        """How many manifests there will be."""
        return max(0, len(self.bounds) - 1)

    @property
    def count(self) -> int:
        """How many live entries there are."""
        return len(self.order)

    @property
    def is_settled(self) -> bool:
        """Whether no rewrite is needed: each manifest is a range of the order, few are small, none has removals."""
        if any(each.has_deleted_files for each in self.manifests):
            return False
        counts = np.diff(self.starts)
        if not counts.all() or not len(counts):
            return False
        owners = self._owners(self.order)
        ranges = 1 + int(np.count_nonzero(np.diff(owners)))
        return ranges == len(counts) and fits(len(counts), self.added)

    def parts(self, size: int) -> Iterator[Clustering]:
        """The plan in parts of ``size`` new manifests."""
        for first in range(0, self.added, size):
            yield self._part(first, min(first + size, self.added))

    def _part(self, first: int, last: int) -> Clustering:
        """The plan for the new manifests from ``first`` to before ``last``, without held entries."""
        order = self.order[self.bounds[first] : self.bounds[last]]
        owners = self._owners(order)
        wanted = np.unique(owners)
        starts = np.cumsum([0, *np.diff(self.starts)[wanted]])
        return replace(
            self,
            manifests=tuple(self.manifests[owner] for owner in wanted.tolist()),
            order=order - self.starts[owners] + starts[np.searchsorted(wanted, owners)],
            starts=starts,
            bounds=self.bounds[first : last + 1] - self.bounds[first],
            live_bytes=self.live_bytes * (last - first) // self.added,
            held=[],
        )

    def entries(self, head: EntryReader) -> Iterator[list[ManifestEntries]]:
        """The entries of each new manifest, in their order."""
        for first, last in self._passes():
            numbers = np.sort(self.order[self.bounds[first] : self.bounds[last]])
            together = self._read(head, numbers)
            for start, stop in pairwise(self.bounds[first : last + 1].tolist()):
                places = np.searchsorted(numbers, self.order[start:stop])
                whole = len(places) == len(numbers) and bool((np.diff(places) == 1).all())
                yield [together if whole else together.take(places)]

    def _passes(self) -> Iterator[tuple[int, int]]:
        """Ranges of new manifests; the entries of each range are read together."""
        at_once = max(1, self.added) if self.held else max(1, HELD_BYTES // (EXPANSION * self._bytes_each()))
        for first in range(0, self.added, at_once):
            yield first, min(first + at_once, self.added)

    def _bytes_each(self) -> int:
        return max(1, self.live_bytes // max(1, self.added))

    def _read(self, head: EntryReader, numbers: Ints) -> ManifestEntries:
        """The entries with these ascending numbers. Held entries are released."""
        owners = self._owners(numbers)
        wanted = np.unique(owners).tolist()
        if self.held:
            read: Iterator[ManifestEntries] = iter([self.held[owner] for owner in wanted])
            self.held.clear()
        else:
            read = head.read([self.manifests[owner] for owner in wanted], ALL_COLUMNS, rewriting=True)
        ends = np.searchsorted(owners, wanted, side="right").tolist()
        parts = []
        for owner, start, end, entries in zip(wanted, [0, *ends[:-1]], ends, read, strict=True):
            live = np.flatnonzero(entries.status() != EntryStatus.DELETED)
            rows = live[numbers[start:end] - self.starts[owner]]
            parts.append(entries if len(rows) == len(entries) else entries.take(rows))
        return ManifestEntries.concat([part.select(ALL_COLUMNS) for part in parts])

    def _owners(self, numbers: Ints) -> Ints:
        """The position of each entry's manifest."""
        owners: Ints = np.searchsorted(self.starts, numbers, side="right") - 1
        return owners


def cluster(
    head: Head, manifests: Sequence[ManifestFile], cluster_by: Sequence[str], target_bytes: int, *, hold: bool
) -> Clustering:
    """Order the live entries of manifests of one spec and content, and cut the order into manifests of one size.

    Entries of equal partitions keep their order. ``hold``: read all columns at once if they fit into memory, since the
    entries are about to be written.
    """
    spec = head.spec(manifests[0].partition_spec_id)
    hold = hold and EXPANSION * sum(max(0, one.manifest_length) for one in manifests) <= HELD_BYTES
    counts: list[int] = []
    partitions: list[ManifestEntries] = []
    held: list[ManifestEntries] = []
    live_bytes = 0.0
    read = head.read(manifests, ALL_COLUMNS if hold else _KEYS, rewriting=hold)
    for manifest, entries in zip(manifests, read, strict=True):
        live = entries.select(_KEYS).filter(entries.live())
        counts.append(len(live))
        partitions.append(live)
        live_bytes += max(0, manifest.manifest_length) * (len(live) / max(1, len(entries)))
        if hold:
            held.append(entries)
    total = sum(counts)
    added = min(total, math.ceil(live_bytes / target_bytes)) if total else 0
    return Clustering(
        tuple(manifests),
        spec.spec_id,
        manifests[0].content,
        sorted_places(ManifestEntries.concat(partitions), spec, cluster_by),
        np.cumsum([0, *counts]),
        np.array([total * place // added for place in range(added + 1)] if added else [0], np.int64),
        int(live_bytes),
        held,
    )
