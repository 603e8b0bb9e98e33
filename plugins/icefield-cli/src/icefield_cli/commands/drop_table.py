"""Drop a table; its files stay, unless they are to be deleted too."""

from __future__ import annotations

from icefield_cli.context import Context
from icefield_cli.options import command, flag, table_argument


@command("drop-table", __doc__)
@table_argument
@flag("--purge", "Delete its data and its metadata too.")
def run(context: Context, table: str, purge: bool) -> None:
    """Run the command."""
    with context.progress("deleting"):
        context.catalog.drop_table(table, purge=purge)
    context.say(f"dropped {table}", table=table, purged=purge)
