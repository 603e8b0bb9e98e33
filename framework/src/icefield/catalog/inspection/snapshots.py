"""The table of snapshots."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from icefield.catalog.inspection.source import Source

SCHEMA: Final = pa.schema(
    [
        pa.field("committed_at", pa.timestamp("ms"), nullable=False),
        pa.field("snapshot_id", pa.int64(), nullable=False),
        pa.field("parent_id", pa.int64()),
        pa.field("operation", pa.string()),
        pa.field("manifest_list", pa.string()),
        pa.field("summary", pa.map_(pa.string(), pa.string())),
    ]
)


def snapshots_table(source: Source) -> pa.Table:
    """One row a snapshot, in the order in which they were added. ``manifest_list`` is null for old v1 snapshots."""
    return pa.Table.from_pylist(
        [
            {
                "committed_at": snapshot.timestamp_ms,
                "snapshot_id": snapshot.snapshot_id,
                "parent_id": snapshot.parent_snapshot_id,
                "operation": snapshot.summary.get("operation"),
                "manifest_list": snapshot.manifest_list,
                "summary": [item for item in snapshot.summary.items() if item[0] != "operation"],
            }
            for snapshot in source.metadata.snapshots
        ],
        schema=SCHEMA,
    )
