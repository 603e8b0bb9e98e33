"""Catalogs that are broken on purpose: the intended check of the kit must reject each of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from uuid import uuid4

import pytest
from broken_catalogs import (
    ChangesOnlyWhatIsThere,
    ChangesSeveralThoughItSaysItCannot,
    CommitsOneAfterTheOther,
    CreatesTablesOverViews,
    CreatesViewsNowhere,
    CreatesViewsOverTables,
    KeepsViewsThoughItSaysItCannot,
    LeavesTheLastTableOut,
    ListsViewsAmongTables,
    RenamesOverAView,
    RenamesTablesOverViews,
    ReplacesViewsOfAnyVersion,
    SwapsInSeveralSteps,
)
from dictionary_catalog import DictionaryBackend, WholeDictionaryBackend
from icefield import Plugins
from icefield.abc import (
    CatalogAbility,
    CatalogBackend,
    CommitStrategy,
    NamespaceName,
    Page,
    TableName,
)
from icefield.errors import (
    InvalidArgument,
    NamespaceExists,
    NoSuchTable,
    NotSupportedByCatalog,
    StorageError,
    TableExists,
)
from icefield.storage import FileIO
from icefield_testing import CatalogSuite, LossyCalls
from kit_checks import checks, failures


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


class FindsTablesByOtherSpellings(DictionaryBackend):
    def strategy(self, table: TableName, location: str | None = None) -> CommitStrategy:
        return super().strategy((*table[:-1], table[-1].lower()), location)


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


class RaisesItsOwnErrors(DictionaryBackend):
    def check(self, namespace: NamespaceName) -> None:
        if namespace not in self.store.namespaces:
            raise InvalidArgument("there is no such thing")


class ListsOnePage(DictionaryBackend):
    def page(self, names: Iterable[tuple[str, ...]], token: str | None, size: int | None) -> Page[tuple[str, ...]]:
        return replace(super().page(names, token, size or 50), next_token=None)


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


class OverAService(DictionaryBackend):
    """A right catalog that changes namespaces by calls of a service, which may lose them."""

    calls = LossyCalls()

    def create_namespace(self, namespace: NamespaceName, properties: Mapping[str, str]) -> None:
        self.ask(lambda: DictionaryBackend.create_namespace(self, namespace, properties))

    def drop_namespace(self, namespace: NamespaceName) -> None:
        self.ask(lambda: DictionaryBackend.drop_namespace(self, namespace))

    def rename_table(self, source: TableName, target: TableName) -> None:
        self.ask(lambda: DictionaryBackend.rename_table(self, source, target))

    def ask(self, call: Callable[[], None]) -> None:
        try:
            self.calls.wrap(call)()
        except ConnectionResetError as error:
            raise StorageError("no reply from the service") from error


class AsksAgainAfterALostReply(OverAService):
    def ask(self, call: Callable[[], None]) -> None:
        try:
            self.calls.wrap(call)()
        except ConnectionResetError:
            self.calls.wrap(call)()


class TakesALostReplyForSuccess(OverAService):
    def ask(self, call: Callable[[], None]) -> None:
        with suppress(ConnectionResetError):
            self.calls.wrap(call)()


class LetsItsClientsErrorsThrough(OverAService):
    def ask(self, call: Callable[[], None]) -> None:
        self.calls.wrap(call)()


class RenamesInTwoSteps(OverAService):
    def rename_table(self, source: TableName, target: TableName) -> None:
        self.check(target[:-1])
        if source not in self.store.pointers:
            raise NoSuchTable("no such table", table=source)
        if target in self.store.pointers:
            raise TableExists("there is one", table=target)
        self.ask(lambda: self.store.pointers.update({target: self.store.pointers[source]}))
        self.ask(lambda: self.store.pointers.pop(source) and None)


LOST = "test_a_lost_reply_about_a_name_is_not_taken_for_anothers_doing"

BROKEN = {
    AsksAgainAfterALostReply: LOST,
    TakesALostReplyForSuccess: LOST,
    LetsItsClientsErrorsThrough: LOST,
    RenamesInTwoSteps: LOST,
    ListsOnePage: "test_a_listing_without_a_size_goes_on_after_the_first_page",
    RemembersTables: "test_what_another_has_changed_is_seen_at_once",
    LooksThenCreates: "test_one_of_many_creators_of_a_namespace_wins",
    ReplacesNamespaces: "test_creating_a_namespace_twice_is_refused",
    LeaksItsMarkers: "test_a_created_namespace_is_listed_with_its_properties",
    NeverRemovesProperties: "test_namespace_properties_are_set_and_removed_together",
    TakesMissingForEmpty: "test_a_namespace_that_is_not_there_is_said_so",
    FindsTablesByOtherSpellings: "test_a_table_has_one_name_however_it_is_spelled",
    ListsEveryLevel: "test_nested_namespaces_are_listed_level_by_level",
    DropsWhatIsInUse: "test_a_namespace_in_use_is_not_dropped",
    RemembersDroppedNamespaces: "test_a_dropped_namespace_can_be_created_again",
    ListsByPrefix: "test_tables_of_other_namespaces_are_not_listed",
    ListsInNoOrder: "test_a_created_table_is_listed_and_loads",
    SkipsANameBetweenPages: "test_listing_comes_in_pages",
    ListsDroppedTables: "test_a_dropped_table_is_gone",
    CopiesInsteadOfRenaming: "test_a_renamed_table_keeps_its_metadata",
    RenamesOverATable: "test_renaming_refuses_what_cannot_be",
    RegistersOverATable: "test_a_table_that_is_there_can_be_registered",
    RenamesThoughItSaysItCannot: "test_a_renamed_table_keeps_its_metadata",
    RegistersThoughItSaysItCannot: "test_a_table_that_is_there_can_be_registered",
    SaysItCannotAndSaysNoMore: "test_a_table_that_is_there_can_be_registered",
    RaisesItsOwnErrors: "test_a_namespace_that_is_not_there_is_said_so",
    ListsViewsAmongTables: "test_a_created_view_is_listed_and_loads_or_is_refused",
    KeepsViewsThoughItSaysItCannot: "test_a_created_view_is_listed_and_loads_or_is_refused",
    CreatesViewsNowhere: "test_a_view_is_created_in_a_namespace_only",
    CreatesTablesOverViews: "test_a_table_takes_no_name_of_a_view",
    RenamesTablesOverViews: "test_a_table_takes_no_name_of_a_view",
    CreatesViewsOverTables: "test_a_view_takes_no_name_that_is_taken",
    ReplacesViewsOfAnyVersion: "test_no_change_of_a_view_is_lost",
    RenamesOverAView: "test_a_view_is_renamed_and_dropped",
    LeavesTheLastTableOut: "test_several_tables_change_in_one_step_or_are_refused",
    ChangesSeveralThoughItSaysItCannot: "test_several_tables_change_in_one_step_or_are_refused",
    ChangesOnlyWhatIsThere: "test_a_table_is_created_together_with_a_change_of_another",
    CommitsOneAfterTheOther: "test_a_conflict_of_one_table_leaves_all_as_they_were",
    SwapsInSeveralSteps: "test_of_racing_changes_of_several_tables_each_is_whole",
}


def fresh(kind: type[CatalogBackend]) -> CatalogBackend:
    properties = {"warehouse": f"memory://kit/{uuid4().hex}"}
    return kind("test", properties, FileIO(Plugins.installed(), properties))


@pytest.mark.parametrize(("kind", "check"), BROKEN.items(), ids=lambda value: getattr(value, "__name__", value))
def test_a_broken_catalog_is_rejected_by_the_check_for_it(kind: type[CatalogBackend], check: str) -> None:
    alone = type("Suite", (CatalogSuite,), {name: None for name, _ in checks(CatalogSuite) if name != check})
    assert failures(alone, {"backend": lambda _: fresh(kind), "service": lambda _: OverAService.calls}) == [check]


def test_a_right_catalog_passes_every_check() -> None:
    for kind in (DictionaryBackend, WholeDictionaryBackend):
        assert failures(CatalogSuite, {"backend": lambda _, kind=kind: fresh(kind), "service": lambda _: None}) == []
    fixtures = {"backend": lambda _: fresh(OverAService), "service": lambda _: OverAService.calls}
    assert failures(CatalogSuite, fixtures) == []


def test_there_is_a_broken_catalog_for_every_check() -> None:
    about_the_plugin = {"test_the_plugin_states_its_contract_number"}  # test_contract_numbers.py
    assert {name for name, _ in checks(CatalogSuite)} - about_the_plugin == set(BROKEN.values())


def test_every_check_states_what_to_look_at_when_it_fails() -> None:
    for name, check in checks(CatalogSuite):
        assert "If this fails" in (check.__doc__ or ""), name
