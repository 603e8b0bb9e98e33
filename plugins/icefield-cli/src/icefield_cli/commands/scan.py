"""Print rows of a table."""

from __future__ import annotations

from typing import Any

from icefield_cli.commands.versions import scan_of
from icefield_cli.context import Context
from icefield_cli.scanning import filter_of, limit_of, print_scan


def run(context: Context, table: str, snapshot: int | None, ref: str | None, as_of: int | None, **rows: Any) -> None:
    """Run the command."""
    scan = scan_of(
        context.table(table),
        snapshot,
        ref,
        as_of,
        row_filter=filter_of(rows["where"]),
        selected_fields=rows["columns"] or ("*",),
        limit=limit_of(context, rows),
    )
    print_scan(context, scan, rows)
