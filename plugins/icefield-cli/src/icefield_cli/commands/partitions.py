"""List the partitions of a table, with what each holds."""

from __future__ import annotations

import argparse

from icefield.expressions import AlwaysTrue

from icefield_cli.context import Context
from icefield_cli.rows import rows_of

NAME = "partitions"
_COLUMNS = ("partition", "spec_id", "record_count", "file_count", "total_data_file_size_in_bytes", "last_updated_at")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table, or a metadata file")
    parser.add_argument("--where", metavar="FILTER", help="only files that may match, such as \"ts >= '2024-01-01'\"")
    parser.add_argument("--snapshot", type=int, metavar="ID", help="an earlier snapshot by its id")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    table = context.table(given.table)
    with context.progress("reading manifests"):
        found = table.inspect.partitions(given.snapshot, given.where or AlwaysTrue())
    context.rows(rows_of(found.to_batches()), [name for name in _COLUMNS if name in found.column_names])
