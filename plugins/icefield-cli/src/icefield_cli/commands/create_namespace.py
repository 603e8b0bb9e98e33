"""Create a namespace."""

from __future__ import annotations

import argparse

from icefield_cli.context import Context, pair

NAME = "create-namespace"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("namespace")
    parser.add_argument(
        "--set", metavar="KEY=VALUE", type=pair, action="append", default=[], help="a property of it; repeatable"
    )


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    context.catalog.create_namespace(given.namespace, dict(given.set))
    context.say(f"created namespace {given.namespace}", namespace=given.namespace)
