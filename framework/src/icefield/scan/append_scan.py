"""Incremental scans of the rows that were appended between two snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from icefield.base.concurrency import lazy
from icefield.expressions import bind
from icefield.metadata.snapshots import Snapshot
from icefield.scan.append_planner import AppendPlanner
from icefield.scan.file_scan import FileScan
from icefield.scan.snapshot_range import SnapshotRange


@dataclass(frozen=True)
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
        return self.range.snapshots(self.metadata)

    def planner(self, *, include_stats: bool = False, prove: bool = False) -> AppendPlanner | None:
        """The planner of this scan, with the options of ``AppendPlanner``; None for a range without a snapshot."""
        if not self.snapshots:
            return None
        return AppendPlanner(
            self.metadata,
            self.io,
            self.snapshots,
            self.schema,
            bind(self.schema, self._expression, self.case_sensitive),
            statistics=include_stats,
            prove=prove,
            identifier=self.identifier,
        )

    def _version_asked(self) -> tuple[int, int | None, bool] | None:
        # A request needs a snapshot before the range, and the table's first snapshot has none.
        if not self.snapshots or (begin := self.snapshots[0].parent_snapshot_id) is None:
            return None
        return self.snapshots[-1].snapshot_id, begin, False
