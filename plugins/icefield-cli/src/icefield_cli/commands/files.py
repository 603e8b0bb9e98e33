"""List the data files of a table, of all of them or of those a filter may match."""

from __future__ import annotations

import argparse

from icefield.expressions import AlwaysTrue

from icefield_cli.context import Context

NAME = "files"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table")
    parser.add_argument("--where", help="a filter, such as \"ts >= '2024-01-01'\"")
    parser.add_argument("--snapshot", type=int, help="an earlier snapshot by its id")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    scan = context.table(given.table).scan(row_filter=given.where or AlwaysTrue(), snapshot_id=given.snapshot)
    columns = ("file_path", "file_format", "record_count", "file_size_in_bytes", "partition")
    plan = scan.plan_arrow()
    for batch in plan.select([name for name in columns if name in plan.column_names]).to_batches():
        context.rows(batch.to_pylist(), columns)
