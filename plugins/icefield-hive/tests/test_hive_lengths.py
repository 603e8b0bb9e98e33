"""What a metastore holds of tables and namespaces may be far too long: one typed error that names which."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from icefield import Catalog, FileIO, Plugins
from icefield.errors import InvalidMetadata
from icefield_hive.backend import HiveBackend
from icefield_hive.client import Metastore
from icefield_hive.messages import GET_ALL_DATABASES, GET_ALL_TABLES, GET_DATABASE, GET_TABLE

WAYS: list[Callable[[Catalog], object]] = [
    lambda catalog: catalog.load_table("db.t"),
    lambda catalog: catalog.table_exists("db.t"),
]


def huge() -> str:
    """Made for each test: as a constant it would take room in every process that looks for tests."""
    return "s3://b/" + "x" * (64 << 20)


@pytest.fixture
def parameters() -> dict[str, str]:
    return {}


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parameters: dict[str, str]) -> Catalog:
    """A catalog whose metastore answers with these parameters, of a database and of a table."""
    held = {"table_type": "ICEBERG", "metadata_location": huge()}
    answers: dict[str, Any] = {
        GET_DATABASE.name: {"name": "db", "locationUri": "file:///w/db.db", "parameters": parameters},
        GET_TABLE.name: {"table": {"dbName": "db", "tableName": "t", "parameters": held}},
    }
    monkeypatch.setattr(Metastore, "call", lambda _, method, *values: answers[method.name])
    given = {"uri": "thrift://127.0.0.1:1", "warehouse": f"file://{tmp_path}"}
    io = FileIO(Plugins.installed(), given)
    return Catalog(HiveBackend("test", given, io))


@pytest.mark.parametrize("way", WAYS)
def test_a_pointer_that_is_too_long_is_an_error_that_names_the_table(
    catalog: Catalog, way: Callable[[Catalog], object]
) -> None:
    with pytest.raises(InvalidMetadata, match=r"table db\.t has more than 32,768 characters") as raised:
        way(catalog)
    assert raised.value.data["table"] == ("db", "t")
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize("given", [lambda: {"color": huge()}, lambda: {huge(): "blue"}])
def test_a_namespace_with_a_huge_property_is_an_error_that_names_it(
    catalog: Catalog, parameters: dict[str, str], given: Callable[[], dict[str, str]]
) -> None:
    parameters |= given()
    with pytest.raises(InvalidMetadata, match="namespace db has more than") as raised:
        catalog.load_namespace_properties("db")
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["a"] * 1_000_001, "more names than 1,000,000"),
        (["a" * 60_000] * 2_000, "names of more characters than 67,108,864"),
        (["a" * 65_537], "a name of more characters than 65,536"),
    ],
)
def test_a_listing_without_end_is_an_error_that_says_of_what(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, names: list[str], said: str
) -> None:
    call = Metastore.call

    def listing(metastore: Metastore, method: Any, *values: Any) -> Any:
        listed = {GET_ALL_DATABASES.name, GET_ALL_TABLES.name}
        return names if method.name in listed else call(metastore, method, *values)

    monkeypatch.setattr(Metastore, "call", listing)
    with pytest.raises(InvalidMetadata, match=f"the tables of db in catalog 'test' hold {said}"):
        catalog.list_tables("db")
    with pytest.raises(InvalidMetadata, match=f"the namespaces of catalog 'test' hold {said}"):
        catalog.list_namespaces()
