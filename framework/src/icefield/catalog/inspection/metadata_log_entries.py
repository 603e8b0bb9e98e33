"""The table of metadata files."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from icefield.catalog.inspection.source import Source
from icefield.errors import NoSuchSnapshot
from icefield.metadata.snapshots import Snapshot

SCHEMA: Final = pa.schema(
    [
        pa.field("timestamp", pa.timestamp("ms"), nullable=False),
        pa.field("file", pa.string(), nullable=False),
        pa.field("latest_snapshot_id", pa.int64()),
        pa.field("latest_schema_id", pa.int32()),
        pa.field("latest_sequence_number", pa.int64()),
    ]
)


def metadata_log_entries_table(source: Source) -> pa.Table:
    """One row a metadata file, oldest first, this version's own last, with the snapshot that was current in it."""
    metadata = source.metadata
    files = [(entry.timestamp_ms, entry.metadata_file) for entry in metadata.metadata_log]
    files.append((metadata.last_updated_ms, source.metadata_location))
    rows = []
    for timestamp, file in files:
        snapshot = _current_at(source, timestamp)
        rows.append(
            {
                "timestamp": timestamp,
                "file": file,
                "latest_snapshot_id": None if snapshot is None else snapshot.snapshot_id,
                "latest_schema_id": None if snapshot is None else snapshot.schema_id,
                "latest_sequence_number": None if snapshot is None else snapshot.sequence_number,
            }
        )
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _current_at(source: Source, timestamp_ms: int) -> Snapshot | None:
    try:
        return source.metadata.snapshot_as_of(timestamp_ms)
    except NoSuchSnapshot:
        return None
