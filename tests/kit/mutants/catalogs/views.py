"""Catalogs that do one thing wrong with views."""

from __future__ import annotations

from dictionary_catalog import LOCK, DictionaryBackend, DictionaryStrategy, DictionaryViews, WholeDictionaryBackend
from icefield.abc import CurrentView, NamespaceName, Page, Proposal, TableName, ViewProposal
from icefield.errors import NoSuchView

from mutants import Mutant, of


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


class ChecksNoNamespace(DictionaryViews):
    def swap_pointer(self, view: TableName, old: str | None, new: str) -> bool:
        with LOCK:
            if self.store.views.get(view) != old or view in self.store.pointers:
                return False
            self.store.views[view] = new
            return True


class CreatesViewsNowhere(WholeDictionaryBackend):
    def commit_view(self, view: TableName, base: CurrentView | None, proposal: ViewProposal) -> CurrentView | None:
        return ChecksNoNamespace(self.io, self.store).commit(view, base, proposal)


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


class RevivesDroppedViews(WholeDictionaryBackend):
    """Creates the view where there is none, and ignores the base."""

    def commit_view(self, view: TableName, base: CurrentView | None, proposal: ViewProposal) -> CurrentView | None:
        return super().commit_view(view, base if view in self.store.views else None, proposal)


MUTANTS: list[Mutant] = of(
    {
        ListsViewsAmongTables: ("test_a_created_view_is_listed_and_loads_or_is_refused", "a view is no table"),
        KeepsViewsThoughItSaysItCannot: (
            "test_a_created_view_is_listed_and_loads_or_is_refused",
            "subclass ViewCatalog",
        ),
        CreatesViewsNowhere: ("test_a_view_is_created_in_a_namespace_only", "look for the namespace"),
        CreatesTablesOverViews: ("test_a_table_takes_no_name_of_a_view", "a table was created over a view"),
        RenamesTablesOverViews: ("test_a_table_takes_no_name_of_a_view", "gives one name to a table and a view"),
        CreatesViewsOverTables: ("test_a_view_takes_no_name_that_is_taken", "replaces a view or a table"),
        ReplacesViewsOfAnyVersion: ("test_no_change_of_a_view_is_lost", "undid the one that came before"),
        RenamesOverAView: ("test_a_view_is_renamed_and_dropped", "nothing is replaced"),
        RevivesDroppedViews: ("test_a_table_or_view_that_is_gone_is_not_revived", "a view that was dropped"),
    }
)
