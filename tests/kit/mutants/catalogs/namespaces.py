"""Catalogs that do one thing wrong with namespaces."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace

from dictionary_catalog import DictionaryBackend
from icefield.abc import NamespaceName, Page
from icefield.errors import InvalidArgument, NamespaceExists
from icefield.storage import FileIO

from mutants import Mutant, of


class LooksThenCreates(DictionaryBackend):
    def create_namespace(self, namespace: NamespaceName, properties: Mapping[str, str]) -> None:
        there = namespace in self.store.namespaces
        time.sleep(0.05)
        if there:
            raise NamespaceExists(f"namespace {namespace} exists", namespace=namespace)
        self.store.namespaces[namespace] = dict(properties)


class ReplacesNamespaces(DictionaryBackend):
    def create_namespace(self, namespace: NamespaceName, properties: Mapping[str, str]) -> None:
        self.store.namespaces[namespace] = dict(properties)


class LeaksItsMarkers(DictionaryBackend):
    def namespace_properties(self, namespace: NamespaceName) -> dict[str, str]:
        return {**super().namespace_properties(namespace), "exists": "true"}


class NeverRemovesProperties(DictionaryBackend):
    def update_namespace_properties(
        self, namespace: NamespaceName, updates: Mapping[str, str], removals: frozenset[str]
    ) -> None:
        super().update_namespace_properties(namespace, updates, frozenset())


class TakesMissingForEmpty(DictionaryBackend):
    def check(self, namespace: NamespaceName) -> None:
        self.store.namespaces.setdefault(namespace, {})


class ListsEveryLevel(DictionaryBackend):
    def list_namespaces(
        self, parent: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[NamespaceName]:
        return self.page([name for name in self.store.namespaces if name[: len(parent)] == parent != name], token, size)


class DropsWhatIsInUse(DictionaryBackend):
    def drop_namespace(self, namespace: NamespaceName) -> None:
        self.check(namespace)
        del self.store.namespaces[namespace]


class RemembersDroppedNamespaces(DictionaryBackend):
    def __init__(self, name: str, properties: Mapping[str, str], io: FileIO) -> None:
        super().__init__(name, properties, io)
        self.old: dict[NamespaceName, dict[str, str]] = {}

    def drop_namespace(self, namespace: NamespaceName) -> None:
        old = self.store.namespaces.get(namespace, {})
        super().drop_namespace(namespace)
        self.old[namespace] = old

    def create_namespace(self, namespace: NamespaceName, properties: Mapping[str, str]) -> None:
        super().create_namespace(namespace, {**self.old.get(namespace, {}), **properties})


class RaisesItsOwnErrors(DictionaryBackend):
    def check(self, namespace: NamespaceName) -> None:
        if namespace not in self.store.namespaces:
            raise InvalidArgument("there is no such thing")


class ListsOnePage(DictionaryBackend):
    def page(self, names: Iterable[tuple[str, ...]], token: str | None, size: int | None) -> Page[tuple[str, ...]]:
        return replace(super().page(names, token, size or 50), next_token=None)


MUTANTS: list[Mutant] = of(
    {
        LooksThenCreates: ("test_one_of_many_creators_of_a_namespace_wins", "looks first and writes then"),
        ReplacesNamespaces: ("test_creating_a_namespace_twice_is_refused", "replaces the first"),
        LeaksItsMarkers: ("test_a_created_namespace_is_listed_with_its_properties", "markers that leak"),
        NeverRemovesProperties: (
            "test_namespace_properties_are_set_and_removed_together",
            "update_namespace_properties",
        ),
        TakesMissingForEmpty: ("test_a_namespace_that_is_not_there_is_said_so", "as if it were empty"),
        RaisesItsOwnErrors: ("test_a_namespace_that_is_not_there_is_said_so", "there is no such thing"),
        ListsEveryLevel: ("test_nested_namespaces_are_listed_level_by_level", "levels below the next"),
        DropsWhatIsInUse: ("test_a_namespace_in_use_is_not_dropped", "takes tables"),
        RemembersDroppedNamespaces: ("test_a_dropped_namespace_can_be_created_again", "old properties"),
        ListsOnePage: ("test_a_listing_without_a_size_goes_on_after_the_first_page", "ask for the next one"),
    }
)
