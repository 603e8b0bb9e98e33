"""Tables of a service that hands out metadata and configuration, and decides by requirements."""

from __future__ import annotations

from uuid import uuid4

import pytest
from icefield import Catalog, FileIO, Table
from icefield.errors import AccessDenied, FileMissing, TableExists
from icefield.metadata.requirements import AssertCreate, AssertCurrentSchemaId, AssertRefSnapshotID, AssertTableUUID
from icefield_testing import CatalogSuite
from icefield_testing.behaviour.changes import ChangeChecks
from icefield_testing.behaviour.namespaces import NamespaceChecks
from icefield_testing.behaviour.races import RaceChecks
from table_service import KEY, MASTER, SERVICES, ServiceBackend, VendedFileSystem, plugins
from tables import EAGER, SCHEMA, handle_of, ids, meddled, rows, state_of


def backend(**more: str) -> ServiceBackend:
    properties = {"warehouse": f"vended://{uuid4().hex}", "location.allowed-schemes": "vended,service", **more}
    return ServiceBackend("test", properties, FileIO(plugins(), properties))


def service_catalog() -> Catalog:
    catalog = Catalog(backend())
    catalog.create_namespace("db")
    return catalog


@pytest.mark.slow
class TestTablesOfAService(NamespaceChecks, ChangeChecks, RaceChecks):
    """The behaviour of tables, without the checks of their metadata files."""

    one_process = True

    @pytest.fixture
    def catalog(self) -> Catalog:
        return Catalog(backend(**{KEY: MASTER}))


class TestServiceCatalog(CatalogSuite):
    @pytest.fixture
    def backend(self) -> ServiceBackend:
        return backend()


def test_a_table_is_read_with_what_the_service_hands_out() -> None:
    catalog = service_catalog()
    with pytest.raises(AccessDenied):
        catalog.io.read(f"{catalog.properties['warehouse']}/db/t/x")
    table = catalog.create_table("db.t", SCHEMA)
    table.append(rows([1]))
    table.append(rows([2]))
    assert ids(catalog.load_table("db.t")) == [1, 2]
    with pytest.raises(FileMissing):
        VendedFileSystem.inner.stat(table.metadata_location)


def test_what_is_handed_out_follows_the_table() -> None:
    catalog = service_catalog()
    table = catalog.create_table("db.t", SCHEMA)
    table.append(rows([1]))
    first = table.io.properties[KEY]
    VendedFileSystem.valid.clear()
    with pytest.raises(AccessDenied):
        ids(table)
    table.refresh()
    assert table.io.properties[KEY] != first
    assert KEY not in catalog.io.properties
    assert ids(table) == [1]


def test_a_service_says_nothing_of_the_limits_that_the_user_set() -> None:
    table = service_catalog().create_table("db.t", SCHEMA)
    assert table.io.properties["location.allowed-schemes"] == "vended,service"


def test_credentials_show_in_no_repr() -> None:
    table = service_catalog().create_table("db.t", SCHEMA)
    current = handle_of(table).writable().load()
    for shown in (current, table, state_of(table), handle_of(table), table.io):
        assert table.io.properties[KEY] not in repr(shown)
        assert "key-" not in repr(shown)


def test_a_service_learns_the_updates_and_what_they_require() -> None:
    catalog = service_catalog()
    table = catalog.create_table("db.t", SCHEMA, properties={"a": "1"}, partition_spec=["kind"], sort_order=["id"])
    service = SERVICES[catalog.properties["warehouse"]]
    assert service.proposals[-1].requirements == (AssertCreate(),)
    assert (table.properties["a"], table.spec().fields[0].name, len(table.sort_order().fields)) == ("1", "kind", 1)
    with table.transaction() as tx:
        tx.update_schema().add_column("one", "long").commit()
        tx.update_schema().add_column("two", "long").commit()
        tx.append(rows([1]))
        tx.append(rows([2]))
    told = service.proposals[-1]
    assert told.base is not None
    assert AssertTableUUID(str(table.metadata.table_uuid)) in told.requirements
    assert AssertCurrentSchemaId(0) in told.requirements
    assert AssertCurrentSchemaId(1) not in told.requirements, "that is what the transaction itself makes"
    refs = [each for each in told.requirements if isinstance(each, AssertRefSnapshotID)]
    assert refs == [AssertRefSnapshotID("main", None)]
    assert len(table.snapshots()) == 2
    assert len(table.metadata.snapshot_log) == 1
    assert ids(table.refresh()) == [1, 2]


def test_a_service_may_make_more_of_a_change_than_was_proposed() -> None:
    catalog = service_catalog()
    table = catalog.create_table("db.t", SCHEMA)

    def set_a(other: Table) -> None:
        other.set_properties(a="1")

    holder = meddled(table, set_a)
    holder.set_properties(b="2")
    assert (holder.properties["a"], holder.properties["b"]) == ("1", "2"), "no requirement was broken"
    assert len(handle_of(holder).writable().proposed) == 1  # type: ignore[attr-defined]


@pytest.mark.spec("COMMIT-01")
def test_a_requirement_that_is_not_met_is_a_conflict_and_the_change_is_applied_again() -> None:
    table = service_catalog().create_table("db.t", SCHEMA, properties=EAGER)
    holder = meddled(table, lambda other: other.append(rows([1])))
    holder.append(rows([2]))
    assert ids(holder) == [1, 2]
    assert len(handle_of(holder).writable().proposed) == 2  # type: ignore[attr-defined]


def test_of_two_creators_one_wins() -> None:
    catalog = service_catalog()
    first = catalog.create_table_transaction("db.t", SCHEMA)
    second = catalog.create_table_transaction("db.t", SCHEMA)
    first.commit_transaction()
    with pytest.raises(TableExists):
        second.commit_transaction()
