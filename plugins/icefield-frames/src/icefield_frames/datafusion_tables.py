"""Scans as tables of DataFusion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icefield_frames.datasets import ScanDataset
from icefield_frames.libraries import library, method_of

if TYPE_CHECKING:
    import datafusion


def to_datafusion(scan: Any, table_name: str, context: Any = None) -> datafusion.SessionContext:
    """Register the rows as a table of a DataFusion session, by default a new one; return the session.

    Nothing is read before a query. Each query hands its columns and its filter to the scan, and reads the files side
    by side. Raises ``MissingPlugin`` if DataFusion is not installed.
    """
    used = library("datafusion", "to_datafusion").SessionContext() if context is None else context
    used.register_table(table_name, ScanDataset(scan, nan_is_greatest=True))
    found: datafusion.SessionContext = used
    return found


TO_DATAFUSION = method_of(to_datafusion)
"""The service ``scan.to_datafusion``."""
