"""Drop a namespace that is empty."""

from __future__ import annotations

import argparse

from icefield_cli.context import Context

NAME = "drop-namespace"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("namespace")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    context.catalog.drop_namespace(given.namespace)
    context.say(f"dropped namespace {given.namespace}", namespace=given.namespace)
