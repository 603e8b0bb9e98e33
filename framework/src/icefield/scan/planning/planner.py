"""Scan planning: from a snapshot and a filter to the files that may hold matching rows.

The manifest list states which manifests to open. Threads read them, a few ahead of the consumer. Entries are filtered
in columns, for several fetched manifests at a time, and the matching entries become tasks on demand. Planning sends no
storage request for a data file.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from icefield.abc import ScanPlanned, WorkRunner
from icefield.base.concurrency import lazy
from icefield.expressions import AlwaysTrue, BooleanExpression
from icefield.manifest import (
    ALL_COLUMNS,
    PLAN_COLUMNS,
    EntryStatus,
    ManifestContent,
    ManifestEntries,
    ManifestFile,
    ManifestList,
    ManifestRequest,
    read_manifest_list,
)
from icefield.manifest import schemas as f
from icefield.manifest.manifest_list import CONTENT
from icefield.metadata import Snapshot, TableMetadata
from icefield.scan.deletes.index import DELETE_INDEXES, DeleteIndex, delete_index, index_key, kept_index
from icefield.scan.deletes.targets import DELETE_STATISTICS
from icefield.scan.planning.duplicates import DistinctPaths
from icefield.scan.planning.manifest_filter import ManifestFilter
from icefield.scan.planning.manifest_reads import in_lots
from icefield.scan.planning.matching import Matched, MatchManifests, run_in_lots
from icefield.scan.planning.planned_files import PlannedFiles
from icefield.scan.planning.pruning import (
    Mask,
    decisive_statistics,
    equality_deletes_that_may_match,
    needed_statistics,
)
from icefield.schema import Schema
from icefield.storage import FileIO

T = TypeVar("T")


@dataclass
class PlanReport:
    """The counts of a plan so far, for the listeners of ``io``.

    ``table``: the table's name. ``projected``: the columns to read, if they are known.
    """

    io: FileIO
    table: tuple[str, ...]
    row_filter: BooleanExpression
    metadata: TableMetadata
    schema_id: int
    projected: Schema | None = None
    manifests_read: int = 0
    manifests_skipped: int = 0
    files_planned: int = 0
    files_skipped: int = 0
    started: float = field(default_factory=time.perf_counter)

    def told(self, planned: Iterator[T]) -> Iterator[T]:
        """The items of a plan; listeners are told when it starts and when it ends."""
        with self.io.listeners.operation("plan-scan", self.table, nested=False):
            yield from planned

    def kept(self, part: ManifestEntries, mask: Mask, columns: frozenset[int]) -> ManifestEntries:
        """The chosen files of a manifest, which are counted as planned, and the others as skipped."""
        kept = part.select(columns).filter(mask)
        self.files_planned += len(kept)
        self.files_skipped += len(part) - len(kept)
        return kept

    def tell(self, snapshot_id: int) -> None:
        """Tell the listeners about the finished plan of a snapshot; -1 if no snapshot was planned."""
        if not self.io.listeners:
            return
        self.io.listeners.tell(
            ScanPlanned(
                table=self.table,
                snapshot_id=snapshot_id,
                row_filter=str(self.row_filter),
                manifests_read=self.manifests_read,
                manifests_skipped=self.manifests_skipped,
                files_planned=self.files_planned,
                files_skipped=self.files_skipped,
                seconds=time.perf_counter() - self.started,
                catalog=self.io.catalog,
                table_uuid=str(self.metadata.table_uuid),
                schema_id=self.schema_id,
                projected=tuple((one.field_id, one.name) for one in self.projected.fields) if self.projected else (),
                expression=self.row_filter,
                location=self.metadata.location,
                schema=self.metadata.schema_by_id(self.schema_id),
            )
        )


def plan_request(columns: frozenset[int], row_filter: BooleanExpression, *, prove: bool = False) -> ManifestRequest:
    """The manifest columns and statistics to decode for a filter; with ``prove``, also for proofs that files match."""
    if prove:
        return ManifestRequest(columns, needed_statistics(row_filter))
    always, unbounded = decisive_statistics(row_filter)
    return ManifestRequest(columns, always, unbounded)


class ScanPlanner:
    """Plans one scan of one snapshot.

    ``row_filter`` is bound to ``schema``. ``statistics``: whether the planned files have all their statistics.
    ``prove``: whether to find files that match as a whole, by their statistics. ``identifier``: the table's name, for
    listeners. ``runner``: reads the manifests of data files, if they are large. ``projected``: the columns to read, for
    listeners.
    """

    def __init__(
        self,
        metadata: TableMetadata,
        io: FileIO,
        snapshot: Snapshot,
        schema: Schema,
        row_filter: BooleanExpression,
        *,
        statistics: bool = False,
        prove: bool = False,
        identifier: tuple[str, ...] = (),
        runner: WorkRunner | None = None,
        projected: Schema | None = None,
    ) -> None:
        self._metadata = metadata
        self._io = io
        self._snapshot = snapshot
        self._filter = row_filter
        self._columns = ALL_COLUMNS if statistics else PLAN_COLUMNS
        self._prove = prove
        self._runner = runner
        self._manifests = ManifestFilter(metadata, io, schema, row_filter)
        self._request = plan_request(self._columns, row_filter, prove=prove)
        self.report = PlanReport(io, identifier, row_filter, metadata, schema.schema_id, projected)

    @lazy
    def manifests(self) -> ManifestList:
        """The manifest list of the snapshot."""
        return read_manifest_list(self._io, self._snapshot, self._metadata)

    def files(self, first: int = 0, rows: int | None = None) -> Iterator[PlannedFiles]:
        """The files that may hold matching rows, manifest by manifest, with the deletes that apply to them.

        ``first`` is the position in the manifest list to begin at; ``rows`` is the approximate number of entries to
        read ahead. Raises ``InvalidMetadata`` for a damaged manifest or manifest list, and, at the latest at the end of
        the iteration, for a file that is listed twice in the plan.
        """
        return self.report.told(self._planned(first, rows))

    def _planned(self, first: int, rows: int | None) -> Iterator[PlannedFiles]:
        manifests = self.manifests
        distinct = None if manifests.paths_are_distinct else DistinctPaths(self._live_paths)
        key, deletes = self._delete_index()
        chosen, places = self._choose(ManifestContent.DATA, first)
        place_of_each = iter(places.tolist())
        lots = in_lots(chosen, attrgetter("entry_count"), rows)
        for group in chain.from_iterable(map(self._matched, lots)):
            residuals = self._manifests.spec_plan(group[0].entries.spec_id).residuals
            entries, wholes = [each.entries for each in group], [each.is_whole for each in group]
            assigned = deletes.assign_all(entries, wholes) if deletes else [None] * len(group)
            for each, applying in zip(group, assigned, strict=True):
                place = next(place_of_each)
                self.report.files_planned += len(each.entries)
                self.report.files_skipped += each.total - len(each.entries)
                if not len(each.entries):
                    continue
                if distinct is not None:
                    distinct.add(each.entries)
                yield PlannedFiles(each.entries, residuals, applying, each.proven, place)
        if distinct is not None:
            distinct.check()
            manifests.paths_are_distinct = first == 0 and isinstance(self._filter, AlwaysTrue)
        if key is not None and deletes is not None:
            DELETE_INDEXES.put(key, deletes)  # with the size of its assignments
        self.report.tell(self._snapshot.snapshot_id)

    def _choose(self, content: ManifestContent, first: int = 0) -> tuple[list[ManifestFile], npt.NDArray[Any]]:
        """The manifests that may list matching live files, from a position in the list on, and their positions."""
        manifests = self.manifests
        chosen = self._manifests.choose(manifests, content)
        chosen = chosen[chosen >= first]
        self.report.manifests_read += len(chosen)
        of_content = int(np.count_nonzero(manifests.integers(CONTENT) == content))
        self.report.manifests_skipped += of_content - len(chosen)
        return manifests.select(chosen, summaries=False), chosen

    def _matched(self, manifests: Sequence[ManifestFile]) -> Iterator[list[Matched]]:
        """The matching entries of data manifests, several manifests of one spec at a time."""
        specs = {one.partition_spec_id for one in manifests}
        work = MatchManifests(
            self._io,
            {each: self._manifests.spec_plan(each) for each in specs},
            self._filter,
            self._request,
            self._columns,
            self._prove,
        )
        shared = run_in_lots(work, manifests, self._runner)
        if shared is None:
            yield from work.groups(manifests, None, self._manifests.reader)
        else:
            yield from shared

    def _delete_index(self) -> tuple[Hashable | None, DeleteIndex | None]:
        """The cache key of the delete index, and the index."""
        chosen, _ = self._choose(ManifestContent.DELETES)
        if not chosen:
            return None, None
        key = index_key(self._io, self._metadata, chosen, self.report.schema_id, self._columns)
        found = kept_index(key, filtered=not isinstance(self._filter, AlwaysTrue))
        if found is not None:
            return key, found
        needed = needed_statistics(self._filter)
        statistics = {
            kind: needed.get(kind, frozenset()) | DELETE_STATISTICS.get(kind, frozenset())
            for kind in {*needed, *DELETE_STATISTICS}
        }
        parts = []
        for part, mask, _ in self._manifests.matching(chosen, AlwaysTrue(), ManifestRequest(self._columns, statistics)):
            entries = part.filter(mask)
            entries = entries.filter(equality_deletes_that_may_match(entries, self._filter, self._manifests.types))
            if len(entries) < np.count_nonzero(part.status() != EntryStatus.DELETED):
                key = None  # the index depends on the filter
            parts.append(entries)
        index = delete_index(self._metadata, parts)
        if key is not None:
            DELETE_INDEXES.put(key, index)
        return key, index

    def delete_index(self) -> DeleteIndex | None:
        """The index of the delete files that may apply to matching rows; None without delete files."""
        return self._delete_index()[1]

    def _live_paths(self, manifest: ManifestFile) -> list[str]:
        kind = self._manifests.spec_plan(manifest.partition_spec_id).partition_type
        columns = frozenset({f.STATUS, f.FILE_PATH})
        entries = self._manifests.reader.read(manifest, kind, ManifestRequest(columns))
        paths: list[str] = entries.select(columns).filter(entries.live()).column(f.FILE_PATH).to_pylist()
        return paths
