"""Remove old snapshots, branches and tags, and delete the files that only they referred to."""

from __future__ import annotations

from typing import Any

from icefield_cli import Context, rows_of

NAME = "expire-snapshots"


def run(context: Context, table: str, files: bool, **options: Any) -> None:
    """Run the command. ``options`` are those of ``ExpireOptions``."""
    maintenance = context.table(table).maintenance
    dry_run = options["dry_run"]
    with context.changing(NAME, dry_run=dry_run):
        result = maintenance.expire_snapshots(**options)
    if files:
        context.rows(rows_of(result.locations()), ("kind", "location"))
        return
    number = len(result.snapshot_ids)
    done = "would expire" if dry_run else "expired"
    context.result(f"{done} {number:,} snapshots of {table}; files: {result.files:,}", NAME, result, files=result.files)
