"""Views stand in the tables of a JDBC catalog beside tables, and share their names: neither is taken for the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from icefield import Catalog, load_catalog
from icefield.errors import NamespaceNotEmpty, NoSuchTable, StorageError, TableExists
from servers.postgres import new_database
from sqlalchemy import Engine, create_engine, text

SCHEMA = pa.schema([("id", pa.int64())])
ROWS = pa.table({"id": [1, 2]})
# As Java's JDBC catalog creates them: without a type at first (V0), with one where views are asked for (V1).
V0 = (
    "CREATE TABLE iceberg_tables(catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, "
    "table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), "
    "PRIMARY KEY (catalog_name, table_namespace, table_name))"
)
PROPERTIES = (
    "CREATE TABLE iceberg_namespace_properties(catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL, "
    "property_key VARCHAR(255), property_value VARCHAR(1000), PRIMARY KEY (catalog_name, namespace, property_key))"
)
UPGRADE = "ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)"
VIEW = (
    "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, "
    "previous_metadata_location, iceberg_type) VALUES ('test', 'db', 'v', 'file:///nowhere/v.json', null, 'VIEW')"
)


def made_by_java(engine: Engine) -> None:
    """The tables of V0, upgraded to V1."""
    with engine.begin() as connection:
        for statement in (V0, PROPERTIES, UPGRADE):
            connection.execute(text(statement))


def made_by_pyiceberg(engine: Engine) -> None:
    catalogs = pytest.importorskip("pyiceberg.catalog.sql")
    uri = engine.url.render_as_string(hide_password=False)
    catalogs.SqlCatalog("test", uri=uri, warehouse="file:///nowhere").close()


def made_here(engine: Engine) -> None:
    """Nothing: the catalog creates them."""


@pytest.fixture(params=["sqlite", "postgres"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    sqlite = request.param == "sqlite"
    uri = f"sqlite:///{tmp_path}/catalog.db" if sqlite else new_database(request.getfixturevalue("postgres"))
    made = create_engine(uri)
    yield made
    made.dispose()


def opened(engine: Engine, folder: Path, **more: str) -> Catalog:
    uri = engine.url.render_as_string(hide_password=False)
    return load_catalog("test", type="sql", uri=uri, warehouse=f"file://{folder}/warehouse", **more)


@pytest.fixture(params=[made_by_java, made_by_pyiceberg, made_here], ids=lambda made: made.__name__)
def catalog(request: pytest.FixtureRequest, engine: Engine, tmp_path: Path) -> Iterator[Catalog]:
    """A catalog with the namespace ``db`` and in it the view ``v`` of another engine."""
    request.param(engine)
    with opened(engine, tmp_path) as made:
        made.create_namespace("db")
        with engine.begin() as connection:
            connection.execute(text(VIEW))
        yield made


def stored(engine: Engine) -> list[tuple[Any, ...]]:
    """The rows of views."""
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text("SELECT * FROM iceberg_tables WHERE table_name = 'v'"))]


@pytest.mark.parametrize(
    ("action", "error"),
    [
        (lambda catalog: catalog.load_table("db.v"), NoSuchTable),
        (lambda catalog: catalog.drop_table("db.v"), NoSuchTable),
        (lambda catalog: catalog.drop_table("db.v", purge=True), NoSuchTable),
        (lambda catalog: catalog.rename_table("db.v", "db.w"), NoSuchTable),
        (lambda catalog: catalog.create_table("db.v", SCHEMA), TableExists),
        (lambda catalog: catalog.rename_table("db.t", "db.v"), TableExists),
        (lambda catalog: catalog.register_table("db.v", catalog.load_table("db.t").metadata_location), TableExists),
        (lambda catalog: catalog.drop_namespace("db"), NamespaceNotEmpty),
    ],
)
def test_a_view_is_no_table_and_stays_as_it_is(
    catalog: Catalog, engine: Engine, action: Callable[[Catalog], Any], error: type[Exception]
) -> None:
    before = stored(engine)
    assert len(before) == 1
    catalog.create_table("db.t", SCHEMA).append(ROWS)
    if error is NamespaceNotEmpty:
        catalog.drop_table("db.t")
    with pytest.raises(error) as raised:
        action(catalog)
    if error is TableExists:
        assert "view" in str(raised.value)
    assert stored(engine) == before
    assert not catalog.table_exists("db.v")
    if error is not NamespaceNotEmpty:
        assert catalog.list_tables("db") == [("db", "t")]
        assert catalog.load_table("db.t").scan().count() == 2


def test_an_error_about_a_view_says_that_it_is_one(catalog: Catalog) -> None:
    for action in (lambda: catalog.drop_table("db.v"), lambda: catalog.rename_table("db.v", "db.w")):
        with pytest.raises(NoSuchTable, match=r"no table db\.v in catalog 'test'; a view has that name"):
            action()


def test_no_file_is_left_of_a_table_that_a_view_kept_from_being_created(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(TableExists):
        catalog.create_table("db.v", SCHEMA)
    assert [path for path in (tmp_path / "warehouse").rglob("*") if path.is_file()] == []


def test_a_row_without_a_type_is_a_table(engine: Engine, tmp_path: Path) -> None:
    made_by_java(engine)
    with opened(engine, tmp_path) as catalog:
        catalog.create_namespace("db")
        catalog.create_table("db.t", SCHEMA).append(ROWS)
        with engine.begin() as connection:
            connection.execute(text("UPDATE iceberg_tables SET iceberg_type = NULL"))
        table = catalog.load_table("db.t")
        table.append(ROWS)
        assert catalog.rename_table("db.t", "db.u").scan().count() == 4
        catalog.drop_table("db.u")
        assert catalog.list_tables("db") == []


@pytest.mark.parametrize("init", ["true", "false"])
def test_a_catalog_of_the_first_version_is_used_as_it_is(engine: Engine, tmp_path: Path, init: str) -> None:
    with engine.begin() as connection:
        for statement in (V0, PROPERTIES):
            connection.execute(text(statement))
    with opened(engine, tmp_path, init_catalog_tables=init) as catalog:
        catalog.create_namespace("db")
        table = catalog.create_table("db.t", SCHEMA)
        table.append(ROWS)
        assert catalog.list_tables("db") == [("db", "t")]
        catalog.register_table("db.again", table.metadata_location)
        assert catalog.rename_table("db.t", "db.u").scan().count() == 2
        with pytest.raises(TableExists):
            catalog.create_table("db.u", SCHEMA)
        catalog.drop_table("db.u")
        catalog.drop_table("db.again")
        catalog.drop_namespace("db")
    with engine.connect() as connection:
        columns = connection.execute(text("SELECT * FROM iceberg_tables")).keys()
    assert "iceberg_type" not in columns


def test_a_view_that_comes_with_an_upgrade_of_an_open_catalog_is_no_table(engine: Engine, tmp_path: Path) -> None:
    with engine.begin() as connection:
        for statement in (V0, PROPERTIES):
            connection.execute(text(statement))
    with opened(engine, tmp_path) as catalog:
        catalog.create_namespace("db")
        catalog.create_table("db.t", SCHEMA)
        with engine.begin() as connection:
            for statement in (UPGRADE, VIEW):
                connection.execute(text(statement))
        assert catalog.list_tables("db") == [("db", "t")]
        with pytest.raises(NoSuchTable):
            catalog.drop_table("db.v")
        assert len(stored(engine)) == 1


def test_a_database_without_the_tables_says_so_where_they_may_not_be_created(engine: Engine, tmp_path: Path) -> None:
    with (
        opened(engine, tmp_path, init_catalog_tables="false") as catalog,
        pytest.raises(StorageError, match=r"has no table iceberg_tables.*init_catalog_tables"),
    ):
        catalog.list_namespaces()


def test_pyiceberg_goes_on_with_a_catalog_of_the_first_version_that_is_used_here(
    engine: Engine, tmp_path: Path
) -> None:
    catalogs = pytest.importorskip("pyiceberg.catalog.sql")
    with engine.begin() as connection:
        for statement in (V0, PROPERTIES):
            connection.execute(text(statement))
    uri = engine.url.render_as_string(hide_password=False)
    with opened(engine, tmp_path, init_catalog_tables="false") as catalog:
        catalog.create_namespace("db")
        catalog.create_table("db.t", SCHEMA).append(ROWS)
        theirs = catalogs.SqlCatalog("test", uri=uri, warehouse=f"file://{tmp_path}/warehouse")
        theirs.load_table("db.t").append(ROWS.cast(theirs.load_table("db.t").schema().as_arrow()))
        theirs.close()
        assert catalog.load_table("db.t").scan().count() == 4
