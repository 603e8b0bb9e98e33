"""List the namespaces of a catalog."""

from __future__ import annotations

import argparse

from icefield_cli.context import Context

NAME = "namespaces"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("parent", nargs="?", help="list the namespaces below this one")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    found = context.catalog.list_namespaces(given.parent or ())
    context.rows(({"namespace": ".".join(name)} for name in found), ("namespace",))
