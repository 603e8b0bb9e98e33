"""Rewriting manifests whose partitions lie in ranges that do not overlap: one pass, sorted range by range.

The manifest list alone gives the ranges and the order of the manifests. So their entries are read once, when they are
written, and only the entries of one range are in memory together.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from icefield.engine import Head
from icefield.manifest import ALL_COLUMNS, ManifestContent, ManifestEntries, ManifestFile
from icefield.partitioning import PartitionSpec
from icefield.toolkit import value_from_bytes
from icefield.types import DoubleType, FloatType, NestedField

from icefield_maintenance.manifests.sorting import EXPANSION, HELD_BYTES, EntryReader, fits, key_names, sorted_places

_ENTRIES_AT_ONCE: Final = 4_000
"""The fewest entries that are sorted and encoded together, unless a manifest ends."""

Run = tuple[ManifestFile, ...]
_Range = tuple[tuple[Any, ...], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class RunClustering:
    """The plan to rewrite manifests in runs: all partitions of a run come before the partitions of the next one.

    ``added`` is the number of new manifests. The counts of the manifest list only say where one ends: each entry of
    the manifests is written, even if a count is wrong.
    """

    runs: tuple[Run, ...]
    spec: PartitionSpec
    content: ManifestContent
    cluster_by: tuple[str, ...]
    added: int
    live_bytes: int

    @property
    def spec_id(self) -> int:
        """The id of the spec of all entries."""
        return self.spec.spec_id

    @property
    def manifests(self) -> tuple[ManifestFile, ...]:
        """The manifests to rewrite, in the order of their partitions."""
        return tuple(manifest for run in self.runs for manifest in run)

    @property
    def count(self) -> int:
        """How many live entries there are."""
        return sum(map(_live_entries, self.manifests))

    @property
    def is_settled(self) -> bool:
        """Whether no rewrite is needed."""
        return _is_settled(self.runs, self.manifests, self.added)

    def parts(self, size: int) -> Iterator[RunClustering]:
        """The plan in parts of whole runs, with at least ``size`` new manifests in all but the last one."""
        total = self.count
        firsts = [total * place // self.added for place in range(self.added)]
        runs: list[Run] = []
        added = start = 0
        for run in self.runs:
            end = start + sum(map(_live_entries, run))
            begun = bisect_left(firsts, end) - bisect_left(firsts, start)
            if begun and added >= size:
                yield self._of(runs, added)
                runs, added = [], 0
            runs.append(run)
            added += begun
            start = end
        if runs:
            yield self._of(runs, added)

    def _of(self, runs: Sequence[Run], added: int) -> RunClustering:
        return replace(self, runs=tuple(runs), added=added, live_bytes=self.live_bytes * added // self.added)

    def entries(self, head: EntryReader) -> Iterator[list[ManifestEntries]]:
        """The entries of each new manifest, in pieces, in their order."""
        total = self.count
        cuts = (total * place // self.added for place in range(1, self.added))
        cut = next(cuts, None)
        pieces: list[ManifestEntries] = []
        written = 0
        for together in self._sorted(head):
            rest = together
            while cut is not None and written + len(rest) >= cut:
                room = max(0, cut - written)
                pieces.append(rest.slice(0, room))
                if kept := [piece for piece in pieces if len(piece)]:
                    yield kept
                pieces, rest, written, cut = [], rest.slice(room), written + room, next(cuts, None)
            pieces.append(rest)
            written += len(rest)
        if kept := [piece for piece in pieces if len(piece)]:
            yield kept

    def _sorted(self, head: EntryReader) -> Iterator[ManifestEntries]:
        """The live entries in their order, those of a few runs at a time."""
        read = iter(head.read(self.manifests, ALL_COLUMNS, rewriting=True))
        waiting: list[ManifestEntries] = []
        for run in self.runs:
            for _ in run:
                entries = next(read).select(ALL_COLUMNS)
                waiting.append(entries.filter(entries.live()))
            if sum(map(len, waiting)) >= _ENTRIES_AT_ONCE:
                yield self._in_order(waiting)
                waiting = []
        if waiting:
            yield self._in_order(waiting)

    def _in_order(self, parts: Sequence[ManifestEntries]) -> ManifestEntries:
        entries = ManifestEntries.concat(parts)
        places = sorted_places(entries, self.spec, self.cluster_by)
        return entries if (np.diff(places) == 1).all() else entries.take(places)


def cluster_runs(
    head: Head, manifests: Sequence[ManifestFile], cluster_by: Sequence[str], target_bytes: int
) -> RunClustering | None:
    """The plan for manifests of one spec and content; None if it depends on their entries."""
    spec = head.spec(manifests[0].partition_spec_id)
    if any(None in (one.added_files_count, one.existing_files_count) for one in manifests):
        return None
    runs = _runs(manifests, spec, head.partition_type(spec.spec_id).fields, cluster_by)
    if runs is None or any(EXPANSION * sum(one.manifest_length for one in run) > HELD_BYTES for run in runs):
        return None
    listed = [(one.manifest_length, _live_entries(one), one.entry_count) for one in manifests]
    live_bytes = sum(size * live / max(1, entries) for size, live, entries in listed)
    total = sum(live for _, live, _ in listed)
    added = min(total, math.ceil(live_bytes / target_bytes)) if total else 0
    made = RunClustering(runs, spec, manifests[0].content, tuple(cluster_by), added, int(live_bytes))
    # Manifests that share a partition may be in order already; only their entries tell.
    is_known = not total or not _may_be_settled(made.manifests, added) or len(runs) == len(manifests)
    return made if is_known and total else None


def _live_entries(manifest: ManifestFile) -> int:
    return max(0, manifest.added_files_count or 0) + max(0, manifest.existing_files_count or 0)


def _may_be_settled(manifests: Sequence[ManifestFile], added: int) -> bool:
    return not any(one.has_deleted_files for one in manifests) and fits(len(manifests), added)


def _is_settled(runs: Sequence[Run], manifests: Sequence[ManifestFile], added: int) -> bool:
    return len(runs) == len(manifests) and all(map(_live_entries, manifests)) and _may_be_settled(manifests, added)


def _runs(
    manifests: Sequence[ManifestFile], spec: PartitionSpec, fields: Sequence[NestedField], cluster_by: Sequence[str]
) -> tuple[Run, ...] | None:
    """Runs of manifests by the field that entries are sorted by first; None if a manifest states no range of it."""
    names = key_names(spec, cluster_by)
    if not names:
        return tuple((manifest,) for manifest in manifests)
    position = next(place for place, one in enumerate(spec.fields) if one.name == names[0])
    ranges = [_range(manifest, position, fields[position]) for manifest in manifests]
    known = [found for found in ranges if found is not None]
    if len(known) < len(ranges):
        return None
    order = sorted(range(len(manifests)), key=lambda place: known[place])
    runs: list[list[ManifestFile]] = [[manifests[order[0]]]]
    highest = known[order[0]][1]
    for place in order[1:]:
        low, high = known[place]
        if low > highest:
            runs.append([])
        runs[-1].append(manifests[place])
        highest = max(highest, high)
    return tuple(map(tuple, runs))


def _range(manifest: ManifestFile, position: int, field: NestedField) -> _Range | None:
    """The lowest and the highest value of a partition field, nulls first; None if they are not known."""
    if manifest.partitions is None or position >= len(manifest.partitions):
        return None
    summary = manifest.partitions[position]
    if isinstance(field.field_type, FloatType | DoubleType):  # NaN is in no bound
        return None
    try:
        low, high = (
            None if bound is None else value_from_bytes(field.field_type, bound)
            for bound in (summary.lower_bound, summary.upper_bound)
        )
    except ValueError:
        return None
    if low is None or high is None:
        return ((0,), (0,)) if summary.contains_null and low is high is None else None
    return ((0,) if summary.contains_null else (1, low)), (1, high)
