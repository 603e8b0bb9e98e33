"""Catalogs that do one thing wrong with the names of tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dictionary_catalog import DictionaryBackend
from icefield.abc import CatalogAbility, CommitStrategy, NamespaceName, Page, TableName
from icefield.errors import NotSupportedByCatalog
from icefield.storage import FileIO

from mutants import Mutant, of


class FindsTablesByOtherSpellings(DictionaryBackend):
    def strategy(self, table: TableName, location: str | None = None) -> CommitStrategy:
        return super().strategy((*table[:-1], table[-1].lower()), location)


class ListsByPrefix(DictionaryBackend):
    def list_tables(
        self, namespace: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[TableName]:
        self.check(namespace)
        found = [name for name in self.store.pointers if ".".join(name).startswith(".".join(namespace))]
        return self.page(found, token, size)


class ListsInNoOrder(DictionaryBackend):
    def page(self, names: list[tuple[str, ...]], token: str | None, size: int | None) -> Page[tuple[str, ...]]:
        return Page(tuple(names))


class SkipsANameBetweenPages(DictionaryBackend):
    def page(self, names: list[tuple[str, ...]], token: str | None, size: int | None) -> Page[tuple[str, ...]]:
        page = super().page(names, token, size)
        return replace(page, items=page.items[1:] if token is not None else page.items)


class ListsDroppedTables(DictionaryBackend):
    def __init__(self, name: str, properties: Mapping[str, str], io: FileIO) -> None:
        super().__init__(name, properties, io)
        self.seen: set[TableName] = set()

    def list_tables(
        self, namespace: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[TableName]:
        self.check(namespace)
        self.seen |= {*self.store.pointers}
        return self.page([name for name in self.seen if name[:-1] == namespace], token, size)

    def strategy(self, table: TableName, location: str | None = None) -> CommitStrategy:
        self.seen.add(table) if location else None
        return super().strategy(table, location)


class CopiesInsteadOfRenaming(DictionaryBackend):
    def rename_table(self, source: TableName, target: TableName) -> None:
        super().rename_table(source, target)
        self.store.pointers[source] = self.store.pointers[target]


class RenamesOverATable(DictionaryBackend):
    def rename_table(self, source: TableName, target: TableName) -> None:
        self.store.pointers.pop(target, None)
        super().rename_table(source, target)


class RegistersOverATable(DictionaryBackend):
    def register_table(self, table: TableName, metadata_location: str) -> None:
        self.check(table[:-1])
        self.store.pointers[table] = metadata_location


class RemembersTables(DictionaryBackend):
    def __init__(self, name: str, properties: Mapping[str, str], io: FileIO) -> None:
        super().__init__(name, properties, io)
        self.known: dict[NamespaceName, Page[TableName]] = {}

    def list_tables(
        self, namespace: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[TableName]:
        if namespace not in self.known:
            self.known[namespace] = super().list_tables(namespace, token=token, size=size)
        return self.known[namespace]


class RenamesThoughItSaysItCannot(DictionaryBackend):
    abilities = DictionaryBackend.abilities - {CatalogAbility.RENAME}


class RegistersThoughItSaysItCannot(DictionaryBackend):
    abilities = DictionaryBackend.abilities - {CatalogAbility.REGISTRATION}


class SaysItCannotAndSaysNoMore(DictionaryBackend):
    abilities = DictionaryBackend.abilities - {CatalogAbility.REGISTRATION}

    def register_table(self, table: TableName, metadata_location: str) -> None:
        super().register_table(table, metadata_location)
        raise NotSupportedByCatalog("no registration")


MUTANTS: list[Mutant] = of(
    {
        FindsTablesByOtherSpellings: ("test_a_table_has_one_name_however_it_is_spelled", "is kept as"),
        ListsByPrefix: ("test_tables_of_other_namespaces_are_not_listed", "goes by a prefix"),
        ListsInNoOrder: ("test_a_created_table_is_listed_and_loads", "t2"),
        SkipsANameBetweenPages: ("test_listing_comes_in_pages", "leaves out or repeats"),
        ListsDroppedTables: ("test_a_dropped_table_is_gone", "does not reach"),
        CopiesInsteadOfRenaming: ("test_a_renamed_table_keeps_its_metadata", "leaves the old name"),
        RenamesOverATable: ("test_renaming_refuses_what_cannot_be", "replaces a table"),
        RegistersOverATable: ("test_a_table_that_is_there_can_be_registered", "must refuse a taken name"),
        RemembersTables: ("test_what_another_has_changed_is_seen_at_once", "a cache answers"),
        RenamesThoughItSaysItCannot: ("test_a_renamed_table_keeps_its_metadata", "DID NOT RAISE"),
        RegistersThoughItSaysItCannot: ("test_a_table_that_is_there_can_be_registered", "DID NOT RAISE"),
        SaysItCannotAndSaysNoMore: ("test_a_table_that_is_there_can_be_registered", "None"),
    }
)
