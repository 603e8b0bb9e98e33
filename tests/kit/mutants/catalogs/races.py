"""Catalogs that check and write in two steps, so that another change can come in between."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from dictionary_catalog import LOCK, DictionaryBackend, DictionaryStrategy, Store, WholeDictionaryBackend
from icefield.abc import CurrentView, NamespaceName, Proposal, TableName, ViewProposal
from icefield.errors import NamespaceExists, NamespaceNotEmpty, NoSuchTable, TableExists

from mutants import Mutant, of
from mutants.catalogs.views import ChecksNoNamespace

_HALF_SECONDS = 0.02
_LONGEST_SECONDS = 2.0


def let_a_rival_act(store: Store) -> None:
    """Wait until another thread has changed the store. The main thread prepares a race, and has no rival."""
    if threading.current_thread() is threading.main_thread():
        return
    before = _state(store)
    end = time.monotonic() + _LONGEST_SECONDS
    while _state(store) == before and time.monotonic() < end:
        time.sleep(0.001)


def _state(store: Store) -> str:
    return repr([sorted(each.items()) for each in (store.namespaces, store.pointers, store.views)])


UPDATES = "test_no_update_of_a_namespace_is_lost_or_seen_by_halves"
AT_ONCE = "test_two_changes_at_once_leave_a_state_that_can_be"


class LosesUpdates(DictionaryBackend):
    def update_namespace_properties(
        self, namespace: NamespaceName, updates: Mapping[str, str], removals: frozenset[str]
    ) -> None:
        before = self.namespace_properties(namespace)
        time.sleep(0.002)
        self.store.namespaces[namespace] = {k: v for k, v in before.items() if k not in removals} | dict(updates)


class UpdatesInTwoSteps(DictionaryBackend):
    def update_namespace_properties(
        self, namespace: NamespaceName, updates: Mapping[str, str], removals: frozenset[str]
    ) -> None:
        super().update_namespace_properties(namespace, updates, frozenset())
        time.sleep(_HALF_SECONDS if removals else 0)
        super().update_namespace_properties(namespace, {}, removals)


class RemovesThenSets(DictionaryBackend):
    def update_namespace_properties(
        self, namespace: NamespaceName, updates: Mapping[str, str], removals: frozenset[str]
    ) -> None:
        super().update_namespace_properties(namespace, {}, removals)
        time.sleep(_HALF_SECONDS if removals else 0)
        super().update_namespace_properties(namespace, updates, frozenset())


class _LooksForAView(DictionaryStrategy):
    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        if old is None:
            self.check_free()
        let_a_rival_act(self.store)
        with LOCK:
            if self.pointers.get(self.table) != old:
                return False
            self.pointers[self.table] = new
            return True


class LooksForAViewFirst(WholeDictionaryBackend):
    strategy_class = _LooksForAView


class LooksForANamespaceFirst(DictionaryBackend):
    strategy_class = _LooksForAView


class LooksForTheNamespaceOfAViewFirst(WholeDictionaryBackend):
    def commit_view(self, view: TableName, base: CurrentView | None, proposal: ViewProposal) -> CurrentView | None:
        self.check(view[:-1])
        let_a_rival_act(self.store)
        return ChecksNoNamespace(self.io, self.store).commit(view, base, proposal)


class LooksForTablesFirst(DictionaryBackend):
    def drop_namespace(self, namespace: NamespaceName) -> None:
        self.check(namespace)
        if any(name[:-1] == namespace for name in (*self.store.pointers, *self.store.views)):
            raise NamespaceNotEmpty("not empty", namespace=namespace)
        let_a_rival_act(self.store)
        self.store.namespaces.pop(namespace)


class LooksForAParentFirst(DictionaryBackend):
    def create_namespace(self, namespace: NamespaceName, properties: Mapping[str, str]) -> None:
        if namespace[:-1]:
            self.check(namespace[:-1])
            let_a_rival_act(self.store)
        with LOCK:
            if namespace in self.store.namespaces:
                raise NamespaceExists("there is one", namespace=namespace)
            self.store.namespaces[namespace] = dict(properties)


class LooksForTheTargetFirst(DictionaryBackend):
    def rename_table(self, source: TableName, target: TableName) -> None:
        self.check(target[:-1])
        if target in self.store.pointers or target in self.store.views:
            raise TableExists("there is one", table=target)
        let_a_rival_act(self.store)
        with LOCK:
            if source not in self.store.pointers:
                raise NoSuchTable("no such table", table=source)
            self.store.pointers[target] = self.store.pointers.pop(source)


class LooksForTheSourceFirst(DictionaryBackend):
    def rename_table(self, source: TableName, target: TableName) -> None:
        self.check(target[:-1])
        pointer = self.store.pointers.get(source)
        if pointer is None:
            raise NoSuchTable("no such table", table=source)
        let_a_rival_act(self.store)
        with LOCK:
            if target in self.store.pointers:
                raise TableExists("there is one", table=target)
            self.store.pointers[target] = pointer
            self.store.pointers.pop(source, None)


MUTANTS: list[Mutant] = of(
    {
        LosesUpdates: (UPDATES, " of 8 updates are lost: w"),
        UpdatesInTwoSteps: (UPDATES, "is seen by halves: odd="),
        RemovesThenSets: (UPDATES, "is seen by halves: odd=None, even=None"),
        LooksForAViewFirst: (AT_ONCE, "a table and a view have one name: each looked for the other"),
        LooksForANamespaceFirst: (AT_ONCE, "a table in a namespace that is gone"),
        LooksForTheNamespaceOfAViewFirst: (AT_ONCE, "a view in a namespace that is gone"),
        LooksForTablesFirst: (AT_ONCE, "a table in a namespace that is gone"),
        LooksForAParentFirst: (AT_ONCE, "a namespace is said to be created, and the namespace above it is gone"),
        LooksForTheTargetFirst: (AT_ONCE, "is lost: it has no name after a rename"),
        LooksForTheSourceFirst: (AT_ONCE, "has 2 names after a rename"),
    }
)
