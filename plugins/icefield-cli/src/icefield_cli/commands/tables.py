"""List the tables of a namespace."""

from __future__ import annotations

import argparse

from icefield_cli.context import Context

NAME = "tables"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("namespace")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    found = context.catalog.list_tables(given.namespace)
    context.rows(({"table": ".".join(name)} for name in found), ("table",))
