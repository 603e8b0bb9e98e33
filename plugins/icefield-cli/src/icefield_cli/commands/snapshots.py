"""List the snapshots of a table."""

from __future__ import annotations

import argparse

from icefield_cli.context import Context
from icefield_cli.rows import rows_of

NAME = "snapshots"
_COLUMNS = ("snapshot_id", "committed_at", "parent_id", "operation", "manifest_list")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table, or a metadata file")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    rows = rows_of(context.table(given.table).inspect.snapshots().to_batches())
    context.rows(({**row, "summary": dict(row["summary"] or ())} for row in rows), _COLUMNS)
