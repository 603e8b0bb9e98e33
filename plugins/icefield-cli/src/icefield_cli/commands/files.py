"""List the data files of a table, of all of them or of those that a filter may match."""

from __future__ import annotations

import argparse

from icefield.expressions import AlwaysTrue

from icefield_cli.commands.versions import add_version_options, scan_of
from icefield_cli.context import Context
from icefield_cli.rows import rows_of

NAME = "files"
_COLUMNS = ("file_path", "file_format", "record_count", "file_size_in_bytes", "partition")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table, or a metadata file")
    parser.add_argument("--where", metavar="FILTER", help="a filter, such as \"ts >= '2024-01-01'\"")
    add_version_options(parser)


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    scan = scan_of(context.table(given.table), given, row_filter=given.where or AlwaysTrue())
    with context.progress("planning"):
        plan = scan.plan_arrow()
    columns = [name for name in _COLUMNS if name in plan.column_names]
    context.rows(rows_of(plan.select(columns).to_batches()), columns)
