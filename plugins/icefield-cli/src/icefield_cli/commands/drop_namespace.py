"""Drop a namespace that is empty."""

from __future__ import annotations

from icefield_cli.context import Context


def run(context: Context, namespace: str) -> None:
    """Run the command."""
    context.catalog.drop_namespace(namespace)
    context.say(f"dropped namespace {namespace}", namespace=namespace)
