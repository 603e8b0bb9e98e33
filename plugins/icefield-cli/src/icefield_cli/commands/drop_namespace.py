"""Drop a namespace that is empty."""

from __future__ import annotations

import click

from icefield_cli.context import Context
from icefield_cli.options import command


@command("drop-namespace", __doc__)
@click.argument("namespace")
def run(context: Context, namespace: str) -> None:
    """Run the command."""
    context.catalog.drop_namespace(namespace)
    context.say(f"dropped namespace {namespace}", namespace=namespace)
