"""A catalog over the same service: a namespace is a value too, under its name and a slash.

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
        self.namespace_properties(namespace)
        if any(name[: len(namespace)] == namespace != name for name, _ in self._names()):
            raise NamespaceNotEmpty(f"namespace {'.'.join(namespace)} is not empty", namespace=namespace)
        if self._ask("DELETE", _key(namespace))[0] == 412:
            raise self._missing(namespace)

    def list_namespaces(
        self, parent: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[NamespaceName]:
        return self._page(parent, True, token, size)

    def namespace_properties(self, namespace: NamespaceName) -> dict[str, str]:
        found: dict[str, str] = json.loads(self._value(namespace))
        return found

    def update_namespace_properties(
        self, namespace: NamespaceName, updates: Mapping[str, str], removals: frozenset[str]
    ) -> None:
        while True:
            before = self._value(namespace)
            kept = {key: value for key, value in json.loads(before).items() if key not in removals}
            if self._ask("PUT", _key(namespace), json.dumps({**kept, **updates}), {"If-Match": before})[0] == 204:
                return

    def list_tables(
        self, namespace: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[TableName]:
        return self._page(namespace, False, token, size)

    def table_location(self, table: TableName) -> str:
        self._value(table[:-1])
        return "/".join((self.properties["warehouse"], *table))

    def strategy(self, table: TableName, location: str | None = None) -> CommitStrategy:
        place = location or self.properties["warehouse"]
        return RegisterStrategy(table, place, self.io.storage(place), self.properties)

    def register_table(self, table: TableName, metadata_location: str) -> None:
        self._value(table[:-1])
        if self._ask("PUT", key_of(table), metadata_location, {"If-None-Match": "*"})[0] == 412:
            raise TableExists(f"table {'.'.join(table)} exists", table=table)

    def rename_table(self, source: TableName, target: TableName) -> None:
        raise NotSupportedByCatalog("a register cannot move a value to another name in one step", table=source)

    def _value(self, namespace: NamespaceName) -> str:
        status, value = self._ask("GET", _key(namespace))
        if status == 404:
            raise self._missing(namespace)
        return value

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
            self._value(parent)
        found = [name for name, kind in self._names() if name[:-1] == parent and kind == is_namespace]
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
