"""Drop a table; its files stay, unless they are to be deleted too."""

from __future__ import annotations

import argparse

from icefield_cli.context import Context

NAME = "drop-table"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table")
    parser.add_argument("--purge", action="store_true", help="delete its data and its metadata too")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    with context.progress("deleting"):
        context.catalog.drop_table(given.table, purge=given.purge)
    context.say(f"dropped {given.table}", table=given.table, purged=given.purge)
