"""The names in a catalog, page by page and at every depth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import TypeVar

from icefield.abc import CatalogAbility, CatalogBackend, NamespaceName, Page, TableName
from icefield.base.limits import MAX_LISTED_CHARACTERS, MAX_LISTED_NAMES
from icefield.catalog.identifiers import namespace_name
from icefield.errors import InvalidArgument, InvalidMetadata, NoSuchNamespace

Name = TypeVar("Name", bound="tuple[str, ...]")


def pages(listing: str, read: Callable[[str | None], Page[Name]]) -> Iterator[Name]:
    """The names of all pages. Raises ``InvalidMetadata`` if the pages do not end; a page may be empty."""
    page = read(None)
    steps = characters = 0
    while True:
        steps += max(1, len(page.items))
        characters += sum(map(len, chain.from_iterable(page.items)))
        if steps > MAX_LISTED_NAMES or characters > MAX_LISTED_CHARACTERS:
            raise InvalidMetadata(
                f"{listing} do not end after {steps:,} names and pages, and {characters:,} characters; "
                f"{MAX_LISTED_NAMES:,} and {MAX_LISTED_CHARACTERS:,} are the most: load tables by their names"
            )
        yield from page.items
        if page.next_token is None:
            return
        page = read(page.next_token)


class ListingsOfCatalog:
    """The methods of ``Catalog`` that list namespaces and tables."""

    _backend: CatalogBackend

    def list_namespaces(self, namespace: str | Iterable[str] = ()) -> list[NamespaceName]:
        """The child namespaces of a namespace, or the top-level ones, sorted. Raises ``NoSuchNamespace``."""
        parent = self._namespace(namespace) if namespace else ()
        listing = f"the namespaces of catalog '{self._backend.name}'"
        return list(pages(listing, lambda token: self._backend.list_namespaces(parent, token=token)))

    def walk_namespaces(self, namespace: str | Iterable[str] = ()) -> Iterator[NamespaceName]:
        """Iterate over the namespaces below a namespace, at every depth: each before those inside it.

        A namespace that is dropped meanwhile has none inside. Raises ``NoSuchNamespace`` if the first does not exist.
        """
        nested = CatalogAbility.NESTED_NAMESPACES in self._backend.abilities
        waiting = self.list_namespaces(namespace)[::-1]
        seen = set()
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            yield name
            if nested:
                with suppress(NoSuchNamespace):
                    waiting += self.list_namespaces(name)[::-1]

    def list_tables(self, namespace: str | Iterable[str]) -> list[TableName]:
        """The tables directly in a namespace, sorted. Raises ``NoSuchNamespace``."""
        return self._list_names("tables", namespace, self._backend.list_tables)

    def walk_tables(self, namespace: str | Iterable[str] = ()) -> Iterator[TableName]:
        """Iterate over the tables in a namespace and below it, or over all tables of the catalog.

        Namespaces that are dropped meanwhile are left out. Raises ``NoSuchNamespace`` if the first does not exist.
        """
        if namespace:
            yield from self.list_tables(namespace)
        for inner in self.walk_namespaces(namespace):
            with suppress(NoSuchNamespace):
                yield from self.list_tables(inner)

    def _list_names(
        self, what: str, namespace: str | Iterable[str], read: Callable[..., Page[TableName]]
    ) -> list[TableName]:
        name = self._namespace(namespace)
        listing = f"the {what} of {'.'.join(name)} in catalog '{self._backend.name}'"
        return list(pages(listing, lambda token: read(name, token=token)))

    def _namespace(self, namespace: str | Iterable[str]) -> NamespaceName:
        name = namespace_name(namespace)
        if len(name) > 1 and CatalogAbility.NESTED_NAMESPACES not in self._backend.abilities:
            raise InvalidArgument(
                f"catalog '{self._backend.name}' has no nested namespaces: '{'.'.join(name)}' cannot be"
            )
        return name
