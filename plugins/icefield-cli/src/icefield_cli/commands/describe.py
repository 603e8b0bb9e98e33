"""Show what a table is: location, schema, partitioning, properties, current snapshot."""

from __future__ import annotations

import argparse

from icefield_cli.context import Context

NAME = "describe"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table, or a metadata file")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    table = context.table(given.table)
    metadata = table.metadata
    snapshot = table.current_snapshot()
    context.record(
        {
            "table": given.table,
            "format version": metadata.format_version,
            "uuid": metadata.table_uuid,
            "location": metadata.location,
            "metadata file": table.metadata_location,
            "schema": [str(field) for field in table.schema().fields],
            "partition spec": [str(field) for field in table.spec().fields],
            "sort order": [str(field) for field in table.sort_order().fields],
            "properties": dict(sorted(metadata.properties.items())),
            "snapshots": len(metadata.snapshots),
            "current snapshot": None if snapshot is None else snapshot.snapshot_id,
            "summary": {} if snapshot is None else dict(snapshot.summary or {}),
        }
    )
