"""The names of a whole catalog, however deep its namespaces are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from icefield.abc import CatalogAbility, NamespaceName, TableName
from icefield.catalog.catalog import Catalog, Identifier
from icefield.errors import NoSuchNamespace


def all_namespaces(catalog: Catalog, parent: Identifier = ()) -> Iterator[NamespaceName]:
    """The namespaces below a namespace, at every depth: each before those inside it, sorted.

    A namespace that is dropped meanwhile has none inside. Raises ``NoSuchNamespace`` if ``parent`` does not exist.
    """
    nested = CatalogAbility.NESTED_NAMESPACES in catalog.backend.abilities
    waiting = catalog.list_namespaces(parent)[::-1]
    seen = set()
    while waiting:
        namespace = waiting.pop()
        if namespace in seen:
            continue
        seen.add(namespace)
        yield namespace
        if nested:
            with suppress(NoSuchNamespace):
                waiting += catalog.list_namespaces(namespace)[::-1]


def all_tables(catalog: Catalog) -> Iterator[TableName]:
    """The tables of a catalog, one namespace after another. Namespaces that are dropped meanwhile are left out."""
    for namespace in all_namespaces(catalog):
        with suppress(NoSuchNamespace):
            yield from catalog.list_tables(namespace)
