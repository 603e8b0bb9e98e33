"""Planning of changelog scans: the files with changed rows of each snapshot, for a filter.

A snapshot's own manifests name the data files that it added and removed. For added or removed delete files, the
affected data files of the parent are looked up in columns. Each of them comes with its deletes before and after.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from icefield.expressions import AlwaysTrue, BooleanExpression
from icefield.manifest import (
    PLAN_COLUMNS,
    EntryStatus,
    ManifestContent,
    ManifestEntries,
    ManifestFile,
    ManifestList,
    ManifestRequest,
)
from icefield.metadata import Operation, Snapshot, TableMetadata
from icefield.scan.changes.tasks import ChangedFile
from icefield.scan.deletes.index import DeleteIndex, delete_index
from icefield.scan.deletes.targets import DELETE_STATISTICS
from icefield.scan.planning.manifest_filter import ManifestFilter, SpecPlan, entries_by, manifest_lists
from icefield.scan.planning.planned_files import PlannedFiles
from icefield.scan.planning.planner import PlanReport, ScanPlanner, plan_request
from icefield.scan.snapshot_range import kept_parent
from icefield.schema import Schema
from icefield.storage import FileIO


class ChangelogPlanner:
    """Plans the changes that some snapshots, oldest first, made to rows that match a filter.

    ``row_filter`` is bound to ``schema``. ``identifier``: the table's name, for listeners. Snapshots that only
    exchanged files for others with the same rows (``replace``) are left out.
    """

    def __init__(
        self,
        metadata: TableMetadata,
        io: FileIO,
        snapshots: Sequence[Snapshot],
        schema: Schema,
        row_filter: BooleanExpression,
        *,
        identifier: tuple[str, ...] = (),
    ) -> None:
        self._metadata = metadata
        self._io = io
        self._snapshots = [one for one in snapshots if one.operation is not Operation.REPLACE]
        self._schema = schema
        self._filter = row_filter
        self._matching = ManifestFilter(metadata, io, schema, row_filter)
        self._request = plan_request(PLAN_COLUMNS, row_filter)
        self._indexes: dict[int, DeleteIndex | None] = {}
        self.report = PlanReport(io, identifier, row_filter, metadata, metadata.current_schema_id)

    def changes(self) -> Iterator[Iterator[ChangedFile]]:
        """The files with changed rows of each snapshot, in the order of the snapshots; added files come last.

        Raises ``InvalidMetadata`` for a damaged manifest or manifest list, and ``NoSuchSnapshot`` if the deletes of an
        expired parent are needed.
        """
        return self.report.told(self._planned())

    def _planned(self) -> Iterator[Iterator[ChangedFile]]:
        for ordinal, (snapshot, listed) in enumerate(manifest_lists(self._metadata, self._io, self._snapshots)):
            yield self._of_snapshot(ordinal, snapshot, listed)
        self.report.tell(self._snapshots[-1].snapshot_id if self._snapshots else -1)

    def _of_snapshot(self, ordinal: int, snapshot: Snapshot, listed: ManifestList) -> Iterator[ChangedFile]:
        number = snapshot.snapshot_id
        manifests = listed.select(self._matching.choose(listed, ManifestContent.DATA, {number}), summaries=False)
        self.report.manifests_read += len(manifests)
        for entries, plan in self._entries(manifests, number, EntryStatus.DELETED):
            before = self._deletes_of(kept_parent(self._metadata, snapshot))
            for task in _with_deletes(entries, plan, before).tasks():
                yield ChangedFile(task, None, ordinal, number)
        yield from self._with_other_deletes(ordinal, snapshot, listed)
        for entries, plan in self._entries(manifests, number, EntryStatus.ADDED):
            for task in _with_deletes(entries, plan, self._deletes_of(snapshot)).tasks():
                yield ChangedFile(None, task, ordinal, number)

    def _entries(
        self, manifests: Sequence[ManifestFile], number: int, status: EntryStatus
    ) -> Iterator[tuple[ManifestEntries, SpecPlan]]:
        for part, mask, plan in self._matching.changed(manifests, {number}, status, self._request):
            entries = self.report.kept(part, mask, PLAN_COLUMNS)
            if len(entries):
                yield entries, plan

    def _with_other_deletes(self, ordinal: int, snapshot: Snapshot, listed: ManifestList) -> Iterator[ChangedFile]:
        """The data files that remain in the table and have other deletes than before."""
        number = snapshot.snapshot_id
        changed = self._changed_deletes(number, listed)
        if not changed:
            return
        # The parent has the deletes of a file before the change, including delete files that were dropped with their
        # whole manifest.
        before = self._deletes_of(kept_parent(self._metadata, snapshot))
        after = self._deletes_of(snapshot)
        chosen = listed.select(self._matching.choose(listed, ManifestContent.DATA), summaries=False)
        self.report.manifests_read += len(chosen)
        for part, live, plan in self._matching.matching(chosen, self._filter, self._request):
            old = ~(entries_by(part, {number}) & (part.status() == EntryStatus.ADDED))
            entries = part.select(PLAN_COLUMNS).filter(old if live is None else old & live)
            concerned = np.zeros(len(entries), bool)
            for index in changed:
                assigned = index.assign(entries) if len(entries) else None
                if assigned is not None:
                    concerned |= assigned.counts() > 0
            entries = self.report.kept(entries, concerned, PLAN_COLUMNS)
            if not len(entries):
                continue
            old_tasks = _with_deletes(entries, plan, before).tasks()
            pairs = zip(old_tasks, _with_deletes(entries, plan, after).tasks(), strict=True)
            for one, other in pairs:
                yield ChangedFile(one, other, ordinal, number)

    def _changed_deletes(self, number: int, listed: ManifestList) -> list[DeleteIndex]:
        """The indexes of the delete files that a snapshot added, and of the delete files that it removed."""
        unfiltered = ManifestFilter(self._metadata, self._io, self._schema, AlwaysTrue())
        manifests = listed.select(unfiltered.choose(listed, ManifestContent.DELETES, {number}), summaries=False)
        if not manifests:
            return []
        request = ManifestRequest(PLAN_COLUMNS, DELETE_STATISTICS)
        indexes = []
        for status in (EntryStatus.ADDED, EntryStatus.DELETED):
            found = unfiltered.changed(manifests, {number}, status, request)
            parts = [part.filter(mask) for part, mask, _ in found]
            if any(len(part) for part in parts):
                indexes.append(delete_index(self._metadata, parts))
        return indexes

    def _deletes_of(self, snapshot: Snapshot | None) -> DeleteIndex | None:
        """The delete files of a snapshot. The last two indexes are cached: one snapshot is the parent of the other."""
        if snapshot is None:
            return None
        if snapshot.snapshot_id not in self._indexes:
            planner = ScanPlanner(self._metadata, self._io, snapshot, self._schema, self._filter)
            self._indexes[snapshot.snapshot_id] = planner.delete_index()
            while len(self._indexes) > 2:
                del self._indexes[next(iter(self._indexes))]
        return self._indexes[snapshot.snapshot_id]


def _with_deletes(entries: ManifestEntries, plan: SpecPlan, deletes: DeleteIndex | None) -> PlannedFiles:
    assigned = deletes.assign(entries) if deletes else None
    return PlannedFiles(entries, plan.residuals, assigned)
