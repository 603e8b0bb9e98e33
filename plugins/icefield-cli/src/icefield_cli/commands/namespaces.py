"""List the namespaces of a catalog."""

from __future__ import annotations

from icefield_cli.context import Context


def run(context: Context, parent: str | None) -> None:
    """Run the command."""
    found = context.catalog.list_namespaces(parent or ())
    context.rows(({"namespace": ".".join(name)} for name in found), ("namespace",))
