"""Find the files below a table that no version of it refers to; with --delete, delete them.

Files of the last three days are left, since a writer that has not committed yet may have made them.
"""

from __future__ import annotations

import argparse

from icefield_cli.context import Context, pair
from icefield_cli.rows import rows_of
from icefield_cli.times import instant_or_age

NAME = "remove-orphans"
_COLUMNS = ("location", "size", "modified_ms")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table; or, to look only, a metadata file")
    parser.add_argument("--delete", action="store_true", help="delete them; without it they are listed only")
    parser.add_argument(
        "--older-than", type=instant_or_age, metavar="TIME", help="a time, or an age such as 7d; default: 3d"
    )
    parser.add_argument(
        "--allow-recent", action="store_true", help="take files of the last day too: no writer is at work"
    )
    parser.add_argument("--location", metavar="URI", help="the folder to look into; default: the table's")
    parser.add_argument(
        "--equal-scheme", metavar="A=B", type=pair, action="append", default=[], help="A: means B:; repeatable"
    )
    parser.add_argument(
        "--equal-authority", metavar="A=B", type=pair, action="append", default=[], help="host A means B; repeatable"
    )
    parser.add_argument(
        "--prefix-mismatch",
        choices=("error", "ignore", "delete"),
        default="error",
        help="files of which it is in doubt whether they are the table's; default: error",
    )


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    table = context.table(given.table)
    with context.changing(NAME, dry_run=not given.delete):
        result = table.maintenance.remove_orphan_files(
            given.older_than,
            given.location,
            dry_run=not given.delete,
            allow_recent=given.allow_recent,
            equal_schemes=dict(given.equal_scheme),
            equal_authorities=dict(given.equal_authority),
            prefix_mismatch=given.prefix_mismatch,
        )
    if given.delete:
        title = f"deleted {result.files - result.undeleted:,} orphan files of {given.table}; bytes: {result.bytes:,}"
        context.result(title, NAME, result)
        return
    context.rows(rows_of(result.orphans.to_batches()), _COLUMNS)
