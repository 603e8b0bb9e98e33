"""Print the rows that differ between two versions of a table."""

from __future__ import annotations

from icefield_cli import Context

from icefield_maintenance.versions import Version


def run(context: Context, table: str, old: str, new: str | None, key: tuple[str, ...]) -> None:
    """Run the command."""
    found = context.table(table).diff(_version(old), _version(new or "main"), key or None)
    context.batches(found.to_reader())


def _version(given: str) -> Version:
    """A snapshot id, or else the name of a branch or tag, or a time."""
    return int(given) if given.isdigit() else given
