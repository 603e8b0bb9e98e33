"""The table of the snapshot log."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from icefield.catalog.inspection.source import Source

SCHEMA: Final = pa.schema(
    [
        pa.field("made_current_at", pa.timestamp("ms"), nullable=False),
        pa.field("snapshot_id", pa.int64(), nullable=False),
        pa.field("parent_id", pa.int64()),
        pa.field("is_current_ancestor", pa.bool_(), nullable=False),
    ]
)


def history_table(source: Source) -> pa.Table:
    """One row each time that another snapshot became current, oldest first."""
    metadata = source.metadata
    ancestors = set(metadata.ancestor_ids(metadata.current_snapshot_id))
    rows = []
    for entry in metadata.snapshot_log:
        snapshot = metadata.snapshot_by_id(entry.snapshot_id)
        rows.append(
            {
                "made_current_at": entry.timestamp_ms,
                "snapshot_id": entry.snapshot_id,
                "parent_id": None if snapshot is None else snapshot.parent_snapshot_id,
                "is_current_ancestor": entry.snapshot_id in ancestors,
            }
        )
    return pa.Table.from_pylist(rows, schema=SCHEMA)
