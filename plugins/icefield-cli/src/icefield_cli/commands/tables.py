"""List the tables of a namespace, or of all of them."""

from __future__ import annotations

from icefield_cli.context import Context


def run(context: Context, namespace: str | None) -> None:
    """Run the command."""
    catalog = context.catalog
    found = catalog.list_tables(namespace) if namespace is not None else catalog.walk_tables()
    context.rows(({"table": ".".join(name)} for name in found), ("table",))
