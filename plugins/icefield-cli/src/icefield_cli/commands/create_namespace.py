"""Create a namespace."""

from __future__ import annotations

from icefield_cli.context import Context


def run(context: Context, namespace: str, properties: tuple[tuple[str, str], ...]) -> None:
    """Run the command."""
    context.catalog.create_namespace(namespace, dict(properties))
    context.say(f"created namespace {namespace}", namespace=namespace)
