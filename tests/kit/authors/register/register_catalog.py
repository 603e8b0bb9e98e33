"""A catalog over the same service: a namespace is a value too, under its name and a slash.

The service decides on one value in a step, so no table can be created on condition that its namespace is there. A table
makes its namespace instead, as a name makes the namespaces above it: these have no value, and no properties.

Properties: ``register.port``, ``warehouse``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import unquote

from authors.register.register_strategy import NoAnswer, RegisterStrategy, ask, key_of
from icefield.abc import CatalogAbility, CatalogBackend, CommitStrategy, NamespaceName, Page, TableName
from icefield.errors import (
    NamespaceExists,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NotSupportedByCatalog,
    StorageError,
    TableExists,
)


class RegisterBackend(CatalogBackend):
    """Names in a register, which sets one value in one step: renaming needs two steps, and is a declared gap."""

    abilities = frozenset({CatalogAbility.REGISTRATION, CatalogAbility.NESTED_NAMESPACES})

    def create_namespace(self, namespace: NamespaceName, properties: Mapping[str, str]) -> None:
        if self._ask("PUT", _key(namespace), json.dumps(dict(properties)), {"If-None-Match": "*"})[0] == 412:
            raise NamespaceExists(f"namespace {'.'.join(namespace)} exists", namespace=namespace)

    def drop_namespace(self, namespace: NamespaceName) -> None:
        self._entry(namespace)
        if self._has_names_below(namespace):
            raise NamespaceNotEmpty(f"namespace {'.'.join(namespace)} is not empty", namespace=namespace)
        if self._ask("DELETE", _key(namespace))[0] == 412:
            raise self._missing(namespace)

    def list_namespaces(
        self, parent: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[NamespaceName]:
        return self._page(parent, True, token, size)

    def namespace_properties(self, namespace: NamespaceName) -> dict[str, str]:
        found: dict[str, str] = json.loads(self._entry(namespace) or "{}")
        return found

    def update_namespace_properties(
        self, namespace: NamespaceName, updates: Mapping[str, str], removals: frozenset[str]
    ) -> None:
        while True:
            before = self._entry(namespace)
            kept = {key: value for key, value in json.loads(before or "{}").items() if key not in removals}
            condition = {"If-None-Match": "*"} if before is None else {"If-Match": before}
            if self._ask("PUT", _key(namespace), json.dumps({**kept, **updates}), condition)[0] == 204:
                return

    def list_tables(
        self, namespace: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[TableName]:
        return self._page(namespace, False, token, size)

    def table_location(self, table: TableName) -> str:
        self._entry(table[:-1])
        return "/".join((self.properties["warehouse"], *table))

    def strategy(self, table: TableName, location: str | None = None) -> CommitStrategy:
        place = location or self.properties["warehouse"]
        return RegisterStrategy(table, place, self.io.storage(place), self.properties)

    def register_table(self, table: TableName, metadata_location: str) -> None:
        self._entry(table[:-1])
        if self._ask("PUT", key_of(table), metadata_location, {"If-None-Match": "*"})[0] == 412:
            raise TableExists(f"table {'.'.join(table)} exists", table=table)

    def rename_table(self, source: TableName, target: TableName) -> None:
        raise NotSupportedByCatalog("a register cannot move a value to another name in one step", table=source)

    def _entry(self, namespace: NamespaceName) -> str | None:
        """The value of a namespace; None if only names below make it. Raises ``NoSuchNamespace``."""
        status, value = self._ask("GET", _key(namespace))
        if status == 404 and not self._has_names_below(namespace):
            raise self._missing(namespace)
        return None if status == 404 else value

    def _has_names_below(self, namespace: NamespaceName) -> bool:
        return any(name[: len(namespace)] == namespace != name for name, _ in self._names())

    def _missing(self, namespace: NamespaceName) -> NoSuchNamespace:
        return NoSuchNamespace(f"no namespace {'.'.join(namespace)}", namespace=namespace)

    def _names(self) -> list[tuple[tuple[str, ...], bool]]:
        """Every name, and whether it names a namespace."""
        keys = self._ask("GET", "/")[1].split("\n")
        return [(tuple(unquote(part) for part in key.strip("/").split("/")), key.endswith("/")) for key in keys if key]

    def _page(
        self, parent: NamespaceName, is_namespace: bool, token: str | None, size: int | None
    ) -> Page[tuple[str, ...]]:
        if parent:
            self._entry(parent)
        below = [(name, kind) for name, kind in self._names() if name[: len(parent)] == parent != name]
        if is_namespace:
            depth = len(parent) + 1
            found = {name[:depth] for name, kind in below if kind or len(name) > depth}
        else:
            found = {name for name, kind in below if not kind and name[:-1] == parent}
        left = sorted(name for name in found if token is None or name[-1] > token)
        if size is None or len(left) <= size:
            return Page(tuple(left))
        return Page(tuple(left[:size]), left[size - 1][-1])

    def _ask(self, method: str, key: str, value: str = "", headers: dict[str, str] | None = None) -> tuple[int, str]:
        try:
            status, answer = ask(self.properties, method, key, value, headers)
        except NoAnswer as error:
            raise StorageError(f"catalog '{self.name}': {error}", retryable=method == "GET") from error
        if status >= 500:
            raise StorageError(f"catalog '{self.name}': the register answers {status}", retryable=True)
        return status, answer


def _key(namespace: NamespaceName) -> str:
    return f"{key_of(namespace)}/"
