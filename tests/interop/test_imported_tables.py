"""Tables that were made of files of others, as PyIceberg and DuckDB read them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from engines import DuckDBEngine
from icefield import Catalog, Table
from icefield_import import import_delta, import_folder
from peers import duckdb_rows, pyiceberg_catalog, sorted_rows

pytest.importorskip("pyiceberg")

DATA = pa.table(
    {
        "id": [1, 2, 3, 4],
        "kind": ["a b", "x/y", None, "é=1"],
        "day": pa.array([dt.date(2024, 1, 1), dt.date(2024, 1, 2), None, None], pa.date32()),
    }
)


def judge(table: Table, folder: Path, duck: DuckDBEngine) -> None:
    expected = sorted_rows(DATA, table.schema())
    assert sorted_rows(table.scan().to_arrow(), table.schema()) == expected
    with pyiceberg_catalog(folder) as catalog:
        theirs = catalog.load_table(table.name())
        assert sorted_rows(theirs.scan().to_arrow(), table.schema()) == expected
        assert theirs.scan("kind = 'x/y'").to_arrow().num_rows == 1
    assert sorted_rows(duckdb_rows(duck, table), table.schema()) == expected
    assert duckdb_rows(duck, table, ["id"]).num_rows == 4


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_peers_read_an_imported_folder(catalog: Catalog, duck: DuckDBEngine, tmp_path: Path, file_format: str) -> None:
    layout = ds.partitioning(pa.schema([("kind", pa.string()), ("day", pa.date32())]), flavor="hive")
    ds.write_dataset(DATA, tmp_path / "data", format=file_format, partitioning=layout)
    made = import_folder(catalog, "db.t", f"file://{tmp_path}/data")
    assert made.table is not None
    judge(made.table, tmp_path, duck)


def test_peers_read_an_imported_delta_table(catalog: Catalog, duck: DuckDBEngine, tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(f"{tmp_path}/delta", DATA.slice(0, 3), partition_by=["kind", "day"])
    deltalake.write_deltalake(f"{tmp_path}/delta", DATA.slice(3), mode="append")
    made = import_delta(catalog, "db.t", f"file://{tmp_path}/delta")
    assert made.table is not None
    judge(made.table, tmp_path, duck)
