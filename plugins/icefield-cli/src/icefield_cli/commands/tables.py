"""List the tables of a namespace, or of all of them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from icefield import Catalog

from icefield_cli.context import Context

NAME = "tables"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("namespace", nargs="?", help="list the tables of this one only")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    catalog = context.catalog
    found = catalog.list_tables(given.namespace) if given.namespace else _all_tables(catalog, ())
    context.rows(({"table": ".".join(name)} for name in found), ("table",))


def _all_tables(catalog: Catalog, parent: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for namespace in catalog.list_namespaces(parent):
        yield from catalog.list_tables(namespace)
        yield from _all_tables(catalog, namespace)
