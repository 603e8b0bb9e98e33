"""Data frames of other libraries: tables accept rows from Polars, pandas and DuckDB, and scans return rows to them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from icefield import Table
from icefield.errors import InvalidArgument
from tables import memory_catalog

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("kind", pa.string()),
        ("size", pa.string()),
        ("at", pa.timestamp("us")),
        ("zoned", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("price", pa.decimal128(9, 2)),
        ("raw", pa.binary()),
        ("tags", pa.list_(pa.string())),
        ("place", pa.struct([("city", pa.string())])),
    ]
)
INSTANT = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)
ROWS: list[dict[str, Any]] = [
    {
        "id": 1,
        "name": "a name that is too long for a view to hold",
        "kind": "a",
        "size": "small",
        "at": INSTANT,
        "zoned": INSTANT.replace(tzinfo=dt.UTC),
        "day": dt.date(1969, 12, 31),
        "price": Decimal("-0.05"),
        "raw": b"\xff",
        "tags": ["x", None],
        "place": {"city": "Ulm"},
    },
    dict.fromkeys(SCHEMA.names),
    {**dict.fromkeys(SCHEMA.names), "id": 3, "kind": "b", "size": "large", "tags": [], "place": {"city": None}},
]


@pytest.fixture(params=["parquet", "orc", "avro"])
def table(request: pytest.FixtureRequest) -> Table:
    catalog = memory_catalog()
    return catalog.create_table(
        "db.t", SCHEMA, partition_spec=["kind"], properties={"write.format.default": request.param}
    )


def frame() -> pl.DataFrame:
    columns = {name: [row[name] for row in ROWS] for name in SCHEMA.names}
    kinds = {"price": pl.Decimal(9, 2), "kind": pl.Categorical, "size": pl.Enum(["small", "large"])}
    return pl.DataFrame(columns, schema_overrides={"zoned": pl.Datetime("us", "UTC"), **kinds})


def by_id(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["id"] or 0)


def test_a_frame_of_polars_is_written_and_read_with_its_categories(table: Table) -> None:
    table.append(frame())
    assert by_id(table.scan().to_arrow().to_pylist()) == by_id(ROWS)
    read = table.scan("kind = 'a'").to_polars()
    assert read.rows(named=True) == ROWS[:1]
    assert pl.DataFrame(table.scan(selected_fields=("id", "tags"))).columns == ["id", "tags"]


def test_a_key_may_be_a_category_of_polars(table: Table) -> None:
    table.append(frame())
    changed = table.upsert(frame().filter(pl.col("kind") == "b").with_columns(id=pl.lit(7)), "kind")
    assert (changed.rows_updated, changed.rows_inserted) == (1, 0)
    assert sorted(table.scan("id is not null").to_arrow()["id"].to_pylist()) == [1, 7]


def test_duckdb_reads_a_scan_as_a_table_and_as_a_stream(table: Table) -> None:
    table.append(frame())
    connection = table.scan(selected_fields=("id", "kind")).to_duckdb("t")
    assert connection.sql("SELECT kind FROM t WHERE id = 3").fetchall() == [("b",)]
    with duckdb.connect() as mine:
        assert table.scan("id = 1").to_duckdb("u", mine) is mine
        assert mine.sql("SELECT count(*) FROM u").fetchall() == [(1,)]
        scan = table.scan("id is not null")
        assert mine.sql("SELECT sum(id) FROM scan").fetchall() == [(4,)]
        assert scan.count() == 2


def test_rows_of_a_scan_are_appended_as_a_stream(table: Table) -> None:
    table.append(frame())
    table.append(table.scan("id = 1"))
    assert table.scan("id = 1").count() == 2


def test_one_column_is_not_taken_for_rows(table: Table) -> None:
    for column in (pl.Series("id", [1]), pa.chunked_array([[1]])):
        with pytest.raises(InvalidArgument, match=f"rows are columns with names.* {type(column).__name__} holds none"):
            table.append(column)  # type: ignore[arg-type]
    assert table.current_snapshot() is None
