"""Sorting the entries of manifests, and cutting them into manifests of about equal size.

Live entries are numbered over their manifests. Sorting needs only their partitions. Their other columns are read when
the new manifests are written, for as many new manifests at a time as fit into bounded memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from icefield import manifest as f
from icefield.engine import Head
from icefield.manifest import ALL_COLUMNS, EntryStatus, ManifestContent, ManifestEntries, ManifestFile
from icefield.partitioning import PartitionSpec

Ints = npt.NDArray[np.int64]

HELD_BYTES: Final = 384 << 20
"""The most bytes of decoded entries in memory."""

_EXPANSION: Final = 16
"""The estimated memory for a byte of a manifest: its decoded entries, and the buffers to sort them."""

_KEYS: Final = frozenset({f.STATUS, f.PARTITION})

_FULL_ENOUGH: Final = 0.6
"""Manifests of at least this share of the target size are not rewritten for their size."""


class EntryReader(Protocol):
    """Reads manifests of one table: a ``Head``, or its counterpart on executors."""

    def read(self, manifests: Sequence[ManifestFile], columns: Iterable[int]) -> Iterator[ManifestEntries]:
        """The entries of several manifests, in their order."""


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
    def is_settled(self) -> bool:
        """Whether no rewrite is needed: each manifest is a range of the order, few are small, none has removals."""
        if any(each.has_deleted_files for each in self.manifests):
            return False
        counts = np.diff(self.starts)
        if not counts.all() or not len(counts):
            return False
        owners = self._owners(self.order)
        ranges = 1 + int(np.count_nonzero(np.diff(owners)))
        most = 1 if self.added == 1 else self.added / _FULL_ENOUGH
        return ranges == len(counts) and _FULL_ENOUGH * self.added <= len(counts) <= most

    def part(self, first: int, last: int) -> Clustering:
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

    def entries(self, head: EntryReader) -> Iterator[ManifestEntries]:
        """The entries of each new manifest, in their order."""
        for first, last in self._passes():
            numbers = np.sort(self.order[self.bounds[first] : self.bounds[last]])
            together = self._read(head, numbers)
            for start, stop in pairwise(self.bounds[first : last + 1].tolist()):
                places = np.searchsorted(numbers, self.order[start:stop])
                whole = len(places) == len(numbers) and bool((np.diff(places) == 1).all())
                yield together if whole else together.take(places)

    def _passes(self) -> Iterator[tuple[int, int]]:
        """Ranges of new manifests; the entries of each range are read together."""
        at_once = max(1, self.added) if self.held else max(1, HELD_BYTES // (_EXPANSION * self._bytes_each()))
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
            read = head.read([self.manifests[owner] for owner in wanted], ALL_COLUMNS)
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
    hold = hold and _EXPANSION * sum(max(0, one.manifest_length) for one in manifests) <= HELD_BYTES
    counts: list[int] = []
    partitions: list[ManifestEntries] = []
    held: list[ManifestEntries] = []
    live_bytes = 0.0
    for manifest, entries in zip(manifests, head.read(manifests, ALL_COLUMNS if hold else _KEYS), strict=True):
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
        _order(ManifestEntries.concat(partitions), spec, cluster_by),
        np.cumsum([0, *counts]),
        np.array([total * place // added for place in range(added + 1)] if added else [0], np.int64),
        int(live_bytes),
        held,
    )


def _order(entries: ManifestEntries, spec: PartitionSpec, cluster_by: Sequence[str]) -> Ints:
    """The rows sorted by their partitions, nulls first."""
    partition = entries.partition
    names = [one.name for one in spec.fields]
    first = [name for name in cluster_by if name in names]
    columns: dict[str, pa.Array] = {}
    for name in (*first, *(name for name in names if name not in first)):
        values = partition.field(names.index(name))
        if values.null_count:
            columns[str(len(columns))] = values.is_valid()
        if not pa.types.is_null(values.type):
            columns[str(len(columns))] = _sortable(values)
    if not columns or not len(entries):
        return np.arange(len(entries))
    columns["place"] = pa.array(np.arange(len(entries)))
    keys = [(name, "ascending") for name in columns]
    order: Ints = np.asarray(pc.sort_indices(pa.table(columns), keys))
    return order.astype(np.int64)


def _sortable(values: pa.Array) -> pa.Array:
    """Arrow sorts no binary values of fixed size."""
    return values.cast(pa.binary()) if pa.types.is_fixed_size_binary(values.type) else values
