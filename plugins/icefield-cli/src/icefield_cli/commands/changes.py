"""Print the rows that the snapshots of a range inserted, deleted and updated, in their order."""

from __future__ import annotations

from typing import Any

from icefield_cli.context import Context
from icefield_cli.scanning import filter_of, limit_of, print_scan


def run(
    context: Context,
    table: str,
    after: int | None,
    first: int | None,
    since: int | None,
    to: int | None,
    until: int | None,
    ref: str | None,
    net: bool,
    key: tuple[str, ...],
    **rows: Any,
) -> None:
    """Run the command."""
    scan = context.table(table).incremental_changelog_scan(
        filter_of(rows["where"]),
        rows["columns"] or ("*",),
        from_snapshot_id_exclusive=after,
        from_snapshot_id_inclusive=first,
        to_snapshot_id_inclusive=to,
        from_timestamp=since,
        to_timestamp=until,
        ref=ref,
        net_changes=net,
        identifier_columns=key,
        limit=limit_of(context, rows),
    )
    print_scan(context, scan, rows)
