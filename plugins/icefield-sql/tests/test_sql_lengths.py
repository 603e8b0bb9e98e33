"""What the database holds of tables and namespaces may be far too long: one typed error that names which."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from bounded import bounded
from icefield import Catalog, load_catalog
from icefield.errors import InvalidArgument, InvalidMetadata, LocationWarning
from icefield.toolkit import MAX_LOCATION_LENGTH
from sqlalchemy import create_engine, text

HUGE = 64 << 20

WAYS: list[Callable[[Catalog], object]] = [
    lambda catalog: catalog.load_table("db.t"),
    lambda catalog: catalog.table_exists("db.t"),
    lambda catalog: catalog.drop_table("db.t", purge=True),
]


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with load_catalog("test", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/w") as made:
        made.create_namespace("db", {"color": "blue"})
        made.create_table("db.t", pa.schema([("n", pa.int64())]))
        yield made


def change(folder: Path, statement: str) -> None:
    with create_engine(f"sqlite:///{folder}/c.db").begin() as connection:
        connection.execute(text(statement))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("length", [MAX_LOCATION_LENGTH + 1, HUGE])
def test_a_pointer_that_is_too_long_is_an_error_that_names_the_table(
    catalog: Catalog, tmp_path: Path, way: Callable[[Catalog], object], length: int
) -> None:
    change(tmp_path, f"UPDATE iceberg_tables SET metadata_location = 'file:///' || hex(zeroblob({length // 2 + 1}))")
    with bounded(), pytest.raises(InvalidMetadata, match=r"table db\.t has more than 32,768 characters") as raised:
        way(catalog)
    assert raised.value.data["table"] == ("db", "t")
    assert len(str(raised.value)) < 400


@pytest.mark.slow
@pytest.mark.parametrize("column", ["property_key", "property_value"])
def test_a_namespace_with_a_huge_property_is_an_error_that_names_it(
    catalog: Catalog, tmp_path: Path, column: str
) -> None:
    change(
        tmp_path,
        f"UPDATE iceberg_namespace_properties SET {column} = hex(zeroblob({HUGE // 2})) WHERE property_key = 'color'",
    )
    for way in (
        lambda: catalog.load_namespace_properties("db"),
        lambda: catalog.create_table("db.new", pa.schema([("n", pa.int64())])),
    ):
        with pytest.raises(InvalidMetadata, match="namespace db has more than") as raised:
            way()
        assert len(str(raised.value)) < 400


def test_a_table_whose_pointer_is_too_long_can_be_dropped(catalog: Catalog, tmp_path: Path) -> None:
    change(tmp_path, f"UPDATE iceberg_tables SET metadata_location = hex(zeroblob({MAX_LOCATION_LENGTH}))")
    catalog.drop_table("db.t")
    assert catalog.list_tables("db") == []


NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) "
MANY_TABLES = "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name) "
MANY_NAMESPACES = "INSERT INTO iceberg_namespace_properties (catalog_name, namespace, property_key) "
SHORT, LONG, HUGE_NAME = "i", f"i || hex(zeroblob({30_000}))", f"i || hex(zeroblob({HUGE // 2}))"


@pytest.mark.parametrize(
    ("count", "name", "said"),
    [
        pytest.param(1_000_001, SHORT, "more names than 1,000,000", marks=pytest.mark.slow),
        pytest.param(3_000, LONG, "names of more characters than 67,108,864", marks=pytest.mark.slow),
        (3, HUGE_NAME, "a name of more characters than 65,536"),
    ],
)
def test_a_listing_without_end_is_an_error_that_says_of_what(
    catalog: Catalog, tmp_path: Path, count: int, name: str, said: str
) -> None:
    numbers = NUMBERS.format(count=count)
    change(tmp_path, f"{MANY_TABLES}{numbers}SELECT 'test', 'db', {name} FROM n")
    with bounded(20, 500), pytest.raises(InvalidMetadata, match=rf"the tables of db in catalog 'test' hold {said}"):
        catalog.list_tables("db")
    change(tmp_path, f"{MANY_NAMESPACES}{numbers}SELECT 'test', {name}, 'exists' FROM n")
    with bounded(20, 500), pytest.raises(InvalidMetadata, match=rf"the namespaces of catalog 'test' hold {said}"):
        catalog.list_namespaces()
    assert catalog.load_table("db.t").name() == ("db", "t")


def test_a_twin_behind_many_tables_in_folders_of_the_same_name_is_found(catalog: Catalog, tmp_path: Path) -> None:
    table = catalog.load_table("db.t")
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)"
    change(
        tmp_path,
        "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type) "
        f"{many} SELECT 'test', 'db' || i, 't', 'file:///elsewhere/db' || i || '/t/metadata/v.json', 'TABLE' FROM n",
    )
    catalog.create_namespace("zz")
    with pytest.warns(LocationWarning, match="registered twice"):
        catalog.register_table("zz.copy", table.metadata_location)
    with pytest.raises(InvalidArgument, match="registered under both names"):
        catalog.drop_table("db.t", purge=True)
