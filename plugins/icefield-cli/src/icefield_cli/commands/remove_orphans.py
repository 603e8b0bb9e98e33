"""Find the files below a table that no version of it refers to; with --delete, delete them.

Files of the last three days are left, since a writer that has not committed yet may have made them.
"""

from __future__ import annotations

from typing import Any

import click
from icefield.toolkit import without_userinfo

from icefield_cli.context import Context, Row
from icefield_cli.options import command, flag, pairs_option, table_argument
from icefield_cli.people import size, utc
from icefield_cli.rows import rows_of
from icefield_cli.times import instant_or_age

NAME = "remove-orphans"
_COLUMNS = ("location", "size", "modified_at")
_OLDER = "A time, or an age such as 7d; default: 3d."
_MISMATCH = "What to do with files that may or may not be the table's; default: error."


@command(NAME, __doc__, goes_with={"allow_recent": ("older_than",)})
@table_argument
@flag("--delete", "Delete them; without it they are listed only.")
@click.option("--older-than", type=instant_or_age, metavar="TIME", help=_OLDER)
@flag("--allow-recent", "Take files of the last day too: no writer is at work.")
@click.option("--location", metavar="URI", help="The folder to look into; default: the table's.")
@pairs_option("--equal-scheme", "A: means B:; repeatable.", metavar="A=B")
@pairs_option("--equal-authority", "Host A means B; repeatable.", metavar="A=B")
@click.option("--prefix-mismatch", type=click.Choice(["error", "ignore", "delete"]), default="error", help=_MISMATCH)
@flag("--exclusive", "No other table needs a file of the folder: take those of other and of dropped tables, too.")
def run(
    context: Context,
    table: str,
    delete: bool,
    older_than: int | None,
    allow_recent: bool,
    location: str | None,
    equal_scheme: tuple[tuple[str, str], ...],
    equal_authority: tuple[tuple[str, str], ...],
    prefix_mismatch: Any,
    exclusive: bool,
) -> None:
    """Run the command."""
    if location == "":
        raise click.UsageError("'--location' is the folder to look into, and not empty")
    maintenance = context.table(table).maintenance
    with context.changing(NAME, dry_run=not delete):
        result = maintenance.remove_orphan_files(
            older_than,
            location,
            dry_run=not delete,
            allow_recent=allow_recent,
            equal_schemes=dict(equal_scheme),
            equal_authorities=dict(equal_authority),
            prefix_mismatch=prefix_mismatch,
            exclusive=exclusive,
        )
    place = table if location is None else without_userinfo(location)
    if not result.listed:
        context.hint(f"no file is below {place}: it is not there, or empty")
    if result.others:
        more = f", and {len(result.others) - 1:,} such folders more" if len(result.others) > 1 else ""
        context.hint(f"left alone: {without_userinfo(result.others[0])} holds metadata files of another table{more}")
    if not delete and (result.files or context.json):
        context.rows(rows_of(result.orphans.to_batches()), _COLUMNS, _for_people)
    if delete or context.json:
        title = f"deleted {result.files - result.undeleted:,} orphan files of {table}, {size(result.bytes)}"
        context.result(title, NAME, result, files=result.files, bytes=result.bytes)
    elif result.files:
        context.hint(f"{result.files:,} orphan files, {size(result.bytes)}; --delete deletes them")
    elif result.listed:
        context.line(f"no orphan files below {place}")


def _for_people(row: Row) -> Row:
    return {**row, "size": size(row["size"]), "modified_at": utc(row["modified_ms"])}
