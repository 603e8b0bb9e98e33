"""List the snapshots of a table."""

from __future__ import annotations

import argparse

from icefield_cli.context import Context

NAME = "snapshots"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    rows = context.table(given.table).inspect.snapshots().to_pylist()
    for row in rows:
        row["summary"] = dict(row["summary"] or {})
    columns = ("snapshot_id", "committed_at", "parent_id", "operation", "manifest_list")
    context.rows(rows, columns)
