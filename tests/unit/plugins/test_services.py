"""Services that plugins add to tables, transactions and scans: found, refused if malformed, missed with advice."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield import InstallHint, Plugins, Table, TableService, hookimpl
from icefield.errors import BrokenPlugin, MissingPlugin, PluginConflict
from icefield.transaction import Transaction

KERNEL = ["icefield.builtin.hooks", "icefield_avro.hooks"]


class Offer:
    """A plugin with services."""

    def __init__(self, *services: Any) -> None:
        self._services = services

    @hookimpl
    def icefield_table_services(self) -> Any:
        return self._services


def name_of(table: Table) -> str:
    return ".".join(table.name())


def location_of(transaction: Transaction[Any]) -> str:
    return transaction.shape.location


NAMED = TableService("called", f"{__name__}:name_of")


def table(*plugins: Any, **properties: str) -> Table:
    catalog = icefield.load_catalog(
        "services", type="directory", warehouse="memory://services", plugins=Plugins([*KERNEL, *plugins]), **properties
    )
    catalog.create_namespace_if_not_exists("db")
    if catalog.table_exists("db.t"):
        return catalog.load_table("db.t")
    return catalog.create_table("db.t", pa.schema([("n", pa.int64())]))


def attribute(owner: object, name: str) -> Any:
    return getattr(owner, name)


def test_a_service_is_an_attribute_of_tables_and_not_of_scans() -> None:
    made = table(Offer(NAMED))
    assert attribute(made, "called") == "db.t"
    assert "called" in dir(made)
    assert not hasattr(made.scan(), "called")
    assert "called" not in dir(made.scan())


def test_without_its_distribution_maintenance_says_what_to_install() -> None:
    with pytest.raises(
        MissingPlugin, match=r'^no service of tables for \'maintenance\'; pip install "icefield\[maintenance\]"$'
    ):
        _ = table().maintenance


def test_a_hint_says_what_to_install_for_a_service() -> None:
    class Hints:
        @hookimpl
        def icefield_install_hints(self) -> list[InstallHint]:
            return [InstallHint("scan-services", "to_frame", "some-frames")]

    made = table(Hints())
    with pytest.raises(MissingPlugin, match='pip install "some-frames"'):
        attribute(made.scan(), "to_frame")
    assert not hasattr(made, "to_frame")


def test_an_unknown_attribute_stays_an_attribute_error() -> None:
    made = table(Offer(NAMED))
    for owner in (made, made.scan()):
        for name in ("no_such_thing", "_private", "__no_protocol__"):
            with pytest.raises(AttributeError, match=f"'{type(owner).__name__}' object has no attribute '{name}'"):
                attribute(owner, name)


def test_a_service_replaces_no_attribute_of_the_table() -> None:
    assert table(Offer(TableService("schema", f"{__name__}:name_of"))).schema().schema_id == 0


def test_two_plugins_with_one_service_conflict_until_one_is_preferred() -> None:
    first, second = Offer(NAMED), Offer(NAMED)
    with pytest.raises(PluginConflict, match=r"plugins\.prefer\.table-services\.called"):
        attribute(table(first, second), "called")


def test_a_service_that_cannot_be_imported_names_its_plugin() -> None:
    with pytest.raises(BrokenPlugin, match="no_such_module:Thing cannot be loaded"):
        attribute(table(Offer(TableService("lost", "no_such_module:Thing"))), "lost")


@pytest.mark.parametrize(
    "given",
    [
        "called",
        TableService("no name", "m:a"),
        TableService("_hidden", "m:a"),
        TableService("called", "module"),
        TableService("called", "m:a", of="view"),  # type: ignore[arg-type]
    ],
    ids=str,
)
def test_a_malformed_service_breaks_its_plugin_alone(given: Any) -> None:
    plugins = Plugins([Offer(NAMED), Offer(given)])
    good, bad = plugins.listing()
    assert good.error is None
    assert bad.error is not None
    assert "icefield_table_services returned" in bad.error


def test_tables_and_scans_are_copied_with_their_services() -> None:
    made = table()
    assert copy.copy(made).name() == ("db", "t")
    assert pickle.loads(pickle.dumps(made.scan())).schema == made.scan().schema


def test_the_module_of_a_service_is_imported_when_it_is_asked_for() -> None:
    code = (
        "import sys, icefield\n"
        "catalog = icefield.load_catalog('x', type='directory', warehouse='memory://lazy')\n"
        "catalog.create_namespace('db')\n"
        "table = catalog.create_table('db.t', icefield.Schema())\n"
        "before = 'icefield_maintenance.maintenance_table' in sys.modules\n"
        "table.maintenance\n"
        "print(before, 'icefield_maintenance.maintenance_table' in sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False True"


def test_transactions_have_services_of_their_own() -> None:
    made = table(Offer(TableService("location_of", f"{__name__}:location_of", "transaction")))
    transaction = made.transaction()
    assert attribute(transaction, "location_of") == made.location()
    assert not hasattr(made, "location_of")


def test_without_its_distribution_add_files_says_what_to_install() -> None:
    made = table()
    for owner, noun in ((made, "tables"), (made.transaction(), "transactions")):
        with pytest.raises(
            MissingPlugin, match=rf'^no service of {noun} for \'add_files\'; pip install "icefield\[import\]"$'
        ):
            owner.add_files("memory://a.parquet")
