"""List the tables of a namespace, or of all of them."""

from __future__ import annotations

from collections.abc import Iterator

from icefield import Catalog

from icefield_cli.context import Context


def run(context: Context, namespace: str | None) -> None:
    """Run the command."""
    catalog = context.catalog
    found = catalog.list_tables(namespace) if namespace is not None else _all_tables(catalog, ())
    context.rows(({"table": ".".join(name)} for name in found), ("table",))


def _all_tables(catalog: Catalog, parent: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for namespace in catalog.list_namespaces(parent):
        yield from catalog.list_tables(namespace)
        yield from _all_tables(catalog, namespace)
