"""Scans: planned in columns, read by tasks."""

from typing import TYPE_CHECKING

from icefield.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from icefield.scan.append_scan import IncrementalAppendScan as IncrementalAppendScan
    from icefield.scan.changelog_scan import IncrementalChangelogScan as IncrementalChangelogScan
    from icefield.scan.changes.reading import read_changes as read_changes
    from icefield.scan.changes.tasks import ChangedFile as ChangedFile
    from icefield.scan.changes.tasks import ChangelogContext as ChangelogContext
    from icefield.scan.changes.tasks import ChangelogScanTask as ChangelogScanTask
    from icefield.scan.columns.projection import ColumnProjection as ColumnProjection
    from icefield.scan.planning.planned_files import PlannedManifest as PlannedManifest
    from icefield.scan.reading import read_deletes as read_deletes
    from icefield.scan.reading import read_positions as read_positions
    from icefield.scan.reading import read_tasks as read_tasks
    from icefield.scan.snapshot_range import SnapshotRange as SnapshotRange
    from icefield.scan.table_scan import TableScan as TableScan
    from icefield.scan.tasks import FileScanTask as FileScanTask
    from icefield.scan.tasks import ScanContext as ScanContext

__getattr__, __dir__ = lazy_names(__name__)
