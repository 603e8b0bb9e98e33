"""Erase rows from every branch, earlier version and file of a table, and prove that they are gone."""

from __future__ import annotations

from icefield_cli import Context

NAME = "erase"


def run(context: Context, table: str, row_filter: str, remove_tags: bool, always: bool, yes: bool) -> None:
    """Run the command."""
    found = context.table(table)
    if not yes:
        context.confirm(f"Erase the rows {row_filter} from {table}, and all of its earlier versions?")
    with context.changing(NAME):
        result = found.maintenance.erase(row_filter, remove_tags=remove_tags, always=always)
    context.result(f"erased {row_filter} from {table}; no file holds such a row any more", NAME, result)
