"""Drop a table; its files stay, unless they are to be deleted too."""

from __future__ import annotations

from icefield_cli.context import Context


def run(context: Context, table: str, purge: bool) -> None:
    """Run the command."""
    with context.progress("deleting"):
        context.catalog.drop_table(table, purge=purge)
    context.say(f"dropped {table}", table=table, purged=purge)
