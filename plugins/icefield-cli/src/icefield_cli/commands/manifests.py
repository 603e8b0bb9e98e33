"""List the manifests of a table."""

from __future__ import annotations

import argparse

from icefield_cli.context import Context
from icefield_cli.rows import rows_of

NAME = "manifests"
_COLUMNS = (
    "path",
    "length",
    "content",
    "partition_spec_id",
    "added_snapshot_id",
    "added_data_files_count",
    "existing_data_files_count",
    "deleted_data_files_count",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table, or a metadata file")
    parser.add_argument("--snapshot", type=int, metavar="ID", help="an earlier snapshot by its id")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    found = context.table(given.table).inspect.manifests(given.snapshot)
    context.rows(rows_of(found.to_batches()), _COLUMNS)
