"""Register a table by its existing metadata file."""

from __future__ import annotations

import click

from icefield_cli.context import Context
from icefield_cli.options import command, table_argument


@command("register", __doc__)
@table_argument
@click.argument("metadata_location")
def run(context: Context, table: str, metadata_location: str) -> None:
    """Run the command."""
    made = context.catalog.register_table(table, metadata_location)
    context.say(f"registered {table} at {made.metadata.location}", table=table)
