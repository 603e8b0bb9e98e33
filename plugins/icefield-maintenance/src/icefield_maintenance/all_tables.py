"""All tables of a catalog."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from icefield import Catalog


def all_tables(catalog: Catalog) -> Iterator[tuple[str, ...]]:
    """The names of all tables of a catalog, one namespace after another."""
    waiting = [*catalog.list_namespaces()]
    seen = set(waiting)
    while waiting:
        namespace = waiting.pop()
        yield from catalog.list_tables(namespace)
        inner = [each for each in catalog.list_namespaces(namespace) if each not in seen]
        seen.update(inner)
        waiting += inner
