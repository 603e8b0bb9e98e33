"""How many statements the database is asked for each step, SELECTs and changes alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield_sql.sqlite import SqliteConnection

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[icefield.Catalog]:
    made = icefield.load_catalog(
        "counted", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse"
    )
    made.create_namespace("db", {"owner": "me"})
    for name in ("one", "two"):
        made.create_table(f"db.{name}", SCHEMA)
    with made:
        yield made


def statements(catalog: icefield.Catalog, work: Callable[[], Any]) -> list[str]:
    """The statements that a step takes."""
    seen: list[str] = []

    def noted(method: Callable[..., Any]) -> Callable[..., Any]:
        def run(connection: SqliteConnection, statement: str, *values: Any) -> Any:
            seen.append(statement)
            return method(connection, statement, *values)

        return run

    with pytest.MonkeyPatch.context() as patch:
        for name in ("execute", "stream"):
            patch.setattr(SqliteConnection, name, noted(getattr(SqliteConnection, name)))
        work()
    return seen


def test_the_pointer_is_asked_for_once_a_load(catalog: icefield.Catalog) -> None:
    assert len(statements(catalog, lambda: catalog.load_table("db.one"))) == 1
    assert len(statements(catalog, lambda: catalog.table_exists("db.one"))) == 1
    assert len(statements(catalog, catalog.load_table("db.one").refresh)) == 1


@pytest.mark.parametrize("namespace", ["db", "nowhere"])
def test_whether_a_namespace_is_there_is_one_statement(catalog: icefield.Catalog, namespace: str) -> None:
    found = statements(catalog, lambda: catalog.namespace_exists(namespace))
    assert len(found) == 1
    assert catalog.namespace_exists(namespace) is (namespace == "db")


def test_a_namespace_is_listed_loaded_and_dropped_in_few_statements(catalog: icefield.Catalog) -> None:
    assert len(statements(catalog, lambda: catalog.load_namespace_properties("db"))) == 1
    assert len(statements(catalog, lambda: catalog.list_tables("db"))) == 1
    assert len(statements(catalog, lambda: catalog.list_namespaces("db"))) == 1
    assert len(statements(catalog, lambda: catalog.create_namespace("other"))) == 2
    assert len(statements(catalog, lambda: catalog.drop_namespace("other"))) == 3


def test_names_are_compared_exactly(catalog: icefield.Catalog) -> None:
    catalog.create_namespace("a_b.c")
    assert catalog.namespace_exists("a_b")
    for other in ("A_b", "axb", "a_", "a_b.C"):
        assert not catalog.namespace_exists(other)
    with pytest.raises(icefield.errors.NamespaceNotEmpty):
        catalog.drop_namespace("db")
    assert catalog.list_namespaces("a_b") == [("a_b", "c")]


def test_an_append_asks_for_the_pointer_once_and_swaps_it(catalog: icefield.Catalog) -> None:
    table = catalog.load_table("db.one")
    rows = pa.table({"id": [1]}, schema=SCHEMA)
    assert [one.split()[0] for one in statements(catalog, lambda: table.append(rows))] == ["SELECT", "UPDATE"]
