"""Catalogs that do one thing wrong with views, or with several tables at once: the kit must find it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from dictionary_catalog import LOCK, DictionaryBackend, DictionaryStrategy, DictionaryViews, WholeDictionaryBackend
from icefield.abc import (
    Committed,
    Conflict,
    CurrentView,
    NamespaceName,
    Page,
    Proposal,
    TableChange,
    TableName,
    ViewProposal,
)
from icefield.errors import NoSuchView


class ListsViewsAmongTables(WholeDictionaryBackend):
    def list_tables(
        self, namespace: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[TableName]:
        found = [*super().list_tables(namespace).items, *super().list_views(namespace).items]
        return self.page(found, token, size)


class KeepsViewsThoughItSaysItCannot(DictionaryBackend):
    """Has the methods of a ``ViewCatalog`` without being one, so the methods are never called."""

    list_views = WholeDictionaryBackend.list_views
    load_view = WholeDictionaryBackend.load_view
    commit_view = WholeDictionaryBackend.commit_view


class CreatesViewsNowhere(WholeDictionaryBackend):
    def commit_view(self, view: TableName, base: CurrentView | None, proposal: ViewProposal) -> CurrentView | None:
        return self.views.commit(view, base, proposal)


class CreatesViewsOverTables(WholeDictionaryBackend):
    def commit_view(self, view: TableName, base: CurrentView | None, proposal: ViewProposal) -> CurrentView | None:
        table = self.store.pointers.pop(view, None)
        try:
            return super().commit_view(view, base, proposal)
        finally:
            if table is not None:
                self.store.pointers[view] = table


class _Swapping(DictionaryViews):
    def swap_pointer(self, view: TableName, old: str | None, new: str) -> bool:
        return super().swap_pointer(view, self.read_pointer(view), new)


class ReplacesViewsOfAnyVersion(WholeDictionaryBackend):
    def commit_view(self, view: TableName, base: CurrentView | None, proposal: ViewProposal) -> CurrentView | None:
        if base is None:
            return super().commit_view(view, base, proposal)
        return _Swapping(self.io, self.store).commit(view, base, proposal)


class RenamesOverAView(WholeDictionaryBackend):
    def rename_view(self, source: TableName, target: TableName) -> None:
        self.check(target[:-1])
        if source not in self.store.views:
            raise NoSuchView("no such view", view=source)
        self.store.views[target] = self.store.views.pop(source)


class _OverViews(DictionaryStrategy):
    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        with LOCK:
            view = self.store.views.pop(self.table, None)
            swapped = super().swap_pointer(old, new, proposal)
            if view is not None:
                self.store.views[self.table] = view
            return swapped


class CreatesTablesOverViews(WholeDictionaryBackend):
    strategy_class = _OverViews


class RenamesTablesOverViews(WholeDictionaryBackend):
    def rename_table(self, source: TableName, target: TableName) -> None:
        with LOCK:
            view = self.store.views.pop(target, None)
            super().rename_table(source, target)
            if view is not None:
                self.store.views[target] = view


class LeavesTheLastTableOut(WholeDictionaryBackend):
    def commit_tables(self, changes: Sequence[TableChange]) -> tuple[Committed, ...] | Conflict:
        made = super().commit_tables(changes[:1])
        return made if isinstance(made, Conflict) else (*made, *(Committed(self.staged(each)) for each in changes[1:]))


class ChangesSeveralThoughItSaysItCannot(DictionaryBackend):
    commit_tables = WholeDictionaryBackend.commit_tables
    staged = WholeDictionaryBackend.staged


class ChangesOnlyWhatIsThere(WholeDictionaryBackend):
    def commit_tables(self, changes: Sequence[TableChange]) -> tuple[Committed, ...] | Conflict:
        return Conflict() if any(each.base is None for each in changes) else super().commit_tables(changes)


class CommitsOneAfterTheOther(WholeDictionaryBackend):
    def commit_tables(self, changes: Sequence[TableChange]) -> tuple[Committed, ...] | Conflict:
        made = []
        for change in changes:
            one = super().commit_tables([change])
            if isinstance(one, Conflict):
                return one
            made += one
        return tuple(made)


class SwapsInSeveralSteps(WholeDictionaryBackend):
    """Compares all bases before it swaps any pointer, so other commits may come in between."""

    def commit_tables(self, changes: Sequence[TableChange]) -> tuple[Committed, ...] | Conflict:
        staged = [self.staged(change) for change in changes]
        with LOCK:
            pointers = self.store.pointers
            if any(pointers.get(each.table) != (each.base.location if each.base else None) for each in changes):
                return Conflict()
        for change, pointer in zip(changes, staged, strict=True):
            time.sleep(0.02)
            self.store.pointers[change.table] = pointer.location
        return tuple(map(Committed, staged))
