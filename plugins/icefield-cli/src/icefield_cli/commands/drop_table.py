"""Drop a table; its files stay, unless they are to be deleted too."""

from __future__ import annotations

from icefield_cli.context import Context


def run(context: Context, table: str, purge: bool, yes: bool) -> None:
    """Run the command."""
    if purge and not yes:
        context.confirm(f"Delete all files of {table}?")
    with context.progress("deleting"):
        context.catalog.drop_table(table, purge=purge)
    context.say(f"dropped {table}", table=table, purged=purge)
