"""Rename a table; its files stay where they are."""

from __future__ import annotations

import click

from icefield_cli.context import Context
from icefield_cli.options import command, table_argument


@command("rename-table", __doc__)
@table_argument
@click.argument("name")
def run(context: Context, table: str, name: str) -> None:
    """Run the command."""
    context.catalog.rename_table(table, name)
    context.say(f"renamed {table} to {name}", table=name)
