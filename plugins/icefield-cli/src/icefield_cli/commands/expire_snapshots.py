"""Remove old snapshots, branches and tags, and delete the files that only they referred to.

A run that was interrupted is finished by the next.
"""

from __future__ import annotations

import click

from icefield_cli.context import Context
from icefield_cli.options import command, count, dry_run_option, flag, id_option, table_argument
from icefield_cli.rows import rows_of
from icefield_cli.times import instant_or_age

NAME = "expire-snapshots"
_OLDER = "A time, or an age such as 7d; default: what the table's properties say, or 5 days."


@command(NAME, __doc__, goes_with={"files": ("dry_run",)})
@table_argument
@click.option("--older-than", type=instant_or_age, metavar="TIME", help=_OLDER)
@click.option("--retain-last", type=count, metavar="N", help="Keep so many of each branch, whatever their age.")
@id_option("--snapshot", "One that expires; repeatable.", "snapshots", multiple=True)
@flag("--keep-files", "Delete no file.")
@dry_run_option
@flag("--files", "With --dry-run: list the files, instead of their numbers.")
def run(
    context: Context,
    table: str,
    older_than: int | None,
    retain_last: int | None,
    snapshots: tuple[int, ...],
    keep_files: bool,
    dry_run: bool,
    files: bool,
) -> None:
    """Run the command."""
    maintenance = context.table(table).maintenance
    with context.changing(NAME, dry_run=dry_run):
        result = maintenance.expire_snapshots(
            older_than, retain_last, snapshots, dry_run=dry_run, clean_files=not keep_files
        )
    if files:
        context.rows(rows_of(result.locations()), ("kind", "location"))
        return
    number = len(result.snapshot_ids)
    done = "would expire" if dry_run else "expired"
    context.result(f"{done} {number:,} snapshots of {table}; files: {result.files:,}", NAME, result, files=result.files)
