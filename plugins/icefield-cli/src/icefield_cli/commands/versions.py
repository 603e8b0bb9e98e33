"""The earlier version of a table that options choose."""

from __future__ import annotations

from typing import Any

from icefield import Table
from icefield.scan import TableScan


def scan_of(table: Table, snapshot: int | None, ref: str | None, as_of: int | None, **options: Any) -> TableScan:
    """A scan of the requested version."""
    scan = table.scan(snapshot_id=snapshot, ref=ref, **options)
    return scan if as_of is None else scan.as_of(as_of)
