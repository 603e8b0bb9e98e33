"""Register a table by its existing metadata file."""

from __future__ import annotations

from icefield_cli.context import Context


def run(context: Context, table: str, metadata_location: str) -> None:
    """Run the command."""
    made = context.catalog.register_table(table, metadata_location)
    context.say(f"registered {table} at {made.metadata.location}", table=table)
