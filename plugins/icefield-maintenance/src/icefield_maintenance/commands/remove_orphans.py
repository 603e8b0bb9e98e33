"""Find the files below a table that no version of it refers to; with --delete, delete them."""

from __future__ import annotations

from typing import Any

from icefield.toolkit import without_userinfo
from icefield_cli import Context, Row, WrongUsage, rows_of, size, utc

NAME = "remove-orphans"
_COLUMNS = ("location", "size", "modified_at")


def run(context: Context, table: str, location: str | None, dry_run: bool, **options: Any) -> None:
    """Run the command. ``options`` are those of ``RemoveOrphansOptions``."""
    if location == "":
        raise WrongUsage("'--location' is the folder to look into, and not empty")
    maintenance = context.table(table).maintenance
    prefixes: dict[str, Any] = {name: dict(options.pop(name)) for name in ("equal_schemes", "equal_authorities")}
    with context.changing(NAME, dry_run=dry_run):
        result = maintenance.remove_orphan_files(location=location, dry_run=dry_run, **prefixes, **options)
    place = table if location is None else without_userinfo(location)
    if not result.listed:
        context.hint(f"no file is below {place}: it is not there, or empty")
    if result.others:
        more = f", and {len(result.others) - 1:,} such folders more" if len(result.others) > 1 else ""
        context.hint(f"left alone: {without_userinfo(result.others[0])} holds metadata files of another table{more}")
    if dry_run and (result.files or context.json):
        context.rows(rows_of(result.orphans.to_batches()), _COLUMNS, _for_people)
    if not dry_run or context.json:
        title = f"deleted {result.files - result.undeleted:,} orphan files of {table}, {size(result.bytes)}"
        context.result(title, NAME, result, files=result.files, bytes=result.bytes)
    elif result.files:
        context.hint(f"{result.files:,} orphan files, {size(result.bytes)}; --delete deletes them")
    elif result.listed:
        context.line(f"no orphan files below {place}")


def _for_people(row: Row) -> Row:
    return {**row, "size": size(row["size"]), "modified_at": utc(row["modified_ms"])}
