"""Scans: planned in columns, read by tasks."""

from icefield.scan.append_scan import IncrementalAppendScan
from icefield.scan.changelog_scan import IncrementalChangelogScan
from icefield.scan.changes.reading import read_changes
from icefield.scan.changes.tasks import ChangedFile, ChangelogContext, ChangelogScanTask
from icefield.scan.columns.projection import ColumnProjection
from icefield.scan.planning.planned_files import PlannedManifest
from icefield.scan.reading import read_deletes, read_positions, read_tasks
from icefield.scan.snapshot_range import SnapshotRange
from icefield.scan.table_scan import TableScan
from icefield.scan.tasks import FileScanTask, ScanContext

__all__ = [
    "ChangedFile",
    "ChangelogContext",
    "ChangelogScanTask",
    "ColumnProjection",
    "FileScanTask",
    "IncrementalAppendScan",
    "IncrementalChangelogScan",
    "PlannedManifest",
    "ScanContext",
    "SnapshotRange",
    "TableScan",
    "read_changes",
    "read_deletes",
    "read_positions",
    "read_tasks",
]
