"""Tables by name: listed, renamed, dropped, purged."""

from __future__ import annotations

import pytest
from icefield import Catalog, Table
from icefield.abc import CatalogAbility
from icefield.errors import (
    IcefieldError,
    InvalidArgument,
    NoSuchNamespace,
    NoSuchTable,
    NotSupportedByCatalog,
    TableExists,
)

from icefield_testing.behaviour.base import SCHEMA, BehaviourChecks, backend_of, ids, rows


class NameChecks(BehaviourChecks):
    """Checks of listing, renaming and dropping."""

    # -- listing

    def test_tables_are_listed_in_order(self, catalog: Catalog) -> None:
        """If this fails, listing gives the order of the store."""
        space = self.space(catalog)
        assert catalog.list_tables(space) == []
        for name in ("c", "a_2", "b", "a"):
            self.create(catalog, f"{space}.{name}")
        assert catalog.list_tables(space) == [(space, name) for name in ("a", "a_2", "b", "c")]

    @pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
    def test_tables_are_listed_in_pages(self, catalog: Catalog, size: int) -> None:
        """If this fails, a page is too long, or a name falls between two pages or is in both."""
        space = self.space(catalog)
        for number in range(5):
            catalog.create_table(f"{space}.t{number}", SCHEMA)
        found: list[tuple[str, ...]] = []
        token: str | None = None
        pages = 0
        while True:
            page = backend_of(catalog).list_tables((space,), token=token, size=size)
            assert len(page.items) <= size
            found += page.items
            pages += 1
            if (token := page.next_token) is None:
                break
        assert found == [(space, f"t{number}") for number in range(5)]
        assert pages >= 5 / size

    def test_a_page_goes_on_after_a_table_that_was_dropped(self, catalog: Catalog) -> None:
        """If this fails, a token counts rows, and a change in between shifts them."""
        space = self.space(catalog)
        for number in range(5):
            catalog.create_table(f"{space}.t{number}", SCHEMA)
        first = backend_of(catalog).list_tables((space,), size=2)
        catalog.drop_table(f"{space}.t0")
        assert first.next_token is not None
        rest = backend_of(catalog).list_tables((space,), token=first.next_token, size=100)
        assert rest.items == ((space, "t2"), (space, "t3"), (space, "t4"))

    @pytest.mark.parametrize("name", ["with_underscore", "with-hyphen", "Upper", "ünïcode", "select", "1", "x" * 100])
    def test_an_odd_name_works_or_is_refused(self, catalog: Catalog, name: str) -> None:
        """If this fails, a name is escaped on one way and not on the other, or half accepted."""
        space = self.space(catalog)
        try:
            table = self.create(catalog, f"{space}.{name}")
        except InvalidArgument:
            assert catalog.list_tables(space) == []
            return
        table.append(rows([1]))
        assert ids(self.another(catalog).load_table((space, name))) == [1]
        assert catalog.table_exists((space, name))
        # A store may not distinguish upper and lower case.
        assert [found[-1].lower() for found in catalog.list_tables(space)] == [name.lower()]
        catalog.drop_table((space, name))
        assert catalog.list_tables(space) == []

    # -- renaming

    def test_a_renamed_table_is_the_same_table(self, catalog: Catalog) -> None:
        """If this fails, renaming loses the table, copies it, or moves its files."""
        table = self.create(catalog)
        table.append(rows([1]))
        space = table.name()[0]
        if CatalogAbility.RENAME not in backend_of(catalog).abilities:
            with pytest.raises(NotSupportedByCatalog):
                catalog.rename_table(table.name(), (space, "other"))
            assert catalog.list_tables(space) == [table.name()]
            assert self.held_again(catalog, table).metadata == table.metadata
            return
        renamed = catalog.rename_table(table.name(), (space, "other"))
        assert renamed.name() == (space, "other")
        assert renamed.metadata == table.metadata
        assert catalog.list_tables(space) == [(space, "other")]
        assert not self.another(catalog).table_exists(table.name())
        with pytest.raises(NoSuchTable):
            catalog.load_table(table.name())

    def test_a_renamed_table_can_be_changed(self, catalog: Catalog) -> None:
        """If this fails, the strategy of the new name does not find the old pointer."""
        table = self._renamable(catalog)
        catalog.rename_table(table.name(), (table.name()[0], "other")).append(rows([2]))
        assert ids(self.another(catalog).load_table((table.name()[0], "other"))) == [1, 2]

    def test_a_table_is_renamed_into_another_namespace(self, catalog: Catalog) -> None:
        """If this fails, renaming changes the last level of the name only."""
        table = self._renamable(catalog)
        target = (self.space(catalog), "moved")
        catalog.rename_table(table.name(), target)
        assert catalog.list_tables(table.name()[0]) == []
        assert catalog.list_tables(target[0]) == [target]
        assert ids(catalog.load_table(target)) == [1]

    def test_the_old_name_is_free_after_renaming(self, catalog: Catalog) -> None:
        """If this fails, the old name still leads somewhere, or the two tables share files."""
        table = self._renamable(catalog)
        catalog.rename_table(table.name(), (table.name()[0], "other"))
        new = self.create(catalog, ".".join(table.name()))
        new.append(rows([7]))
        assert ids(catalog.load_table((table.name()[0], "other"))) == [1]
        assert ids(self.held_again(catalog, new)) == [7]

    def test_renaming_to_a_taken_name_is_refused(self, catalog: Catalog) -> None:
        """If this fails, renaming replaces a table."""
        table, there = self._renamable(catalog), self._renamable(catalog)
        with pytest.raises(TableExists):
            catalog.rename_table(table.name(), there.name())
        assert self.held_again(catalog, table).metadata.table_uuid == table.metadata.table_uuid
        assert self.held_again(catalog, there).metadata.table_uuid == there.metadata.table_uuid

    def test_renaming_what_is_not_there_is_refused(self, catalog: Catalog) -> None:
        """If this fails, renaming invents a table."""
        space = self._renamable(catalog).name()[0]
        with pytest.raises(NoSuchTable):
            catalog.rename_table(f"{space}.nothing", f"{space}.other")
        assert not catalog.table_exists(f"{space}.other")

    def test_renaming_into_a_missing_namespace_is_refused(self, catalog: Catalog) -> None:
        """If this fails, a table goes where no listing shows it."""
        table = self._renamable(catalog)
        name = self.fresh()
        with pytest.raises(NoSuchNamespace):
            catalog.rename_table(table.name(), f"{name}.t")
        assert not catalog.namespace_exists(name)
        assert ids(self.held_again(catalog, table)) == [1]

    def test_a_change_under_the_old_name_is_not_lost_in_silence(self, catalog: Catalog) -> None:
        """If this fails, whoever holds the table under its old name creates it a second time."""
        table = self._renamable(catalog)
        late = self.held_again(catalog, table)
        catalog.rename_table(table.name(), (table.name()[0], "other"))
        with pytest.raises(IcefieldError):
            late.append(rows([2]))
        assert not catalog.table_exists(table.name())
        assert ids(catalog.load_table((table.name()[0], "other"))) == [1]

    # -- dropping

    def test_a_dropped_table_is_gone(self, catalog: Catalog) -> None:
        """If this fails, ``drop`` of the strategy does not reach what listing or another process reads."""
        table = self.create(catalog)
        table.append(rows([1]))
        catalog.drop_table(table.name())
        for each in (catalog, self.another(catalog)):
            assert not each.table_exists(table.name())
            assert each.list_tables(table.name()[0]) == []
            with pytest.raises(NoSuchTable):
                each.load_table(table.name())
        with pytest.raises(NoSuchTable):
            catalog.drop_table(table.name())

    def test_dropping_leaves_the_data_of_a_table(self, catalog: Catalog) -> None:
        """If this fails, dropping deletes what other tables may share."""
        table = self.create(catalog)
        table.append(rows([1]))
        data = set(table.inspect.files().column("file_path").to_pylist())
        catalog.drop_table(table.name())
        assert data <= self.files(catalog, table.location())

    def test_dropping_one_table_leaves_the_others(self, catalog: Catalog) -> None:
        """If this fails, dropping goes by a prefix of the name or of the location."""
        space = self.space(catalog)
        gone, kept = self.create(catalog, f"{space}.t"), self.create(catalog, f"{space}.t_2")
        kept.append(rows([1]))
        gone.append(rows([2]))
        catalog.purge_table(gone.name())
        assert catalog.list_tables(space) == [kept.name()]
        assert ids(self.held_again(catalog, kept)) == [1]

    def test_a_purged_table_leaves_no_file(self, catalog: Catalog) -> None:
        """If this fails, purging leaves metadata, manifests or data behind."""
        table = self.create(catalog, partition_spec=["kind"])
        for number in range(3):
            table.append(rows([number, 10 + number]))
        table.delete("id = 1")
        table.update_schema().add_column("more", "int").commit()
        catalog.purge_table(table.name())
        assert not catalog.table_exists(table.name())
        assert self.files(catalog, table.location()) == set()

    def test_purging_keeps_data_that_may_be_shared(self, catalog: Catalog) -> None:
        """If this fails, ``gc.enabled`` = false is not honoured."""
        table = self.create(catalog, **{"gc.enabled": "false"})
        table.append(rows([1]))
        data = set(table.inspect.files().column("file_path").to_pylist())
        catalog.drop_table(table.name(), purge=True)
        assert data <= self.files(catalog, table.location())

    def test_a_dropped_name_can_be_taken_again(self, catalog: Catalog) -> None:
        """If this fails, rows, properties or versions of the dropped table come back with its name."""
        old = self.create(catalog, color="old")
        for number in range(3):
            old.append(rows([number]))
        catalog.drop_table(old.name())
        new = self.create(catalog, ".".join(old.name()))
        assert new.metadata.table_uuid != old.metadata.table_uuid
        assert "color" not in new.properties
        assert ids(self.held_again(catalog, new)) == []
        new.append(rows([7]))
        assert ids(self.held_again(catalog, new)) == [7]

    def test_a_change_to_a_dropped_table_does_not_revive_it(self, catalog: Catalog) -> None:
        """If this fails, a stalled writer publishes a version of no table."""
        table = self.create(catalog)
        late = self.held_again(catalog, table)
        catalog.drop_table(table.name())
        with pytest.raises(NoSuchTable):
            late.append(rows([1]))
        with pytest.raises(NoSuchTable):
            late.refresh()
        assert not catalog.table_exists(table.name())

    def test_a_change_to_a_dropped_table_does_not_reach_its_successor(self, catalog: Catalog) -> None:
        """If this fails, the strategy does not compare the table's uuid with that of its base."""
        table = self.create(catalog)
        late = self.held_again(catalog, table)
        catalog.drop_table(table.name())
        new = self.create(catalog, ".".join(table.name()))
        for change in (lambda: late.append(rows([1])), lambda: late.set_properties(late="1"), late.refresh):
            with pytest.raises(IcefieldError):
                change()
        found = self.held_again(catalog, new)
        assert ids(found) == []
        assert "late" not in found.properties

    def _renamable(self, catalog: Catalog) -> Table:
        """A table with one row; skips the check if the catalog cannot rename tables."""
        if CatalogAbility.RENAME not in backend_of(catalog).abilities:
            pytest.skip("the backend declares no renaming")
        table = self.create(catalog)
        table.append(rows([1]))
        return table
