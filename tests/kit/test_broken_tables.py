"""Catalogs and strategies with tables that misbehave on purpose: the suite of behaviour must reject each of them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from dictionary_catalog import LOCK, DictionaryBackend, DictionaryStrategy
from icefield import Catalog, Plugins
from icefield.abc import (
    CatalogAbility,
    CommitStrategy,
    Committed,
    Conflict,
    NamespaceName,
    Page,
    Pointer,
    Proposal,
    TableName,
)
from icefield.errors import InvalidArgument, NoSuchNamespace
from icefield.storage import FileIO
from icefield_testing import TableBehaviourSuite
from kit_checks import checks, failures


def with_strategy(strategy: type[DictionaryStrategy]) -> type[DictionaryBackend]:
    """A right backend that hands out another strategy."""
    return type(strategy.__name__, (DictionaryBackend,), {"strategy_class": strategy})


class TakesAnyBase(DictionaryStrategy):
    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        self.pointers[self.table] = new
        return True


class CreatesOverATable(DictionaryStrategy):
    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        return super().swap_pointer(self.pointers.get(self.table) if old is None else old, new, proposal)


class LooksThenSwaps(DictionaryStrategy):
    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        if self.pointers.get(self.table) != old:
            return False
        time.sleep(0.02)
        self.pointers[self.table] = new
        return True


class RevivesDroppedTables(DictionaryStrategy):
    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        with LOCK:
            return super().swap_pointer(self.pointers.get(self.table, None) and old, new, proposal)

    def load(self) -> Pointer | None:
        found = super().load()
        LAST.update({self.table: found} if found else {})
        return found or LAST.get(self.table)


LAST: dict[TableName, Pointer] = {}


class KeepsOldMetadata(DictionaryStrategy):
    def delete_old(self, base: Pointer | None, proposal: Proposal) -> None:
        pass


class KnowsTheLastSchemaOnly(DictionaryStrategy):
    """Resembles a service that accepts only the newest schema as the current one."""

    adding, chosen = "add-schema", "current_schema_id"

    def commit(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict:
        if proposal.base is not None and all(update.action != self.adding for update in proposal.updates):
            kept: dict[str, Any] = {self.chosen: getattr(proposal.base, self.chosen)}
            proposal = replace(proposal, metadata=replace(proposal.metadata, **kept))
        return super().commit(base, proposal)


class KnowsTheLastSpecOnly(KnowsTheLastSchemaOnly):
    adding, chosen = "add-spec", "default_spec_id"


class KnowsTheLastOrderOnly(KnowsTheLastSchemaOnly):
    adding, chosen = "add-sort-order", "default_sort_order_id"


class KeepsTheRowsOfAReplacedTable(DictionaryStrategy):
    def commit(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict:
        before, made = proposal.base, proposal.metadata
        if before is not None and made.current_snapshot_id is None:
            made = replace(made, current_snapshot_id=before.current_snapshot_id, refs=before.refs)
        return super().commit(base, replace(proposal, metadata=made))


class HoldsAConnection(DictionaryStrategy):
    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("cannot pickle a connection")


class ShowsItsProperties(DictionaryStrategy):
    def __repr__(self) -> str:
        return f"ShowsItsProperties({self.properties})"


class DeletesDataOnDrop(DictionaryStrategy):
    def drop(self) -> None:
        super().drop()
        folder = "/".join((self.properties["warehouse"], *self.table))
        self.file_system.delete_many([info.location for info in self.file_system.list_files(folder)])


class DropsByPrefix(DictionaryStrategy):
    def drop(self) -> None:
        super().drop()
        for table in [name for name in self.pointers if name[-1].startswith(self.table[-1])]:
            del self.pointers[table]


class DropsWhatIsInUse(DictionaryBackend):
    def drop_namespace(self, namespace: NamespaceName) -> None:
        self.check(namespace)
        del self.store.namespaces[namespace]


class LosesARenamedTable(DictionaryBackend):
    def rename_table(self, source: TableName, target: TableName) -> None:
        super().rename_table(source, target)
        if source[:-1] != target[:-1]:
            del self.store.pointers[target]


class RenamesOverATable(DictionaryBackend):
    def rename_table(self, source: TableName, target: TableName) -> None:
        self.store.pointers.pop(target, None)
        super().rename_table(source, target)


class RenamesThoughItSaysItCannot(DictionaryBackend):
    abilities = DictionaryBackend.abilities - {CatalogAbility.RENAME}


class LeavesOutANameBetweenPages(DictionaryBackend):
    def page(self, names: Iterable[tuple[str, ...]], token: str | None, size: int | None) -> Page[tuple[str, ...]]:
        page = super().page(names, token, size)
        return Page(page.items[1:], page.next_token) if token else page


class CountsRowsForTokens(DictionaryBackend):
    def page(self, names: Iterable[tuple[str, ...]], token: str | None, size: int | None) -> Page[tuple[str, ...]]:
        found, start = sorted(names), int(token or 0)
        end = len(found) if size is None else start + size
        return Page(tuple(found[start:end]), str(end) if end < len(found) else None)


class ListsDroppedTables(DictionaryBackend):
    seen: set[TableName] = set()  # noqa: RUF012 -- the shared set is the defect

    def list_tables(
        self, namespace: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[TableName]:
        self.seen.update(self.store.pointers)
        return self.page((name for name in self.seen if name[:-1] == namespace), token, size)

    def strategy(self, table: TableName, location: str | None = None) -> CommitStrategy:
        if location is not None:
            self.seen.add(table)
        return super().strategy(table, location)


class RaisesItsOwnErrors(DictionaryBackend):
    def check(self, namespace: NamespaceName) -> None:
        if namespace not in self.store.namespaces:
            raise InvalidArgument(f"{namespace}?")


class ShowsItsPropertiesInErrors(DictionaryBackend):
    def check(self, namespace: NamespaceName) -> None:
        if namespace not in self.store.namespaces:
            raise NoSuchNamespace(f"no namespace {'.'.join(namespace)} with {self.properties}", namespace=namespace)


class UpdatesWhatItReadBefore(DictionaryBackend):
    def update_namespace_properties(
        self, namespace: NamespaceName, updates: Mapping[str, str], removals: frozenset[str]
    ) -> None:
        before = self.namespace_properties(namespace)
        time.sleep(0.05)
        kept = {key: value for key, value in before.items() if key not in removals}
        self.store.namespaces[namespace] = {**kept, **updates}


class OpensWhatIsNotAllowed(DictionaryBackend):
    def __init__(self, name: str, properties: Mapping[str, str], io: FileIO) -> None:
        allowed = {key: value for key, value in properties.items() if not key.startswith("location.")}
        super().__init__(name, properties, FileIO(io.plugins, allowed))


class WritesPastTheMaps(DictionaryBackend):
    def strategy(self, table: TableName, location: str | None = None) -> CommitStrategy:
        place = location or self.properties["warehouse"]
        return self.strategy_class(table, place, self.io.file_system(place), self.properties)


class ReplacesWhatIsRegistered(DictionaryBackend):
    def register_table(self, table: TableName, metadata_location: str) -> None:
        self.check(table[:-1])
        self.store.pointers[table] = metadata_location


BROKEN = {
    with_strategy(TakesAnyBase): "test_a_commit_that_lost_is_repeated_on_the_new_version",
    with_strategy(CreatesOverATable): "test_a_staged_table_that_comes_second_loses",
    with_strategy(LooksThenSwaps): "test_no_append_of_many_is_lost",
    with_strategy(RevivesDroppedTables): "test_a_change_to_a_dropped_table_does_not_revive_it",
    with_strategy(KeepsOldMetadata): "test_old_metadata_is_deleted_where_that_is_safe_and_refused_elsewhere",
    with_strategy(KnowsTheLastSchemaOnly): "test_columns_are_set_back",
    with_strategy(KnowsTheLastSpecOnly): "test_a_partitioning_is_set_back",
    with_strategy(KnowsTheLastOrderOnly): "test_a_sort_order_is_set_back",
    with_strategy(KeepsTheRowsOfAReplacedTable): "test_a_table_is_replaced_by_its_like",
    with_strategy(HoldsAConnection): "test_a_table_pickles",
    with_strategy(ShowsItsProperties): "test_no_credential_is_shown",
    with_strategy(DeletesDataOnDrop): "test_dropping_leaves_the_data_of_a_table",
    with_strategy(DropsByPrefix): "test_dropping_one_table_leaves_the_others",
    DropsWhatIsInUse: "test_a_namespace_with_a_table_is_not_dropped",
    LosesARenamedTable: "test_a_table_is_renamed_into_another_namespace",
    RenamesOverATable: "test_renaming_to_a_taken_name_is_refused",
    RenamesThoughItSaysItCannot: "test_a_renamed_table_is_the_same_table",
    LeavesOutANameBetweenPages: "test_tables_are_listed_in_pages",
    CountsRowsForTokens: "test_a_page_goes_on_after_a_table_that_was_dropped",
    ListsDroppedTables: "test_a_dropped_table_is_gone",
    RaisesItsOwnErrors: "test_an_operation_on_a_missing_namespace_says_so",
    ShowsItsPropertiesInErrors: "test_no_credential_is_in_an_error",
    UpdatesWhatItReadBefore: "test_updates_of_a_namespaces_properties_are_all_there",
    OpensWhatIsNotAllowed: "test_a_location_that_is_not_allowed_is_refused",
    WritesPastTheMaps: "test_a_table_that_was_moved_is_changed_where_it_is_now",
    ReplacesWhatIsRegistered: "test_registering_under_a_taken_name_is_refused",
}


def fresh(kind: type[DictionaryBackend]) -> Catalog:
    properties = {"warehouse": f"memory://kit/{uuid4().hex}"}
    return Catalog(kind("test", properties, FileIO(Plugins.installed(), properties)))


@pytest.mark.parametrize(("kind", "check"), BROKEN.items(), ids=lambda value: getattr(value, "__name__", value))
def test_tables_that_misbehave_are_rejected_by_the_check_for_it(kind: type[DictionaryBackend], check: str) -> None:
    others: dict[str, Any] = {name: None for name, _ in checks(TableBehaviourSuite) if name != check}
    alone = type("Suite", (TableBehaviourSuite,), others)
    assert failures(alone, {"catalog": lambda _: fresh(kind)}) == [check]


class TestTablesOfARightCatalog(TableBehaviourSuite):
    one_process = True

    @pytest.fixture
    def catalog(self) -> Catalog:
        return fresh(DictionaryBackend)
