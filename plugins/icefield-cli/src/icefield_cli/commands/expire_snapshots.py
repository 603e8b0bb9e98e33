"""Remove old snapshots, branches and tags, and delete the files that only they referred to.

A run that was interrupted is finished by the next.
"""

from __future__ import annotations

import argparse

from icefield_cli.context import Context, count
from icefield_cli.rows import rows_of
from icefield_cli.times import instant_or_age

NAME = "expire-snapshots"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table")
    parser.add_argument(
        "--older-than",
        type=instant_or_age,
        metavar="TIME",
        help="a time, or an age such as 7d; default: what the table's properties say, or 5 days",
    )
    parser.add_argument(
        "--retain-last", type=count, metavar="N", help="keep so many of each branch, whatever their age"
    )
    parser.add_argument(
        "--snapshot", type=int, action="append", default=[], metavar="ID", help="one that expires; repeatable"
    )
    parser.add_argument("--keep-files", action="store_true", help="delete no file")
    parser.add_argument("--dry-run", action="store_true", help="change nothing, and say what would be done")
    parser.add_argument("--files", action="store_true", help="with --dry-run: list the files, instead of their numbers")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    table = context.table(given.table)
    with context.changing(NAME, dry_run=given.dry_run):
        result = table.maintenance.expire_snapshots(
            given.older_than,
            given.retain_last,
            given.snapshot,
            dry_run=given.dry_run,
            clean_files=not given.keep_files,
        )
    if given.files and given.dry_run:
        context.rows(rows_of(result.locations()), ("kind", "location"))
        return
    number = len(result.snapshot_ids)
    done = "would expire" if given.dry_run else "expired"
    context.result(f"{done} {number:,} snapshots of {given.table}; files: {result.files:,}", NAME, result)
