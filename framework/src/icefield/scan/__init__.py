"""Scans: planned in columns, read by tasks."""

from icefield.scan.append_scan import IncrementalAppendScan
from icefield.scan.reading import read_tasks
from icefield.scan.snapshot_range import SnapshotRange
from icefield.scan.table_scan import TableScan
from icefield.scan.tasks import FileScanTask, ScanContext

__all__ = ["FileScanTask", "IncrementalAppendScan", "ScanContext", "SnapshotRange", "TableScan", "read_tasks"]
