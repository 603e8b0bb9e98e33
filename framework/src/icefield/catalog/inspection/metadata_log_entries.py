"""The table of metadata files."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from icefield.catalog.inspection.metadata_table import INSTANT, RowsTable, instant
from icefield.catalog.inspection.source import MetadataSource
from icefield.errors import NoSuchSnapshot
from icefield.metadata.snapshots import Snapshot

_SCHEMA: Final = pa.schema(
    [
        pa.field("timestamp", INSTANT, nullable=False),
        pa.field("file", pa.string(), nullable=False),
        pa.field("latest_snapshot_id", pa.int64()),
        pa.field("latest_schema_id", pa.int32()),
        pa.field("latest_sequence_number", pa.int64()),
    ]
)


class MetadataLogEntriesTable(RowsTable):
    """One row per metadata file, oldest first, with its current snapshot; the last row is this version."""

    schema = _SCHEMA

    def __init__(self, source: MetadataSource) -> None:
        self._source = source

    def rows(self) -> list[dict[str, Any]]:
        metadata = self._source.metadata
        files = [(entry.timestamp_ms, entry.metadata_file) for entry in metadata.metadata_log]
        files.append((metadata.last_updated_ms, self._source.metadata_location))
        rows = []
        for timestamp, file in files:
            snapshot = self._current_at(timestamp)
            rows.append(
                {
                    "timestamp": instant(timestamp),
                    "file": file,
                    "latest_snapshot_id": None if snapshot is None else snapshot.snapshot_id,
                    "latest_schema_id": None if snapshot is None else snapshot.schema_id,
                    "latest_sequence_number": None if snapshot is None else snapshot.sequence_number,
                }
            )
        return rows

    def _current_at(self, timestamp_ms: int) -> Snapshot | None:
        try:
            return self._source.metadata.snapshot_as_of(timestamp_ms)
        except NoSuchSnapshot:
            return None
