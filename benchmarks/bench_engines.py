"""Scans and writes by Daft, Dask and Ray, next to the same engine's own reader of the table.

The peers are ``daft.read_iceberg``, ``ray.data.read_iceberg`` and, as Dask has none, ``dask.dataframe.read_parquet``
over the table's files. CPU time is of this process and all processes that it started. ``make engines BENCH=1`` runs it,
in the environment with these engines; elsewhere it does nothing.
"""

from __future__ import annotations

import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import icefield
import numpy as np
import pyarrow as pa
from harness import compare, main

ROWS, FILES = 2_000_000, 8
FLOOR = 1 / 1.2


def filled(folder: str) -> icefield.Table:
    """A table of 8 files, each with a range of ids of its own."""
    catalog = icefield.load_catalog("bench", type="directory", warehouse=f"file://{folder}")
    catalog.create_namespace("db")
    rng = np.random.default_rng(7)
    count = ROWS // FILES

    def rows(place: int) -> pa.Table:
        ids = np.arange(place * count, (place + 1) * count)
        names = pa.array([f"name-{number}" for number in range(1000)]).take(pa.array(ids % 1000))
        return pa.table({"id": ids, "name": names, **{f"v{n}": rng.random(count) for n in range(4)}})

    table = catalog.create_table("db.t", rows(0).schema)
    for place in range(FILES):
        table.append(rows(place))
    return table


def cpu_seconds() -> float:
    """The CPU time of this process and of all processes below it."""
    import psutil

    own = psutil.Process()
    seconds = 0.0
    for process in (own, *own.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        seconds += times.user + times.system
    return seconds


def run() -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = filled(folder)
        of_daft(table)
        of_dask(table, sorted(map(str, Path(folder, "db", "t", "data").glob("*.parquet"))))
        of_ray(table, folder)


def timed(name: str, ours: Any, theirs: Any, runs: int = 5) -> None:
    compare(name, ours, theirs, floor=FLOOR, rows=ROWS, clock=cpu_seconds, runs=runs)


def of_daft(table: icefield.Table) -> None:
    import daft
    from daft import col

    queries: dict[str, Any] = {
        "daft, every column": lambda frame: frame,
        "daft, one column": lambda frame: frame.agg(col("v0").sum()),
        "daft, one file of 8": lambda frame: frame.where(col("id") == 1_000_000).select("name"),
        "daft, half the rows": lambda frame: frame.where(col("v0") > 0.5).select("id", "v1"),
    }
    for name, query in queries.items():
        timed(
            name,
            lambda q=query: q(table.scan().to_daft()).collect(),
            lambda q=query: q(daft.read_iceberg(table.metadata_location)).collect(),
        )


def of_dask(table: icefield.Table, files: list[str]) -> None:
    import dask
    import dask.dataframe as dd
    import pandas as pd

    def own() -> Any:
        return dd.read_parquet(files, arrow_to_pandas={"types_mapper": pd.ArrowDtype})

    queries: dict[str, Any] = {
        "dask, one column": lambda frame: frame["v0"].sum(),
        "dask, group by": lambda frame: frame.groupby("name")["v1"].mean(),
    }
    with dask.config.set(scheduler="threads"):
        for name, query in queries.items():
            timed(name, lambda q=query: q(table.scan().to_dask()).compute(), lambda q=query: q(own()).compute())


def of_ray(table: icefield.Table, folder: str) -> None:
    import ray
    from pyiceberg.catalog.sql import SqlCatalog
    from ray.data.expressions import col

    properties = {"type": "sql", "uri": f"sqlite:///{folder}/peer.db", "warehouse": f"file://{folder}/peer"}
    catalog = SqlCatalog("peer", **properties)
    catalog.create_namespace("db")
    catalog.register_table("db.t", table.metadata_location)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False

    def own() -> Any:
        return ray.data.read_iceberg(table_identifier="db.t", catalog_kwargs={"name": "peer", **properties})

    queries: dict[str, Any] = {
        "ray, every column": lambda dataset: dataset.materialize(),
        "ray, half the rows": lambda dataset: (
            dataset.filter(expr=col("v0") > 0.5).select_columns(["id", "v1"]).materialize()
        ),
    }
    for name, query in queries.items():
        timed(name, lambda q=query: q(table.scan().to_ray()), lambda q=query: q(own()), runs=3)
    ray.shutdown()


if __name__ == "__main__":
    if any(find_spec(name) is None for name in ("daft", "dask", "ray")):
        print("skipped: make engines BENCH=1 runs this benchmark where Daft, Dask and Ray are installed")
        sys.exit(0)
    main(run)
