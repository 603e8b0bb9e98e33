"""The suite that a catalog backend must pass.

An author subclasses it and states how to build the backend on fresh, empty storage::

    class TestMyCatalog(CatalogSuite):
        @pytest.fixture
        def backend(self, tmp_path):
            io = FileIO(Plugins.installed(), {})
            return MyBackend("test", {"uri": "...", "warehouse": f"file://{tmp_path}"}, io)
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from icefield import Catalog
from icefield.abc import CatalogAbility, CatalogBackend, NamespaceName, TableName
from icefield.commit import current_of
from icefield.errors import (
    IcefieldError,
    NamespaceExists,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    NotSupportedByCatalog,
    TableExists,
)

from icefield_testing.catalogs import NameChecks, PlaceChecks, RaceChecks, SecretChecks
from icefield_testing.catalogs.base import RACERS
from icefield_testing.contract_numbers import check_contract_number


class CatalogSuite(NameChecks, PlaceChecks, RaceChecks, SecretChecks):
    """Checks of ``icefield.abc.CatalogBackend``."""

    def test_the_plugin_states_its_contract_number(self, backend: CatalogBackend) -> None:
        """If this fails, the ``Provider`` of the plugin states no ``contract``: any kernel loads it, fit or not."""
        check_contract_number(self.plugins(), "catalogs", type(backend))

    # -- namespaces

    def test_a_created_namespace_is_listed_with_its_properties(self, backend: CatalogBackend) -> None:
        """If this fails, look at ``create_namespace`` and at markers that leak into the properties."""
        backend.create_namespace(("a",), {"owner": "ü"})
        backend.create_namespace(("b",), {})
        assert self.namespaces(backend) == (("a",), ("b",))
        assert self.properties(backend, ("a",)) == {"owner": "ü"}
        assert self.properties(backend, ("b",)) == {}

    def test_creating_a_namespace_twice_is_refused(self, backend: CatalogBackend) -> None:
        """If this fails, the second creation replaces the first one's properties."""
        backend.create_namespace(("a",), {"n": "1"})
        with pytest.raises(NamespaceExists):
            backend.create_namespace(("a",), {"n": "2"})
        assert self.properties(backend, ("a",)) == {"n": "1"}

    def test_one_of_many_creators_of_a_namespace_wins(self, backend: CatalogBackend) -> None:
        """If this fails, creation looks first and writes then."""

        def create(number: int) -> bool:
            try:
                backend.create_namespace(("raced",), {"by": str(number)})
            except NamespaceExists:
                return False
            return True

        with ThreadPoolExecutor(RACERS) as pool:
            won = list(pool.map(create, range(RACERS)))
        assert won.count(True) == 1
        assert self.properties(backend, ("raced",)) == {"by": str(won.index(True))}

    def test_namespace_properties_are_set_and_removed_together(self, backend: CatalogBackend) -> None:
        """If this fails, look at ``update_namespace_properties``."""
        backend.create_namespace(("a",), {"x": "1", "y": "2"})
        backend.update_namespace_properties(("a",), {"x": "3", "z": "4"}, frozenset({"y", "none"}))
        assert self.properties(backend, ("a",)) == {"x": "3", "z": "4"}
        backend.update_namespace_properties(("a",), {}, frozenset({"x", "z"}))
        assert self.properties(backend, ("a",)) == {}

    def test_a_namespace_that_is_not_there_is_said_so(self, backend: CatalogBackend) -> None:
        """If this fails, an operation on a missing namespace answers as if it were empty."""
        for call in (
            lambda: backend.namespace_properties(("no",)),
            lambda: backend.update_namespace_properties(("no",), {"a": "b"}, frozenset()),
            lambda: backend.drop_namespace(("no",)),
            lambda: backend.list_tables(("no",)),
            lambda: backend.list_namespaces(("no",)),
            lambda: backend.table_location(("no", "t")),
        ):
            with pytest.raises(NoSuchNamespace) as caught:
                call()
            assert "no" in str(caught.value)

    def test_nested_namespaces_are_listed_level_by_level(self, backend: CatalogBackend) -> None:
        """If this fails, listing shows the levels below the next, or leaves parents out."""
        if CatalogAbility.NESTED_NAMESPACES not in backend.abilities:
            pytest.skip("the backend declares no nested namespaces")
        backend.create_namespace(("a",), {})
        backend.create_namespace(("a", "b"), {"deep": "1"})
        backend.create_namespace(("a", "c"), {})
        backend.create_namespace(("ab",), {})
        assert self.namespaces(backend) == (("a",), ("ab",))
        assert backend.list_namespaces(("a",)).items == (("a", "b"), ("a", "c"))
        assert backend.list_namespaces(("a", "b")).items == ()
        assert self.properties(backend, ("a", "b")) == {"deep": "1"}

    def test_a_namespace_in_use_is_not_dropped(self, backend: CatalogBackend) -> None:
        """If this fails, dropping takes tables or namespaces with it."""
        backend.create_namespace(("a",), {})
        self.create_table(backend, ("a", "t"))
        with pytest.raises(NamespaceNotEmpty):
            backend.drop_namespace(("a",))
        backend.strategy(("a", "t")).drop()
        backend.drop_namespace(("a",))
        assert self.namespaces(backend) == ()

    def test_a_dropped_namespace_can_be_created_again(self, backend: CatalogBackend) -> None:
        """If this fails, ``drop_namespace`` leaves a marker or old properties."""
        backend.create_namespace(("a",), {"old": "1"})
        backend.drop_namespace(("a",))
        with pytest.raises(NoSuchNamespace):
            backend.namespace_properties(("a",))
        backend.create_namespace(("a",), {"new": "1"})
        assert self.properties(backend, ("a",)) == {"new": "1"}

    def test_a_listing_without_a_size_goes_on_after_the_first_page(self, backend: CatalogBackend) -> None:
        """If this fails, listing ends with a page of the store: ask for the next one while there is a token."""
        names = [(f"n{number:05}",) for number in range(self.listing_page + 2)]
        for name in names:
            backend.create_namespace(name, {})
        found: list[NamespaceName] = []
        page = backend.list_namespaces(())
        found += page.items
        while page.next_token is not None:
            page = backend.list_namespaces((), token=page.next_token)
            found += page.items
        assert [name for name in found if name not in self.namespaces_of_the_store] == names

    def test_what_another_has_changed_is_seen_at_once(self, backend: CatalogBackend) -> None:
        """If this fails, a cache answers with namespaces, properties or tables of before: switch it off."""
        other = self.another(backend)
        backend.create_namespace(("a",), {"x": "1"})
        assert backend.list_tables(("a",)).items == other.list_tables(("a",)).items == ()
        assert self.properties(backend, ("a",)) == {"x": "1"}
        assert current_of(backend.strategy(("a", "t"))) is None
        other.update_namespace_properties(("a",), {"x": "2"}, frozenset())
        other.create_namespace(("b",), {})
        self.create_table(other, ("a", "t"))
        assert self.properties(backend, ("a",)) == {"x": "2"}
        assert self.namespaces(backend) == (("a",), ("b",))
        assert backend.list_tables(("a",)).items == (("a", "t"),)
        mine, others = current_of(backend.strategy(("a", "t"))), current_of(other.strategy(("a", "t")))
        assert mine is not None
        assert others is not None
        assert mine.pointer == others.pointer
        other.strategy(("a", "t")).drop()
        other.drop_namespace(("b",))
        assert current_of(backend.strategy(("a", "t"))) is None
        assert backend.list_tables(("a",)).items == ()
        assert self.namespaces(backend) == (("a",),)

    # -- tables

    def test_a_created_table_is_listed_and_loads(self, backend: CatalogBackend) -> None:
        """If this fails, the strategy commits somewhere that ``list_tables`` does not look."""
        backend.create_namespace(("a",), {})
        self.create_table(backend, ("a", "t2"))
        self.create_table(backend, ("a", "t1"))
        assert backend.list_tables(("a",)).items == (("a", "t1"), ("a", "t2"))
        assert current_of(backend.strategy(("a", "t1"))) is not None
        assert current_of(backend.strategy(("a", "t3"))) is None

    def test_tables_of_other_namespaces_are_not_listed(self, backend: CatalogBackend) -> None:
        """If this fails, listing goes by a prefix of the name."""
        backend.create_namespace(("a",), {})
        backend.create_namespace(("ab",), {})
        self.create_table(backend, ("a", "t"))
        self.create_table(backend, ("ab", "u"))
        assert backend.list_tables(("a",)).items == (("a", "t"),)
        assert backend.list_tables(("ab",)).items == (("ab", "u"),)

    def test_listing_comes_in_pages(self, backend: CatalogBackend) -> None:
        """If this fails, a page is too long, or the next one leaves out or repeats a name."""
        backend.create_namespace(("a",), {})
        names: list[TableName] = [("a", f"t{number}") for number in range(7)]
        for name in names:
            self.create_table(backend, name)
        found: list[TableName] = []
        token: str | None = None
        while True:
            page = backend.list_tables(("a",), token=token, size=3)
            assert len(page.items) <= 3
            found += page.items
            token = page.next_token
            if token is None:
                break
        assert found == names
        self._goes_on(backend, "tables", names)

    def test_a_dropped_table_is_gone(self, backend: CatalogBackend) -> None:
        """If this fails, ``drop`` of the strategy does not reach the catalog's own record."""
        backend.create_namespace(("a",), {})
        self.create_table(backend, ("a", "t"))
        backend.strategy(("a", "t")).drop()
        assert backend.list_tables(("a",)).items == ()
        assert current_of(backend.strategy(("a", "t"))) is None
        with pytest.raises(NoSuchTable):
            backend.strategy(("a", "t")).drop()

    def test_a_table_has_one_name_however_it_is_spelled(self, backend: CatalogBackend) -> None:
        """If this fails, look at ``kept_name``: who is kept from a table by its name reaches it by another spelling."""
        backend.create_namespace(("a",), {})
        self.create_table(backend, ("a", "t"))
        catalog = Catalog(backend)
        assert backend.list_tables(("a",)).items == (catalog.kept_name(("a", "t")),)
        for name in (("a", "T"), ("A", "t"), ("A", "T")):
            try:
                is_there = catalog.table_exists(name)
            except IcefieldError:
                is_there = False
            is_same = catalog.kept_name(name) == catalog.kept_name(("a", "t"))
            assert is_there == is_same, f"{name} is kept as {catalog.kept_name(name)}"

    def test_a_renamed_table_keeps_its_metadata(self, backend: CatalogBackend) -> None:
        """If this fails, renaming rewrites the pointer, or leaves the old name."""
        backend.create_namespace(("a",), {})
        backend.create_namespace(("b",), {})
        self.create_table(backend, ("a", "t"))
        if CatalogAbility.RENAME not in backend.abilities:
            with pytest.raises(NotSupportedByCatalog):
                backend.rename_table(("a", "t"), ("b", "u"))
            assert current_of(backend.strategy(("a", "t"))) is not None
            return
        before = current_of(backend.strategy(("a", "t")))
        assert before is not None
        backend.rename_table(("a", "t"), ("b", "u"))
        after = current_of(backend.strategy(("b", "u")))
        assert after is not None
        assert after.pointer.location == before.pointer.location
        assert current_of(backend.strategy(("a", "t"))) is None

    def test_renaming_refuses_what_cannot_be(self, backend: CatalogBackend) -> None:
        """If this fails, renaming replaces a table, invents one, or moves one into nowhere."""
        if CatalogAbility.RENAME not in backend.abilities:
            pytest.skip("the backend declares no renaming")
        backend.create_namespace(("a",), {})
        self.create_table(backend, ("a", "t"))
        self.create_table(backend, ("a", "u"))
        with pytest.raises(TableExists):
            backend.rename_table(("a", "t"), ("a", "u"))
        with pytest.raises(NoSuchTable):
            backend.rename_table(("a", "no"), ("a", "v"))
        with pytest.raises(NoSuchNamespace):
            backend.rename_table(("a", "t"), ("no", "t"))
        assert backend.list_tables(("a",)).items == (("a", "t"), ("a", "u"))

    def test_a_table_that_is_there_can_be_registered(self, backend: CatalogBackend) -> None:
        """If this fails, look at ``register_table``: it must refuse a taken name and keep the metadata as it is."""
        backend.create_namespace(("a",), {})
        self.create_table(backend, ("a", "t"))
        current = current_of(backend.strategy(("a", "t")))
        assert current is not None
        if CatalogAbility.REGISTRATION not in backend.abilities:
            with pytest.raises(NotSupportedByCatalog):
                backend.register_table(("a", "again"), current.pointer.location)
            assert current_of(backend.strategy(("a", "again"))) is None
            return
        backend.register_table(("a", "again"), current.pointer.location)
        assert current_of(backend.strategy(("a", "again"))) is not None
        with pytest.raises(TableExists):
            backend.register_table(("a", "again"), current.pointer.location)
        with pytest.raises(NoSuchNamespace):
            backend.register_table(("no", "again"), current.pointer.location)
