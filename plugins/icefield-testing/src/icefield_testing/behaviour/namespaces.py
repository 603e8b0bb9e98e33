"""Namespaces: made, listed, described, changed and dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from icefield import Catalog
from icefield.abc import CatalogAbility
from icefield.errors import (
    InvalidArgument,
    NamespaceExists,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NotSupportedByCatalog,
)

from icefield_testing.behaviour.base import SCHEMA, BehaviourChecks, backend_of, ids, rows


class NamespaceChecks(BehaviourChecks):
    """Checks of namespaces."""

    def test_a_created_namespace_is_there(self, catalog: Catalog) -> None:
        """If this fails, ``create_namespace`` writes where ``list_namespaces`` or another process does not look."""
        name = self.fresh()
        assert not catalog.namespace_exists(name)
        catalog.create_namespace(name)
        for each in (catalog, self.another(catalog)):
            assert each.namespace_exists(name)
            assert (name,) in each.list_namespaces()

    def test_namespaces_are_listed_in_order_and_once(self, catalog: Catalog) -> None:
        """If this fails, listing gives the order of the store, or a namespace for each of its tables."""
        prefix = self.fresh()
        for letter in "cab":
            catalog.create_namespace(f"{prefix}{letter}")
        self.create(catalog, f"{prefix}b.t")
        self.create(catalog, f"{prefix}b.u")
        found = catalog.list_namespaces()
        assert found == sorted(set(found))
        assert [name for (name,) in found if name.startswith(prefix)] == [f"{prefix}{letter}" for letter in "abc"]

    def test_properties_of_a_namespace_come_back(self, catalog: Catalog) -> None:
        """If this fails, properties lose characters, or the catalog shows records of its own among them."""
        name = self.fresh()
        given = {"owner": "jürgen", "comment": "a 'quoted' \"text\"\nof two lines", "empty": "", "a.b-c_d": "日本"}
        catalog.create_namespace(name, given)
        assert self._shown(catalog, name) == given
        assert self._shown(self.another(catalog), name) == given

    def test_values_of_namespace_properties_become_string(self, catalog: Catalog) -> None:
        """If this fails, numbers and booleans reach the store as they are."""
        name = self.fresh()
        catalog.create_namespace(name, {"level": 1, "open": True})
        assert self._shown(catalog, name) == {"level": "1", "open": "true"}

    def test_a_namespace_is_not_created_twice(self, catalog: Catalog) -> None:
        """If this fails, the second creation succeeds, or changes the first one's properties."""
        name = self.fresh()
        catalog.create_namespace(name, {"n": "1"})
        with pytest.raises(NamespaceExists) as caught:
            self.another(catalog).create_namespace(name, {"n": "2"})
        assert caught.value.data["namespace"] == (name,)
        assert name in str(caught.value)
        assert self._shown(catalog, name) == {"n": "1"}

    def test_creating_a_namespace_if_there_is_none_leaves_one_that_is(self, catalog: Catalog) -> None:
        """If this fails, ``create_namespace`` raises something else than ``NamespaceExists``, or changes properties."""
        name = self.fresh()
        catalog.create_namespace_if_not_exists(name, {"n": "1"})
        catalog.create_namespace_if_not_exists(name, {"n": "2"})
        assert self._shown(catalog, name) == {"n": "1"}

    def test_namespace_properties_are_set_and_removed_in_one_step(self, catalog: Catalog) -> None:
        """If this fails, look at ``update_namespace_properties``: removals, updates, or what it leaves alone."""
        name = self.fresh()
        catalog.create_namespace(name, {"kept": "1", "changed": "1", "gone": "1"})
        summary = catalog.update_namespace_properties(name, ["gone", "never"], {"changed": "2", "new": "3"})
        assert (summary.removed, summary.updated, summary.missing) == (["gone"], ["changed", "new"], ["never"])
        assert self._shown(self.another(catalog), name) == {"kept": "1", "changed": "2", "new": "3"}

    def test_every_property_of_a_namespace_can_be_removed(self, catalog: Catalog) -> None:
        """If this fails, the namespace exists only as long as it has properties."""
        name = self.fresh()
        catalog.create_namespace(name, {"a": "1", "b": "2"})
        catalog.update_namespace_properties(name, ["a", "b"])
        assert self._shown(catalog, name) == {}
        assert catalog.namespace_exists(name)

    def test_a_property_that_is_both_set_and_removed_is_refused(self, catalog: Catalog) -> None:
        """If this fails, the order of two contradicting wishes decides."""
        name = self.fresh()
        catalog.create_namespace(name, {"a": "1"})
        with pytest.raises(InvalidArgument):
            catalog.update_namespace_properties(name, ["a"], {"a": "2"})
        assert self._shown(catalog, name) == {"a": "1"}

    @pytest.mark.parametrize(
        "operation",
        [
            "load properties",
            "update properties",
            "drop",
            "list tables",
            "list namespaces",
            "create",
            "stage",
        ],
    )
    def test_an_operation_on_a_missing_namespace_says_so(self, catalog: Catalog, operation: str) -> None:
        """If this fails, the backend answers for a namespace that is not there as if it were empty."""
        name = self.fresh()
        calls: dict[str, Callable[[], Any]] = {
            "load properties": lambda: catalog.load_namespace_properties(name),
            "update properties": lambda: catalog.update_namespace_properties(name, updates={"a": "1"}),
            "drop": lambda: catalog.drop_namespace(name),
            "list tables": lambda: catalog.list_tables(name),
            "list namespaces": lambda: catalog.list_namespaces(name),
            "create": lambda: catalog.create_table(f"{name}.t", SCHEMA),
            "stage": lambda: catalog.create_table_transaction(f"{name}.t", SCHEMA),
        }
        if operation == "list namespaces" and CatalogAbility.NESTED_NAMESPACES not in backend_of(catalog).abilities:
            assert not catalog.namespace_exists(name)
            with pytest.raises(NoSuchNamespace):
                backend_of(catalog).list_namespaces((name,))
            return
        with pytest.raises(NoSuchNamespace) as caught:
            calls[operation]()
        assert name in str(caught.value)
        assert not catalog.namespace_exists(name)

    def test_a_dropped_namespace_is_gone(self, catalog: Catalog) -> None:
        """If this fails, ``drop_namespace`` leaves something that listing or looking finds."""
        name = self.space(catalog)
        catalog.drop_namespace(name)
        for each in (catalog, self.another(catalog)):
            assert not each.namespace_exists(name)
            assert (name,) not in each.list_namespaces()
        with pytest.raises(NoSuchNamespace):
            catalog.drop_namespace(name)

    def test_a_dropped_namespace_comes_back_without_its_properties(self, catalog: Catalog) -> None:
        """If this fails, properties outlive the namespace."""
        name = self.fresh()
        catalog.create_namespace(name, {"old": "1"})
        catalog.drop_namespace(name)
        catalog.create_namespace(name, {"new": "1"})
        assert self._shown(catalog, name) == {"new": "1"}

    def test_a_namespace_with_a_table_is_not_dropped(self, catalog: Catalog) -> None:
        """If this fails, tables go with their namespace, or a namespace whose tables are gone stays for ever."""
        table = self.create(catalog)
        table.append(rows([1]))
        name = table.name()[0]
        with pytest.raises(NamespaceNotEmpty) as caught:
            catalog.drop_namespace(name)
        assert caught.value.data["namespace"] == (name,)
        assert ids(catalog.load_table(table.name())) == [1]
        catalog.drop_table(table.name())
        catalog.drop_namespace(name)
        assert not catalog.namespace_exists(name)

    def test_nested_namespaces_are_listed_level_by_level(self, catalog: Catalog) -> None:
        """If this fails, a level is missing, repeated, or shown together with those below it."""
        if self._refuses_nesting(catalog):
            return
        top = self.space(catalog)
        for name in (f"{top}.b", f"{top}.a", f"{top}.a.x"):
            catalog.create_namespace(name, {"called": name})
        assert catalog.list_namespaces(top) == [(top, "a"), (top, "b")]
        assert catalog.list_namespaces(f"{top}.a") == [(top, "a", "x")]
        assert catalog.list_namespaces((top, "b")) == []
        assert (top,) in catalog.list_namespaces()
        assert self._shown(catalog, f"{top}.a.x") == {"called": f"{top}.a.x"}

    def test_a_namespace_with_another_below_is_not_dropped(self, catalog: Catalog) -> None:
        """If this fails, dropping takes what is below with it, or leaves it without a parent."""
        if self._refuses_nesting(catalog):
            return
        top = self.space(catalog)
        catalog.create_namespace(f"{top}.below")
        with pytest.raises(NamespaceNotEmpty):
            catalog.drop_namespace(top)
        assert catalog.list_namespaces(top) == [(top, "below")]
        catalog.drop_namespace(f"{top}.below")
        catalog.drop_namespace(top)
        assert not catalog.namespace_exists(top)

    def test_tables_live_at_every_level(self, catalog: Catalog) -> None:
        """If this fails, a table below is listed above, or one name hides another."""
        if self._refuses_nesting(catalog):
            return
        top = self.space(catalog)
        catalog.create_namespace(f"{top}.below")
        self.create(catalog, f"{top}.t").append(rows([1]))
        self.create(catalog, f"{top}.below.t").append(rows([2]))
        assert catalog.list_tables(top) == [(top, "t")]
        assert catalog.list_tables(f"{top}.below") == [(top, "below", "t")]
        assert ids(catalog.load_table(f"{top}.t")) == [1]
        assert ids(catalog.load_table((top, "below", "t"))) == [2]

    def test_namespaces_whose_names_begin_alike_are_apart(self, catalog: Catalog) -> None:
        """If this fails, something goes by a prefix of the name."""
        name = self.space(catalog)
        longer = f"{name}_2"
        catalog.create_namespace(longer, {"n": "2"})
        self.create(catalog, f"{longer}.t")
        assert catalog.list_tables(name) == []
        assert self._shown(catalog, name) == {}
        catalog.drop_namespace(name)
        assert catalog.list_tables(longer) == [(longer, "t")]

    def test_namespaces_are_listed_in_pages(self, catalog: Catalog) -> None:
        """If this fails, a page is too long, or a name falls between two pages or is in both."""
        prefix = self.fresh()
        names = [(f"{prefix}{number}",) for number in range(5)]
        for name in names:
            catalog.create_namespace(name)
        found: list[tuple[str, ...]] = []
        token: str | None = None
        while True:
            page = backend_of(catalog).list_namespaces((), token=token, size=2)
            assert len(page.items) <= 2
            found += page.items
            if (token := page.next_token) is None:
                break
        assert len(found) == len(set(found))
        assert [name for name in found if name[0].startswith(prefix)] == names

    @pytest.mark.parametrize("name", ["", "a..b", " ", ".", "..", ("a", ""), ("a\nb",), ("a\0b",), ()], ids=repr)
    def test_what_is_no_name_is_refused(self, catalog: Catalog, name: str | tuple[str, ...]) -> None:
        """If this fails, a name reaches the store that cannot be addressed there, or leads out of the warehouse."""
        with pytest.raises(InvalidArgument):
            catalog.create_namespace(name)
        with pytest.raises(InvalidArgument):
            catalog.table_exists((*((name,) if isinstance(name, str) else name), "a\0b"))

    # -- helpers

    def _shown(self, catalog: Catalog, name: str) -> dict[str, str]:
        """A namespace's properties, without the properties that the store itself adds to every namespace."""
        bare = self.space(catalog)
        of_the_store = catalog.load_namespace_properties(bare).keys()
        found = catalog.load_namespace_properties(name)
        return {key: value for key, value in found.items() if key not in of_the_store}

    def _refuses_nesting(self, catalog: Catalog) -> bool:
        """Whether nesting is a declared gap; then it must be refused before anything is made."""
        if CatalogAbility.NESTED_NAMESPACES in backend_of(catalog).abilities:
            return False
        top = self.space(catalog)
        with pytest.raises((InvalidArgument, NotSupportedByCatalog)):
            catalog.create_namespace(f"{top}.below")
        with pytest.raises((InvalidArgument, NotSupportedByCatalog, NoSuchNamespace)):
            catalog.create_table(f"{top}.below.t", SCHEMA)
        catalog.drop_namespace(top)
        return True
