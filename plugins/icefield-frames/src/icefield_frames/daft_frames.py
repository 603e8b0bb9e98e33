"""Scans as frames of Daft."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icefield_frames.libraries import library, method_of

if TYPE_CHECKING:
    import daft


def to_daft(scan: Any) -> daft.DataFrame:
    """The rows as a Daft frame, which reads only what a query needs.

    Columns, filters and numbers of rows reach the scan, which leaves out files and row groups; Daft applies them to the
    rows. Daft reads local Parquet files without deletes itself, and workers read all others by Icefield. Raises
    ``MissingPlugin`` if Daft is not installed.
    """
    found: daft.DataFrame = library("daft", "to_daft", own="icefield_frames.daft_sources").ScanSource(scan).read()
    return found


TO_DAFT = method_of(to_daft)
"""The service ``scan.to_daft``."""
