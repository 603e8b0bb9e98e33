"""Incremental scans of the rows that were appended between two snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import attrgetter

from icefield.base.concurrency import lazy
from icefield.expressions import BooleanExpression, strict_metrics
from icefield.manifest import ALL_COLUMNS, PLAN_COLUMNS, EntryStatus, ManifestContent, ManifestFile
from icefield.metadata.snapshots import Operation, Snapshot
from icefield.scan.file_scan import FileScan
from icefield.scan.planning.manifest_filter import ManifestFilter, manifest_lists
from icefield.scan.planning.manifest_reads import in_lots
from icefield.scan.planning.planned_files import PlannedFiles
from icefield.scan.planning.planner import PlanReport, plan_request
from icefield.scan.planning.pruning import EntryGroup
from icefield.scan.snapshot_range import SnapshotRange


class AppendPlanner:
    """Plans the files that the appends among the snapshots of a scan added; see ``ScanPlanner`` for the options.

    Deletes do not apply: an append adds none, and its rows count even if later snapshots deleted them.
    """

    def __init__(self, scan: IncrementalAppendScan, bound: BooleanExpression, statistics: bool, prove: bool) -> None:
        """``bound``: the filter of the scan."""
        self._scan = scan
        self._snapshots = [one for one in scan.snapshots if one.operation is Operation.APPEND]
        self._filter = bound
        self._columns = ALL_COLUMNS if statistics else PLAN_COLUMNS
        self._prove = prove
        self._manifests = ManifestFilter(scan.metadata, scan.io, scan.schema, bound)
        schema_id = scan.metadata.current_schema_id
        self.report = PlanReport(scan.io, scan.identifier, bound, scan.metadata, schema_id)

    def files(self, first: int = 0, rows: int | None = None) -> Iterator[PlannedFiles]:
        """The files that the appends added and that may hold matching rows, the oldest first.

        ``first`` is the index of the first manifest, among the appends' manifests that may match; ``rows`` is the
        approximate number of entries to read ahead. Raises ``InvalidMetadata`` for a damaged manifest or manifest list.
        """
        return self.report.told(self._planned(first, rows))

    def _planned(self, first: int, rows: int | None) -> Iterator[PlannedFiles]:
        ids = {snapshot.snapshot_id for snapshot in self._snapshots}
        manifests: dict[str, ManifestFile] = {}
        for _, listed in manifest_lists(self._scan.metadata, self._scan.io, self._snapshots):
            # Later lists also name the manifests of earlier ones.
            for one in listed.select(self._manifests.choose(listed, ManifestContent.DATA, ids), summaries=False):
                manifests.setdefault(one.manifest_path, one)
        self.report.manifests_read = len(manifests)
        request = plan_request(self._columns, self._filter, prove=self._prove)
        lots = in_lots([*manifests.values()][first:], attrgetter("entry_count"), rows)
        found = chain.from_iterable(self._manifests.changed(lot, ids, EntryStatus.ADDED, request) for lot in lots)
        for place, (part, mask, plan) in enumerate(found, first):
            kept = self.report.kept(part, mask, self._columns)
            if len(kept):
                whole = strict_metrics(self._filter, EntryGroup([part], self._manifests.types)) if self._prove else None
                yield PlannedFiles(kept, plan.residuals, None, None if whole is None else whole[mask], place)
        self.report.tell(self._snapshots[-1].snapshot_id if self._snapshots else -1)


@dataclass(frozen=True, repr=False)
class IncrementalAppendScan(FileScan):
    """The rows that the appends among some snapshots added, under the table's current schema.

    Snapshots with other operations are skipped, so that appended rows are returned even if they were deleted later.
    ``range`` selects the snapshots. For a table without snapshots it is empty unless an end is given.
    """

    range: SnapshotRange = field(default_factory=SnapshotRange)

    def from_snapshot_id_exclusive(self, snapshot_id: int) -> IncrementalAppendScan:
        """The range begun after a snapshot."""
        return replace(self, range=replace(self.range, from_exclusive=snapshot_id, from_inclusive=None))

    def from_snapshot_id_inclusive(self, snapshot_id: int) -> IncrementalAppendScan:
        """The range begun with a snapshot."""
        return replace(self, range=replace(self.range, from_inclusive=snapshot_id, from_exclusive=None))

    def to_snapshot_id_inclusive(self, snapshot_id: int) -> IncrementalAppendScan:
        """The range ended with a snapshot."""
        return replace(self, range=replace(self.range, to_inclusive=snapshot_id, to_timestamp=None))

    @lazy
    def snapshots(self) -> Sequence[Snapshot]:
        """The snapshots of the range, oldest first. Raises as ``SnapshotRange.snapshots`` does."""
        return self.range.snapshots(self.metadata, self._called)

    def planner(self, *, include_stats: bool = False, prove: bool = False) -> AppendPlanner | None:
        """The planner of this scan, with the options of ``AppendPlanner``; None for a range without a snapshot."""
        return AppendPlanner(self, self._bound_filter, include_stats, prove) if self.snapshots else None

    def _version_asked(self) -> tuple[int, int | None, bool] | None:
        # A request needs a snapshot before the range, and the table's first snapshot has none.
        if not self.snapshots or (begin := self.snapshots[0].parent_snapshot_id) is None:
            return None
        return self.snapshots[-1].snapshot_id, begin, False
