"""Rename a table; its files stay where they are."""

from __future__ import annotations

from icefield_cli.context import Context


def run(context: Context, table: str, name: str) -> None:
    """Run the command."""
    context.catalog.rename_table(table, name)
    context.say(f"renamed {table} to {name}", table=name)
