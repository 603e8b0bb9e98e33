"""All tables of a catalog."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from icefield.errors import NoSuchNamespace

if TYPE_CHECKING:
    from icefield import Catalog


def all_tables(catalog: Catalog) -> Iterator[tuple[str, ...]]:
    """The names of all tables of a catalog, one namespace after another, without namespaces dropped meanwhile."""
    waiting = [*catalog.list_namespaces()]
    seen = set(waiting)
    while waiting:
        namespace = waiting.pop()
        try:
            tables, inner = catalog.list_tables(namespace), catalog.list_namespaces(namespace)
        except NoSuchNamespace:
            continue
        yield from tables
        inner = [each for each in inner if each not in seen]
        seen.update(inner)
        waiting += inner
