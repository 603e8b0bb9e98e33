"""Print rows of a table."""

from __future__ import annotations

import argparse

from icefield.expressions import AlwaysTrue

from icefield_cli.context import Context

NAME = "scan"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table")
    parser.add_argument("--where", help="a filter, such as \"kind in ('a', 'b')\"")
    parser.add_argument("--columns", help="the columns, separated by commas")
    parser.add_argument("--limit", type=int, default=20, help="the most rows (20)")
    parser.add_argument("--snapshot", type=int, help="an earlier snapshot by its id")
    parser.add_argument("--count", action="store_true", help="print the number of matching rows only")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    columns = tuple(name.strip() for name in given.columns.split(",")) if given.columns else ("*",)
    limit = None if given.count else given.limit
    scan = context.table(given.table).scan(
        row_filter=given.where or AlwaysTrue(), selected_fields=columns, snapshot_id=given.snapshot, limit=limit
    )
    if given.count:
        context.record({"rows": scan.count()})
        return
    found = scan.to_arrow()
    context.rows(found.to_pylist(), found.column_names)
