"""Tables: created, staged, registered, located."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from icefield import Catalog, Table
from icefield.abc import CatalogAbility
from icefield.errors import (
    FileMissing,
    IcefieldError,
    InvalidArgument,
    InvalidMetadata,
    NoSuchNamespace,
    NoSuchTable,
    NotSupportedByCatalog,
    TableExists,
)

from icefield_testing.behaviour.base import SCHEMA, BehaviourChecks, backend_of, ids, rows


class CreationChecks(BehaviourChecks):
    """Checks of the creation of tables."""

    def test_a_created_table_is_there(self, catalog: Catalog) -> None:
        """If this fails, the strategy publishes where listing or another process does not look."""
        name = (self.space(catalog), "t")
        assert not catalog.table_exists(name)
        table = self.create(catalog, ".".join(name))
        for each in (catalog, self.another(catalog)):
            assert each.table_exists(name)
            assert each.list_tables(name[0]) == [name]
            assert each.load_table(name).metadata == table.metadata
            assert each.load_table(name).metadata_location == table.metadata_location

    def test_a_new_table_has_no_rows_and_no_snapshot(self, catalog: Catalog) -> None:
        """If this fails, creation makes a snapshot, or finds files of another table."""
        table = self.held_again(catalog, self.create(catalog))
        assert table.current_snapshot() is None
        assert table.snapshots() == []
        assert table.scan().to_arrow().num_rows == 0
        assert table.scan().to_arrow().column_names == ["id", "kind", "value"]

    def test_all_that_a_table_is_created_with_is_kept(self, catalog: Catalog) -> None:
        """If this fails, something of schema, partitioning, order or properties does not reach the metadata."""
        name = f"{self.space(catalog)}.t"
        catalog.create_table(
            name,
            SCHEMA,
            partition_spec=["bucket[4](id)", "kind"],
            sort_order=["value desc nulls last", "id"],
            properties={"owner": "jürgen", "number": 3},
        )
        table = self.another(catalog).load_table(name)
        assert [(field.name, field.required) for field in table.schema().fields] == [
            ("id", True),
            ("kind", False),
            ("value", False),
        ]
        assert [str(field.transform) for field in table.spec().fields] == ["bucket[4]", "identity"]
        assert [(f.source_id, f.direction.value) for f in table.sort_order().fields] == [(3, "desc"), (1, "asc")]
        assert table.properties.items() >= {"owner": "jürgen", "number": "3"}.items()

    def test_a_table_is_created_from_an_arrow_schema(self, catalog: Catalog) -> None:
        """If this fails, column ids are not given afresh."""
        schema = pa.schema([("a", pa.int32()), ("b", pa.list_(pa.struct([("c", pa.string())])))])
        name = f"{self.space(catalog)}.t"
        catalog.create_table(name, schema)
        assert sorted(self.another(catalog).load_table(name).schema().field_ids) == [1, 2, 3, 4]

    @pytest.mark.parametrize("version", [1, 2, 3])
    def test_a_table_of_each_format_version_is_written_and_read(self, catalog: Catalog, version: int) -> None:
        """If this fails, the strategy or the catalog assumes a format version."""
        table = self.create(catalog, format_version=str(version))
        table.append(rows([1, 2]))
        table.append(rows([3]))
        found = self.held_again(catalog, table)
        assert found.format_version == version
        assert ids(found) == [1, 2, 3]

    def test_a_table_is_not_created_twice(self, catalog: Catalog) -> None:
        """If this fails, the second creation takes the first one's table away."""
        table = self.create(catalog)
        table.append(rows([1]))
        name = ".".join(table.name())
        with pytest.raises(TableExists) as caught:
            self.create(self.another(catalog), name)
        assert caught.value.data["table"] == table.name()
        assert name in str(caught.value)
        assert self.held_again(catalog, table).metadata == table.metadata

    def test_creating_a_table_if_there_is_none_gives_the_one_that_is(self, catalog: Catalog) -> None:
        """If this fails, the strategy answers a creation that lost with something else than a conflict."""
        name = f"{self.space(catalog)}.t"
        made = catalog.create_table_if_not_exists(name, SCHEMA, properties=self.table_properties)
        made.append(rows([1]))
        found = self.another(catalog).create_table_if_not_exists(name, pa.schema([("x", pa.int8())]))
        assert found.metadata.table_uuid == made.metadata.table_uuid
        assert ids(found) == [1]

    @pytest.mark.parametrize(
        "given",
        [
            {"properties": {"format-version": "4"}},
            {"partition_spec": ["day(id)"]},
            {"partition_spec": ["nowhere"]},
            {"sort_order": ["nowhere"]},
        ],
        ids=["format version 4", "wrong transform", "missing partition column", "missing sort column"],
    )
    def test_a_table_that_cannot_be_is_refused_before_anything_is_made(
        self, catalog: Catalog, given: dict[str, Any]
    ) -> None:
        """If this fails, the name is taken before the table is known to be sound."""
        space = self.space(catalog)
        with pytest.raises((ValueError, IcefieldError)):
            catalog.create_table(f"{space}.t", SCHEMA, **given)
        assert catalog.list_tables(space) == []
        assert self.create(catalog, f"{space}.t").current_snapshot() is None

    def test_the_catalogs_defaults_and_overrides_reach_a_new_table(self, catalog: Catalog) -> None:
        """If this fails, the backend keeps properties from the kernel."""
        more = {"table-default.a": "default", "table-default.b": "default", "table-override.c": "override"}
        table = self.another(catalog, **more).create_table(
            f"{self.space(catalog)}.t", SCHEMA, properties={"b": "given", "c": "given"}
        )
        found = self.held_again(catalog, table).properties
        assert {key: found[key] for key in "abc"} == {"a": "default", "b": "given", "c": "override"}

    def test_a_location_of_the_users_choice_is_used_or_refused(self, catalog: Catalog) -> None:
        """If this fails, a table is created somewhere else than it was asked to, or half made before it is refused."""
        space = self.space(catalog)
        neighbour = self.create(catalog, f"{space}.beside").location()
        wanted = f"{neighbour}-elsewhere"
        try:
            table = catalog.create_table(f"{space}.t", SCHEMA, location=f"{wanted}/", properties=self.table_properties)
        except (InvalidArgument, NotSupportedByCatalog):
            assert not catalog.table_exists(f"{space}.t")
            assert not [*catalog.io.list_files(wanted)]
            return
        table.append(rows([1]))
        found = self.held_again(catalog, table)
        assert found.location() == wanted
        assert found.metadata_location.startswith(f"{wanted}/")
        assert ids(found) == [1]

    def test_tables_of_one_name_in_two_namespaces_are_two(self, catalog: Catalog) -> None:
        """If this fails, tables are distinguished by the last level of their name."""
        one, two = self.create(catalog), self.create(catalog)
        assert one.location() != two.location()
        one.append(rows([1]))
        two.append(rows([2]))
        assert (ids(self.held_again(catalog, one)), ids(self.held_again(catalog, two))) == ([1], [2])

    def test_a_missing_table_is_said_to_be_missing(self, catalog: Catalog) -> None:
        """If this fails, loading or dropping what is not there raises another error, or none."""
        name = f"{self.space(catalog)}.nothing"
        assert not catalog.table_exists(name)
        assert not catalog.table_exists(f"{self.fresh()}.nothing")
        for call in (catalog.load_table, catalog.drop_table, catalog.purge_table):
            with pytest.raises(NoSuchTable) as caught:
                call(name)
            assert name.split(".")[1] in str(caught.value)
            assert caught.value.data["table"] == tuple(name.split("."))

    def test_a_name_without_a_namespace_is_refused(self, catalog: Catalog) -> None:
        """If this fails, a table is looked for at the root."""
        for call in (catalog.load_table, catalog.drop_table, lambda name: catalog.create_table(name, SCHEMA)):
            with pytest.raises(InvalidArgument):
                call("alone")

    # -- staged

    def test_a_staged_table_is_not_seen_before_it_is_committed(self, catalog: Catalog) -> None:
        """If this fails, staging publishes, and others see a table without its rows."""
        name = f"{self.space(catalog)}.t"
        staged = catalog.create_table_transaction(name, SCHEMA, properties=self.table_properties)
        staged.append(rows([1, 2]))
        assert not self.another(catalog).table_exists(name)
        staged.commit_transaction()
        assert ids(self.another(catalog).load_table(name)) == [1, 2]

    def test_a_staged_table_appears_with_all_that_was_staged(self, catalog: Catalog) -> None:
        """If this fails, creation and the first changes are several commits."""
        name = f"{self.space(catalog)}.t"
        with catalog.create_table_transaction(name, SCHEMA, properties=self.table_properties) as staged:
            staged.set_properties(color="blue")
            staged.update_schema().add_column("more", "string").commit()
            staged.append(rows([1]))
        table = self.another(catalog).load_table(name)
        assert table.properties["color"] == "blue"
        assert table.schema().find_field("more").field_id == 4
        assert ids(table) == [1]
        assert len(table.metadata.metadata_log) == 0
        assert len(table.snapshots()) == 1

    def test_a_staged_table_that_is_given_up_leaves_nothing(self, catalog: Catalog) -> None:
        """If this fails, files or a record of the table stay, and the name is taken."""
        name = f"{self.space(catalog)}.t"
        staged = catalog.create_table_transaction(name, SCHEMA, properties=self.table_properties)
        location = staged.preview().location
        staged.append(rows([1]))
        staged.__exit__(KeyError, KeyError("the caller failed"), None)
        assert not catalog.table_exists(name)
        assert self.files(catalog, location) == set()
        self.create(catalog, name)

    def test_a_staged_table_that_comes_second_loses(self, catalog: Catalog) -> None:
        """If this fails, committing a staged creation is not conditional on there being no table."""
        name = f"{self.space(catalog)}.t"
        staged = catalog.create_table_transaction(name, SCHEMA, properties=self.table_properties)
        staged.append(rows([1]))
        winner = self.create(self.another(catalog), name)
        winner.append(rows([2]))
        with pytest.raises(TableExists):
            staged.commit_transaction()
        assert ids(catalog.load_table(name)) == [2]
        assert catalog.load_table(name).metadata.table_uuid == winner.metadata.table_uuid
        # The files of the loser are gone: only the winner's files remain.
        data = {at for at in self.files(catalog, winner.location()) if "/data/" in at}
        assert data == set(winner.inspect.files().column("file_path").to_pylist())

    # -- registered

    def test_a_registered_table_reads_the_same_rows(self, catalog: Catalog) -> None:
        """If this fails, ``register_table`` changes the metadata, or copies it where it cannot be read."""
        source = self.create(catalog)
        source.append(rows([1, 2]))
        name = f"{self.space(catalog)}.registered"
        if CatalogAbility.REGISTRATION not in backend_of(catalog).abilities:
            with pytest.raises(NotSupportedByCatalog):
                catalog.register_table(name, source.metadata_location)
            assert not catalog.table_exists(name)
            return
        table = catalog.register_table(name, self._dropped(catalog, source))
        assert table.metadata.table_uuid == source.metadata.table_uuid
        assert ids(self.held_again(catalog, table)) == [1, 2]
        assert tuple(name.split(".")) in catalog.list_tables(name.split(".")[0])

    def test_a_registered_table_can_be_changed(self, catalog: Catalog) -> None:
        """If this fails, the strategy cannot commit on a pointer that it did not write."""
        self._needs_registration(catalog)
        source = self.create(catalog)
        source.append(rows([1]))
        table = catalog.register_table(f"{self.space(catalog)}.registered", self._dropped(catalog, source))
        table.append(rows([2]))
        assert ids(self.held_again(catalog, table)) == [1, 2]

    def test_registering_under_a_taken_name_is_refused(self, catalog: Catalog) -> None:
        """If this fails, registering replaces a table."""
        self._needs_registration(catalog)
        source, there = self.create(catalog), self.create(catalog)
        there.append(rows([9]))
        with pytest.raises(TableExists):
            catalog.register_table(there.name(), self._dropped(catalog, source))
        assert ids(self.held_again(catalog, there)) == [9]

    def test_registering_into_a_missing_namespace_is_refused(self, catalog: Catalog) -> None:
        """If this fails, a table is registered that no listing shows."""
        self._needs_registration(catalog)
        source = self.create(catalog)
        name = self.fresh()
        with pytest.raises(NoSuchNamespace):
            catalog.register_table(f"{name}.t", self._dropped(catalog, source))
        assert not catalog.namespace_exists(name)

    @pytest.mark.parametrize("content", [None, b"", b"{", b'{"format-version": 99}', b"\x1f\x8b\x08"], ids=repr)
    def test_registering_what_is_no_metadata_is_refused(self, catalog: Catalog, content: bytes | None) -> None:
        """If this fails, a table is registered that nobody can load, and whose name is taken."""
        self._needs_registration(catalog)
        source = self.create(catalog)
        location = f"{source.location()}/metadata/damaged.metadata.json"
        if content is not None:
            with catalog.io.open_output(location) as sink:  # not every store can create with ``put``
                sink.write(content)
        name = f"{self.space(catalog)}.t"
        with pytest.raises(FileMissing if content is None else (InvalidMetadata, IcefieldError)) as caught:
            catalog.register_table(name, location)
        assert "damaged.metadata.json" in str(caught.value)
        assert not catalog.table_exists(name)

    # -- helpers

    def _dropped(self, catalog: Catalog, table: Table) -> str:
        """Drop the name of a table, whose files stay, so that it has no second name when it is registered. Return its
        metadata location."""
        location = table.metadata_location
        catalog.drop_table(table.name())
        return location

    def _needs_registration(self, catalog: Catalog) -> None:
        """Skip where registration is a declared gap."""
        if CatalogAbility.REGISTRATION not in backend_of(catalog).abilities:
            pytest.skip("the backend declares no registration")
