"""Iceberg's own Java library and Icefield share tables on HDFS, as Hadoop tables are."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from icefield import Catalog, Table, load_catalog
from icefield.schema import as_schema, schema_to_json
from icefield_hdfs.hadoop_file_system import path_of
from servers.hdfs import Hdfs, read_around
from servers.java_iceberg import JavaIceberg

pytestmark = pytest.mark.spec("COMMIT-01", "FS-09", "FS-13", "META-33")

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
PATIENT = {"commit.retry.num-retries": "200", "commit.retry.min-wait-ms": "10", "commit.retry.max-wait-ms": "500"}


def row(number: int) -> dict[str, Any]:
    return {"id": number, "name": f"row {number}"}


def rows(*numbers: int) -> pa.Table:
    return pa.Table.from_pylist([row(number) for number in numbers], schema=SCHEMA)


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().column("id").to_pylist())


@pytest.fixture
def catalog(hdfs: Hdfs) -> Catalog:
    made = load_catalog("test", type="directory", warehouse=f"{hdfs.url}/{uuid4().hex}", commit="rename")
    made.create_namespace("db")
    return made


def test_java_appends_to_a_table_of_icefield(catalog: Catalog, java_iceberg: JavaIceberg, hdfs: Hdfs) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    table.append(rows(1, 2))
    java_iceberg.append(table.location(), "parquet", [row(3)])
    table = catalog.load_table("db.t")
    assert ids(table) == [1, 2, 3]
    table.append(rows(4))
    assert sorted(found["id"] for found in java_iceberg.read(table.metadata_location)) == [1, 2, 3, 4]
    assert table.metadata_location.endswith("/metadata/v4.metadata.json")
    assert read_around(hdfs, path_of(f"{table.location()}/metadata/version-hint.text")) == b"4"


def test_icefield_appends_to_a_table_of_java(catalog: Catalog, java_iceberg: JavaIceberg) -> None:
    location = f"{catalog.properties['warehouse']}/db/java"
    java_iceberg.create(location, schema_to_json(as_schema(SCHEMA)))
    java_iceberg.append(location, "parquet", [row(1)])
    table = catalog.load_table("db.java")
    assert ids(table) == [1]
    table.append(rows(2, 3))
    java_iceberg.append(location, "avro", [row(4)])
    assert ids(catalog.load_table("db.java")) == [1, 2, 3, 4]


def test_no_append_of_either_is_lost_when_both_write(catalog: Catalog, java_iceberg: JavaIceberg) -> None:
    table = catalog.create_table("db.t", SCHEMA, properties=PATIENT)

    def of_java() -> None:
        for number in range(10):
            java_iceberg.append(table.location(), "parquet", [row(number)])

    def of_icefield(first: int) -> None:
        mine = catalog.load_table("db.t")
        for number in range(first, first + 10):
            mine.append(rows(number))

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(of_java), pool.submit(of_icefield, 10), pool.submit(of_icefield, 20)]:
            done.result()
    table = catalog.load_table("db.t")
    assert ids(table) == list(range(30))
    assert [snapshot.sequence_number for snapshot in table.snapshots()] == list(range(1, 31))
