"""List the namespaces of a catalog."""

from __future__ import annotations

import click

from icefield_cli.context import Context
from icefield_cli.options import command


@command("namespaces", __doc__)
@click.argument("parent", metavar="[PARENT]", required=False)
def run(context: Context, parent: str | None) -> None:
    """Run the command."""
    found = context.catalog.list_namespaces(parent or ())
    context.rows(({"namespace": ".".join(name)} for name in found), ("namespace",))
