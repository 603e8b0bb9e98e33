"""Create a namespace."""

from __future__ import annotations

import click

from icefield_cli.context import Context
from icefield_cli.options import command, pairs_option


@command("create-namespace", __doc__)
@click.argument("namespace")
@pairs_option("--set", "A property of it; repeatable.", "properties")
def run(context: Context, namespace: str, properties: tuple[tuple[str, str], ...]) -> None:
    """Run the command."""
    context.catalog.create_namespace(namespace, dict(properties))
    context.say(f"created namespace {namespace}", namespace=namespace)
