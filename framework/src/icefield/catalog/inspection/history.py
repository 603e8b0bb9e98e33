"""The table of the snapshot log."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from icefield.catalog.inspection.metadata_table import INSTANT, RowsTable, instant
from icefield.catalog.inspection.source import MetadataSource

_SCHEMA: Final = pa.schema(
    [
        pa.field("made_current_at", INSTANT, nullable=False),
        pa.field("snapshot_id", pa.int64(), nullable=False),
        pa.field("parent_id", pa.int64()),
        pa.field("is_current_ancestor", pa.bool_(), nullable=False),
    ]
)


class HistoryTable(RowsTable):
    """One row per change of the current snapshot, oldest first."""

    schema = _SCHEMA

    def __init__(self, source: MetadataSource) -> None:
        self._metadata = source.metadata

    def rows(self) -> list[dict[str, Any]]:
        metadata = self._metadata
        ancestors = set(metadata.ancestor_ids(metadata.current_snapshot_id))
        rows = []
        for entry in metadata.snapshot_log:
            snapshot = metadata.snapshot_by_id(entry.snapshot_id)
            rows.append(
                {
                    "made_current_at": instant(entry.timestamp_ms),
                    "snapshot_id": entry.snapshot_id,
                    "parent_id": None if snapshot is None else snapshot.parent_snapshot_id,
                    "is_current_ancestor": entry.snapshot_id in ancestors,
                }
            )
        return rows
