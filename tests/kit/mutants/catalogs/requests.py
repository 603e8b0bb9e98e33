"""Catalogs over a service that check and write in two requests, or that keep claims of names."""

from __future__ import annotations

import time
from collections.abc import Mapping

from dictionary_catalog import WholeDictionaryBackend
from icefield.abc import NamespaceName, Proposal, TableName
from icefield.errors import CommitFailed, NamespaceNotEmpty, NoSuchTable, StorageError, TableExists
from serviced_dictionary import OverAService, ServiceStrategy, asked

from mutants import Mutant, of
from mutants.catalogs.service import LOST

HELD = "test_a_change_that_is_held_up_harms_no_other"


class ReadsThenWritesProperties(OverAService):
    def update_namespace_properties(
        self, namespace: NamespaceName, updates: Mapping[str, str], removals: frozenset[str]
    ) -> None:
        before = self.namespace_properties(namespace)
        after = {key: value for key, value in before.items() if key not in removals} | dict(updates)
        self.ask(lambda: self.store.namespaces.update({namespace: after}))


class _LooksForTheNamespaceFirst(ServiceStrategy):
    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        asked(self.check_free)

        def swap() -> bool:
            if self.pointers.get(self.table) != old or self.table in self.store.views:
                return False
            self.pointers[self.table] = new
            return True

        return asked(swap)


class LooksForTheNamespaceFirst(OverAService):
    strategy_class = _LooksForTheNamespaceFirst


class LooksIntoTheNamespaceFirst(OverAService):
    def drop_namespace(self, namespace: NamespaceName) -> None:
        self.read(lambda: self.direct.namespace_properties(namespace))
        if self.list_tables(namespace).items or self.list_views(namespace).items:
            raise NamespaceNotEmpty("not empty", namespace=namespace)
        self.ask(lambda: self.store.namespaces.pop(namespace))


class LooksThenRenames(OverAService):
    def rename_table(self, source: TableName, target: TableName) -> None:
        taken = self.read(lambda: target in self.store.pointers or target in self.store.views)
        if taken:
            raise TableExists("there is one", table=target)

        def rename() -> None:
            if source not in self.store.pointers:
                raise NoSuchTable("no such table", table=source)
            self.store.pointers[target] = self.store.pointers.pop(source)

        self.ask(rename)


class ReadsThePointerThenRenames(OverAService):
    """The renamed table gets a pointer that was read before, so that a commit in between is lost."""

    def rename_table(self, source: TableName, target: TableName) -> None:
        pointer = self.read(lambda: self.store.pointers.get(source))
        if pointer is None:
            raise NoSuchTable("no such table", table=source)

        def rename() -> None:
            WholeDictionaryBackend.rename_table(self, source, target)
            self.store.pointers[target] = pointer

        self.ask(rename)


_CLAIMED: set[tuple[str, tuple[str, ...]]] = set()
"""The names that clients have claimed, each with its warehouse."""


class _Claims(OverAService):
    def claim(self, name: tuple[str, ...]) -> None:
        if (self.properties["warehouse"], name) in _CLAIMED:
            raise StorageError(f"{'.'.join(name)} is claimed", retryable=True)
        _CLAIMED.add((self.properties["warehouse"], name))

    def release(self, name: tuple[str, ...]) -> None:
        _CLAIMED.discard((self.properties["warehouse"], name))


class KeepsItsClaimAfterALostReply(_Claims):
    def create_namespace(self, namespace: NamespaceName, properties: Mapping[str, str]) -> None:
        self.ask(lambda: self.claim(namespace))
        super().create_namespace(namespace, properties)
        self.ask(lambda: self.release(namespace))


class KeepsTheClaimOfARename(_Claims):
    """Renames a table and claims its new name in one request, and releases the claim in the next."""

    def rename_table(self, source: TableName, target: TableName) -> None:
        def rename() -> None:
            if (self.properties["warehouse"], source) in _CLAIMED:
                raise StorageError("the table is claimed", retryable=True)
            WholeDictionaryBackend.rename_table(self, source, target)
            self.claim(target)

        self.ask(rename)
        self.ask(lambda: self.release(target))


class UnlocksBeforeItWrites(_Claims):
    def update_namespace_properties(
        self, namespace: NamespaceName, updates: Mapping[str, str], removals: frozenset[str]
    ) -> None:
        while True:
            try:
                self.ask(lambda: self.claim(namespace))
                break
            except StorageError as error:
                if not error.retryable:
                    raise
                time.sleep(0.01)
        before = self.namespace_properties(namespace)
        self.ask(lambda: self.release(namespace))
        after = {key: value for key, value in before.items() if key not in removals} | dict(updates)
        self.ask(lambda: self.store.namespaces.update({namespace: after}))


class ReadsThePointerBeforeTheVersion(OverAService):
    """Writes if a version is unchanged, but asks for the version too late: after the pointer."""

    def rename_table(self, source: TableName, target: TableName) -> None:
        pointer = self.read(lambda: self.store.pointers.get(source))
        version = self.read(lambda: self.store.pointers.get(source))
        if pointer is None:
            raise NoSuchTable("no such table", table=source)

        def rename() -> None:
            if self.store.pointers.get(source) != version:
                raise CommitFailed("another came first")
            WholeDictionaryBackend.rename_table(self, source, target)
            self.store.pointers[target] = pointer

        self.ask(rename)


MUTANTS: list[Mutant] = of(
    {
        KeepsItsClaimAfterALostReply: (LOST, "'create' fails though nothing is lost"),
        KeepsTheClaimOfARename: (LOST, "after 'rename' with a lost reply at request 1 of 1, the next writer fails"),
        ReadsThenWritesProperties: (HELD, "1 of 2 updates of properties are lost: rival"),
        UnlocksBeforeItWrites: (HELD, "1 of 2 updates of properties are lost: rival"),
        ReadsThePointerBeforeTheVersion: (HELD, "a commit is said to be made, and is lost by a rename"),
        LooksForTheNamespaceFirst: (HELD, "a table in a namespace that is gone"),
        LooksIntoTheNamespaceFirst: (HELD, "a table in a namespace that is gone"),
        LooksThenRenames: (HELD, "is lost: it has no name after a rename"),
        ReadsThePointerThenRenames: (HELD, "a commit is said to be made, and is lost by a rename"),
    }
)
