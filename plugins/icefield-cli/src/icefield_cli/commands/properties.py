"""Show, set or remove properties of a table."""

from __future__ import annotations

import argparse

from icefield_cli.context import Context, pair

NAME = "properties"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table, or a metadata file")
    parser.add_argument("--set", metavar="KEY=VALUE", type=pair, action="append", default=[], help="repeatable")
    parser.add_argument("--remove", metavar="KEY", action="append", default=[], help="repeatable")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    table = context.table(given.table)
    if given.set or given.remove:
        changes = dict(given.set)
        with table.transaction() as transaction:
            if changes:
                transaction.set_properties(changes)
            if given.remove:
                transaction.remove_properties(*given.remove)
        table = table.refresh()
    rows = ({"key": key, "value": value} for key, value in sorted(table.metadata.properties.items()))
    context.rows(rows, ("key", "value"))
