"""Describe a table: location, schema, partitioning, properties, current snapshot."""

from __future__ import annotations

from icefield_cli.context import Context
from icefield_cli.people import partition_field, sort_field


def run(context: Context, table: str) -> None:
    """Run the command."""
    found = context.table(table)
    metadata = found.metadata
    snapshot = found.current_snapshot()
    context.record(
        {
            "table": table,
            "format version": metadata.format_version,
            "uuid": metadata.table_uuid,
            "location": metadata.location,
            "metadata file": found.metadata_location,
            "schema": [str(field) for field in found.schema().fields],
            "partition spec": [str(field) for field in found.spec().fields],
            "sort order": [str(field) for field in found.sort_order().fields],
            "properties": dict(sorted(metadata.properties.items())),
            "snapshots": len(metadata.snapshots),
            "current snapshot": None if snapshot is None else snapshot.snapshot_id,
            "summary": {} if snapshot is None else dict(snapshot.summary or {}),
        },
        people={
            "partition spec": [partition_field(found, field) for field in found.spec().fields],
            "sort order": [sort_field(found, field) for field in found.sort_order().fields],
        },
    )
