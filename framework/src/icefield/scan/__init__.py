"""Scans: planned in columns, read by tasks."""

from icefield.scan.reading import read_tasks
from icefield.scan.table_scan import TableScan
from icefield.scan.tasks import FileScanTask, ScanContext

__all__ = ["FileScanTask", "ScanContext", "TableScan", "read_tasks"]
