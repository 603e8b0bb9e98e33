"""Scans as frames: queries of Polars and DuckDB over a scan, next to the same library's own reader of the table.

The peer of Polars is ``polars.scan_iceberg``. The peer of DuckDB is its Parquet reader over the table's data files, as
its reader of Iceberg tables is an extension that is downloaded, and DuckDB over a data set of pyarrow, which has the
same road through Arrow. CPU time is of all threads of the process.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import icefield
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from harness import compare, main

ROWS, FILES = 4_000_000, 16
FLOOR = 1 / 1.2


def filled(folder: str) -> icefield.Table:
    """A table of 16 files, each with a range of ids of its own."""
    catalog = icefield.load_catalog("bench", type="directory", warehouse=f"file://{folder}")
    catalog.create_namespace("db")
    rng = np.random.default_rng(7)
    count = ROWS // FILES

    def rows(place: int) -> pa.Table:
        ids = np.arange(place * count, (place + 1) * count)
        names = pa.array([f"name-{number}" for number in range(1000)]).take(pa.array(ids % 1000))
        values = rng.random((4, count))
        return pa.table({"id": ids, "name": names, **{f"v{n}": value for n, value in enumerate(values)}})

    table = catalog.create_table("db.t", rows(0).schema)
    for place in range(FILES):
        table.append(rows(place))
    return table


def run() -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = filled(folder)
        own = Path(folder, "db", "t", "data").glob("*.parquet")
        files = sorted(str(path) for path in own)
        of_polars(table)
        of_duckdb(table, files)
        of_arrow(table, files)


def of_polars(table: icefield.Table) -> None:
    mine, peer = table.scan().lazy(), pl.scan_iceberg(table.metadata_location)
    queries: dict[str, Any] = {
        "polars, every column": lambda frame: frame,
        "polars, one column": lambda frame: frame.select(pl.col("v0").sum()),
        "polars, one file of 16": lambda frame: frame.filter(pl.col("id") == 1_000_000).select("name"),
        "polars, half the rows": lambda frame: frame.filter(pl.col("v0") > 0.5).select("id", "v1"),
        "polars, group by": lambda frame: frame.group_by("name").agg(pl.col("v1").mean()),
        "polars, first rows": lambda frame: frame.head(10),
    }
    for name, query in queries.items():
        timed(name, lambda q=query: q(mine).collect(), lambda q=query: q(peer).collect())


def of_duckdb(table: icefield.Table, files: list[str]) -> None:
    connection = table.scan().to_duckdb("t")
    connection.sql(f"CREATE VIEW own AS SELECT * FROM read_parquet({files!r})")
    queries = {
        "duckdb, one column": "SELECT sum(v0) FROM {}",
        "duckdb, one file of 16": "SELECT name FROM {} WHERE id = 1000000",
        "duckdb, half the rows": "SELECT sum(id), sum(v1) FROM {} WHERE v0 > 0.5",
        "duckdb, group by": "SELECT name, avg(v1) FROM {} GROUP BY name",
    }
    connection.register("arrow", ds.dataset(files))
    for name, query in queries.items():
        for peer in ("own", "arrow"):
            timed(
                f"{name}, peer: {peer}",
                lambda q=query: connection.sql(q.format("t")).fetchall(),
                lambda q=query, p=peer: connection.sql(q.format(p)).fetchall(),
            )


def of_arrow(table: icefield.Table, files: list[str]) -> None:
    mine, theirs = table.scan().to_dataset(), ds.dataset(files)
    for name, asked in {"one file of 16": pc.field("id") == 1_000_000, "half the rows": pc.field("v0") > 0.5}.items():
        timed(
            f"data set, {name}",
            lambda a=asked: mine.to_table(columns=["id", "v1"], filter=a),
            lambda a=asked: theirs.to_table(columns=["id", "v1"], filter=a),
        )


def timed(name: str, ours: Any, theirs: Any) -> None:
    compare(name, ours, theirs, floor=FLOOR, rows=ROWS, clock=time.process_time)


if __name__ == "__main__":
    main(run)
