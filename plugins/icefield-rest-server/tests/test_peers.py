"""Other implementations use the server: PyIceberg reads and writes, DuckDB and Icefield itself read past it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from icefield import Catalog, load_catalog
from icefield_rest_server import app
from rest_served import served

ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})


def opened(folder: Path) -> Catalog:
    return load_catalog(
        "served", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse"
    )


@pytest.fixture
def uri(tmp_path: Path) -> Iterator[str]:
    """A running server over SQLite."""
    catalog = opened(tmp_path)
    catalog.create_namespace("db")
    with served(app(catalog)) as uri:
        yield uri


@pytest.fixture
def theirs(uri: str) -> Any:
    """PyIceberg's client."""
    catalogs = pytest.importorskip("pyiceberg.catalog")
    return catalogs.load_catalog("served", type="rest", uri=uri)


@pytest.mark.peer
@pytest.mark.slow
def test_pyiceberg_writes_through_the_server_and_icefield_past_it(theirs: Any, tmp_path: Path) -> None:
    table = theirs.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    ours = opened(tmp_path)
    ours.load_table("db.t").append(ROWS)
    table.refresh()
    table.append(ROWS)
    assert table.scan().to_arrow().num_rows == 6
    assert ours.load_table("db.t").scan().count() == 6
    with table.update_schema() as update:
        update.add_column("name", pyiceberg_string())
    with table.transaction() as transaction:
        transaction.set_properties(a="b")
    assert ours.load_table("db.t").schema().find_field("name") is not None
    with theirs.create_table_transaction("db.u", ROWS.schema) as creation:
        creation.append(ROWS)
    assert ours.load_table("db.u").scan().count() == 2
    theirs.rename_table("db.u", "db.w")
    assert sorted(theirs.list_tables("db")) == [("db", "t"), ("db", "w")]
    theirs.drop_table("db.w")
    assert theirs.list_views("db") == []


def pyiceberg_string() -> Any:
    from pyiceberg.types import StringType

    return StringType()


@pytest.mark.slow
def test_of_writers_through_the_server_and_past_it_none_is_lost(theirs: Any, tmp_path: Path) -> None:
    steps = {f"k{number}": "v" for number in range(12)}
    theirs.create_table("db.t", ROWS.schema, properties={"commit.retry.num-retries": "50"})

    def change(number: int) -> None:
        key = f"k{number}"
        if number % 2:
            with opened(tmp_path).load_table("db.t").transaction() as transaction:
                transaction.set_properties({key: steps[key]})
        else:
            with theirs.load_table("db.t").transaction() as transaction:
                transaction.set_properties(**{key: steps[key]})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(change, range(12)))
    table = opened(tmp_path).load_table("db.t")
    assert {key: value for key, value in table.properties.items() if key in steps} == steps
    locations = [entry.metadata_file for entry in table.metadata.metadata_log]
    assert len({*locations, table.metadata_location}) == 13


@pytest.mark.peer
@pytest.mark.slow
def test_pyiceberg_reads_by_a_plan_of_the_server(uri: str, tmp_path: Path) -> None:
    catalogs = pytest.importorskip("pyiceberg.catalog")
    properties = {"format-version": "2", "write.delete.mode": "merge-on-read"}
    ours = opened(tmp_path).create_table("db.t", ROWS.schema, properties=properties)
    for first in range(0, 40, 10):
        ours.append(pa.table({"id": pa.array(range(first, first + 10), pa.int64())}))
    ours.delete("id in (3, 25)")
    theirs = catalogs.load_catalog("served", type="rest", uri=uri, **{"scan-planning-mode": "server"})
    assert theirs.supports_server_side_planning()
    scan = theirs.load_table("db.t").scan(row_filter="id > 15 and id != 30")
    assert len(list(scan.plan_files())) == 3
    assert sorted(scan.to_arrow()["id"].to_pylist()) == [*range(16, 25), *range(26, 30), *range(31, 40)]
