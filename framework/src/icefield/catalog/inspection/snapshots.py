"""The table of snapshots."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from icefield.catalog.inspection.metadata_table import INSTANT, RowsTable, instant
from icefield.catalog.inspection.source import MetadataSource

_SCHEMA: Final = pa.schema(
    [
        pa.field("committed_at", INSTANT, nullable=False),
        pa.field("snapshot_id", pa.int64(), nullable=False),
        pa.field("parent_id", pa.int64()),
        pa.field("operation", pa.string()),
        pa.field("manifest_list", pa.string()),
        pa.field("summary", pa.map_(pa.string(), pa.string())),
    ]
)


class SnapshotsTable(RowsTable):
    """One row per snapshot, in the order of their addition. ``manifest_list`` is null for old v1 snapshots."""

    schema = _SCHEMA

    def __init__(self, source: MetadataSource) -> None:
        self._metadata = source.metadata

    def rows(self) -> list[dict[str, Any]]:
        return [
            {
                "committed_at": instant(snapshot.timestamp_ms),
                "snapshot_id": snapshot.snapshot_id,
                "parent_id": snapshot.parent_snapshot_id,
                "operation": snapshot.summary.get("operation"),
                "manifest_list": snapshot.manifest_list,
                "summary": [item for item in snapshot.summary.items() if item[0] != "operation"],
            }
            for snapshot in self._metadata.snapshots
        ]
