"""List which snapshot was current when."""

from __future__ import annotations

import argparse

from icefield_cli.context import Context

NAME = "history"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    rows = context.table(given.table).inspect.history().to_pylist()
    context.rows(rows, ("made_current_at", "snapshot_id", "parent_id", "is_current_ancestor"))
