"""List which snapshot was current when."""

from __future__ import annotations

import argparse

from icefield_cli.context import Context
from icefield_cli.rows import rows_of

NAME = "history"
_COLUMNS = (
    "made_current_at",
    "snapshot_id",
    "parent_id",
    "is_current_ancestor",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table, or a metadata file")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    context.rows(rows_of(context.table(given.table).inspect.history().to_batches()), _COLUMNS)
