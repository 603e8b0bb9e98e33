"""Views in the second schema of the JDBC catalog: made, changed and read here, and by whoever shares the database."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from icefield import Catalog, load_catalog
from icefield.errors import (
    InvalidArgument,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    NoSuchView,
    NotSupportedByCatalog,
    TableExists,
    ViewExists,
)
from icefield.metadata import requirements_from_json, updates_from_json
from sqlalchemy import create_engine, text

SCHEMA = pa.schema([("id", pa.int64())])
ROWS = pa.table({"id": [1, 2]})
SQL = {"spark": "SELECT id FROM t", "trino": "SELECT id FROM t"}
V0 = (
    "CREATE TABLE iceberg_tables(catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, "
    "table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), "
    "PRIMARY KEY (catalog_name, table_namespace, table_name))"
)


def opened(folder: Path) -> Catalog:
    return load_catalog(
        "test", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse"
    )


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    made = opened(tmp_path)
    made.create_namespace("db")
    return made


@pytest.mark.spec("VIEW-05")
def test_a_view_is_made_changed_renamed_and_dropped(catalog: Catalog, tmp_path: Path) -> None:
    view = catalog.create_view("db.v", SCHEMA, SQL, properties={"comment": "all"})
    assert view.metadata_location.rpartition("/")[2].startswith("00000-")
    changed = view.set_properties({"owner": "me"}, ["comment"])
    assert changed.metadata_location.rpartition("/")[2].startswith("00001-")
    assert json.loads(Path(changed.metadata_location[7:]).read_text())["properties"] == {"owner": "me"}
    again = opened(tmp_path)
    assert again.load_view("db.v").sql == SQL
    assert (again.list_views("db"), again.list_tables("db")) == ([("db", "v")], [])
    assert again.view_exists("db.v")
    assert not again.table_exists("db.v")
    again.create_namespace("other")
    again.rename_view("db.v", "other.w")
    assert catalog.load_view("other.w").metadata_location == changed.metadata_location
    catalog.drop_view("other.w")
    assert not again.view_exists("other.w")


def test_tables_and_views_share_their_names_and_neither_is_taken_for_the_other(catalog: Catalog) -> None:
    catalog.create_view("db.v", SCHEMA, SQL)
    catalog.create_table("db.t", SCHEMA).append(ROWS)
    for refused, act in [
        (TableExists, lambda: catalog.create_view("db.t", SCHEMA, SQL)),
        (TableExists, lambda: catalog.rename_view("db.v", "db.t")),
        (ViewExists, lambda: catalog.create_view("db.v", SCHEMA, SQL)),
        (TableExists, lambda: catalog.create_table("db.v", SCHEMA)),
        (TableExists, lambda: catalog.rename_table("db.t", "db.v")),
        (NoSuchView, lambda: catalog.load_view("db.t")),
        (NoSuchView, lambda: catalog.drop_view("db.t")),
        (NoSuchView, lambda: catalog.rename_view("db.t", "db.u")),
        (NoSuchTable, lambda: catalog.drop_table("db.v")),
        (NoSuchTable, lambda: catalog.rename_table("db.v", "db.u")),
        (NoSuchNamespace, lambda: catalog.create_view("no.v", SCHEMA, SQL)),
        (NoSuchNamespace, lambda: catalog.rename_view("db.v", "no.v")),
        (NoSuchNamespace, lambda: catalog.list_views("no")),
        (NamespaceNotEmpty, lambda: catalog.drop_namespace("db")),
    ]:
        with pytest.raises(refused):
            act()
    assert catalog.load_view("db.v").sql == SQL
    assert catalog.load_table("db.t").scan().count() == 2


def test_of_changes_at_the_same_time_none_is_lost(catalog: Catalog, tmp_path: Path) -> None:
    catalog.create_view("db.v", SCHEMA, SQL)

    def change(number: int) -> None:
        opened(tmp_path).load_view("db.v").set_properties({f"by{number}": "x"})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(change, range(4)))
    assert len(catalog.load_view("db.v").properties) == 4
    files = [path.name for path in (tmp_path / "warehouse/db/v/metadata").iterdir()]
    assert sorted(name[:5] for name in files) == ["00000", "00001", "00002", "00003", "00004"]


def test_a_database_of_the_first_schema_has_no_views_and_says_how_it_gets_them(tmp_path: Path) -> None:
    with create_engine(f"sqlite:///{tmp_path}/catalog.db").begin() as connection:
        connection.execute(text(V0))
    catalog = opened(tmp_path)
    catalog.create_namespace("db")
    assert not catalog.view_exists("db.v")
    assert catalog.list_views("db") == []
    with pytest.raises(NotSupportedByCatalog, match="ALTER TABLE iceberg_tables ADD COLUMN iceberg_type"):
        catalog.create_view("db.v", SCHEMA, SQL)
    assert not (tmp_path / "warehouse").exists()


def test_a_catalog_without_views_says_so(tmp_path: Path) -> None:
    catalog = load_catalog("test", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("db")
    assert not catalog.view_exists("db.v")
    with pytest.raises(NotSupportedByCatalog, match="keeps no views"):
        catalog.create_view("db.v", SCHEMA, SQL)


def test_several_tables_change_together_or_not_at_all(catalog: Catalog, tmp_path: Path) -> None:
    for name in ("db.a", "db.b"):
        catalog.create_table(name, SCHEMA)
    steps = updates_from_json([{"action": "set-properties", "updates": {"by": "both"}}])
    catalog.commit_tables([("db.a", steps, ()), ("db.b", steps, ())])
    assert [catalog.load_table(name).properties["by"] for name in ("db.a", "db.b")] == ["both", "both"]
    other = requirements_from_json([{"type": "assert-table-uuid", "uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1"}])
    changed = updates_from_json([{"action": "set-properties", "updates": {"by": "one"}}])
    with pytest.raises(Exception, match="uuid"):
        catalog.commit_tables([("db.a", changed, ()), ("db.b", changed, other)])
    assert [catalog.load_table(name).properties["by"] for name in ("db.a", "db.b")] == ["both", "both"]
    with pytest.raises(InvalidArgument):
        catalog.commit_tables([("db.a", changed, ()), ("db.a", changed, ())])


def test_of_changes_of_several_tables_at_the_same_time_none_is_lost(catalog: Catalog, tmp_path: Path) -> None:
    for name in ("db.a", "db.b"):
        catalog.create_table(name, SCHEMA)

    def change(number: int) -> None:
        mine = opened(tmp_path)
        names = ("db.a", "db.b") if number % 2 else ("db.b", "db.a")
        steps = updates_from_json([{"action": "set-properties", "updates": {f"by{number}": "x"}}])
        mine.commit_tables([(name, steps, ()) for name in names])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(change, range(4)))
    for name in ("db.a", "db.b"):
        assert sum(key.startswith("by") for key in catalog.load_table(name).properties) == 4
