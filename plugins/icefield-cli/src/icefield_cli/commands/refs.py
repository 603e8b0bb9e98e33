"""List the branches and tags of a table."""

from __future__ import annotations

import argparse

from icefield_cli.context import Context
from icefield_cli.rows import rows_of

NAME = "refs"
_COLUMNS = (
    "name",
    "type",
    "snapshot_id",
    "max_reference_age_in_ms",
    "min_snapshots_to_keep",
    "max_snapshot_age_in_ms",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table, or a metadata file")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    context.rows(rows_of(context.table(given.table).inspect.refs().to_batches()), _COLUMNS)
