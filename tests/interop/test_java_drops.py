"""Tables that one of Java and Icefield drops while the other uses them, on a file system that both write to."""

from __future__ import annotations

from pathlib import Path

import icefield
import pyarrow as pa
import pytest
from icefield.catalog import Catalog
from icefield.errors import IcefieldError, NoSuchTable
from icefield.schema import Schema, schema_to_json
from icefield.types import LongType, NestedField
from servers.java_iceberg import JavaError, JavaIceberg

SCHEMA = Schema(NestedField(1, "id", LongType()))


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    found = icefield.load_catalog("wh", type="directory", warehouse=str(tmp_path / "wh"))
    found.create_namespace("db")
    return found


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids(catalog: Catalog) -> list[int]:
    return sorted(catalog.load_table("db.t").scan().to_arrow()["id"].to_pylist())


@pytest.mark.spec("FS-09", "VER-13")
def test_java_stops_at_a_table_that_was_dropped_and_says_so(catalog: Catalog, java_iceberg: JavaIceberg) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    table.append(rows(1))
    java_iceberg.append(table.location(), "parquet", [{"id": 2}])
    assert ids(catalog) == [1, 2]
    catalog.drop_table("db.t")
    for attempt in (
        lambda: java_iceberg.append(table.location(), "parquet", [{"id": 3}]),
        lambda: java_iceberg.create(table.location(), schema_to_json(SCHEMA)),
    ):
        with pytest.raises(JavaError, match="this table was dropped"):
            attempt()
    assert not catalog.table_exists("db.t")


@pytest.mark.spec("FS-09", "VER-13")
def test_java_goes_on_with_the_table_that_was_created_after_a_drop(catalog: Catalog, java_iceberg: JavaIceberg) -> None:
    java_iceberg.create(str(catalog.properties["warehouse"]) + "/db/t", schema_to_json(SCHEMA))
    java_iceberg.append(str(catalog.properties["warehouse"]) + "/db/t", "parquet", [{"id": 1}])
    old = catalog.load_table("db.t")
    catalog.drop_table("db.t")
    new = catalog.create_table("db.t", SCHEMA)
    java_iceberg.append(new.location(), "parquet", [{"id": 2}])
    new.refresh().append(rows(3))
    assert ids(catalog) == [2, 3]
    with pytest.raises(IcefieldError):
        old.append(rows(4))
    assert ids(catalog) == [2, 3]


@pytest.mark.spec("FS-03", "VER-13")
def test_a_purged_place_is_free_for_java(catalog: Catalog, java_iceberg: JavaIceberg) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    table.append(rows(1))
    catalog.purge_table("db.t")
    with pytest.raises(NoSuchTable):
        catalog.load_table("db.t")
    java_iceberg.create(table.location(), schema_to_json(SCHEMA))
    java_iceberg.append(table.location(), "parquet", [{"id": 5}])
    assert ids(catalog) == [5]
    with pytest.raises(IcefieldError, match="is not the table that was loaded"):
        table.refresh()
