"""Scanning whole tables to Arrow, next to pyarrow's dataset over the same files and next to PyIceberg.

pyarrow's dataset keeps the metadata of its files from run to run; a scan here plans anew and opens each file.

    python benchmarks/bench_scan.py [ROWS] [LAYOUT ...]
"""

from __future__ import annotations

import sys
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from harness import compare, main
from icefield.catalog import Catalog, Table, load_catalog

ROWS = 6_000_000
FLOOR = 1 / 1.15

LAYOUTS = {
    "one row group": (1, 1 << 30),
    "row groups of 128 MiB": (1, 128 << 20),
    "row groups of 16 MiB": (1, 16 << 20),
    "24 files": (24, 128 << 20),
}


def rows(count: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(5)
    words = pa.array([f"customer-{number:06}" for number in range(50_000)])
    return pa.table(
        {
            "id": pa.array(np.arange(count)),
            "ts": pa.array(1_700_000_000_000_000 + np.arange(count) * 1_000, pa.timestamp("us", "UTC")),
            "user": pa.array(rng.integers(0, 100_000, count)),
            "amount": pa.array(rng.random(count)),
            "quantity": pa.array(rng.integers(0, 100, count).astype(np.int32)),
            "name": words.take(pa.array(rng.integers(0, len(words), count))),
            "note": pa.array(rng.integers(0, 10**9, count)).cast(pa.string()),
            "flag": pa.array(rng.random(count) < 0.5),
        }
    )


def make(catalog: Catalog, name: str, data: pa.Table, files: int, group_bytes: int) -> Table:
    properties = {"write.parquet.row-group-size-bytes": str(group_bytes)}
    table = catalog.create_table(f"db.{name.replace(' ', '_')}", data.schema, properties=properties)
    step = -(-data.num_rows // files)
    for number in range(files):
        table.append(data.slice(number * step, step))
    return table


def run() -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    data = rows(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
    wanted = sys.argv[2:] or list(LAYOUTS)
    with tempfile.TemporaryDirectory() as folder:
        uri, warehouse = f"sqlite:///{folder}/catalog.db", f"file://{folder}/warehouse"
        catalog = load_catalog("bench", type="sql", uri=uri, warehouse=warehouse)
        catalog.create_namespace("db")
        peers = SqlCatalog("bench", uri=uri, warehouse=warehouse)
        for name in wanted:
            table = make(catalog, name, data, *LAYOUTS[name])
            next_to_pyarrow(name, data.num_rows, table)
            peer = peers.load_table(f"db.{name.replace(' ', '_')}")
            compare(f"{name}: all, PyIceberg", table.scan().to_arrow, peer.scan().to_arrow, floor=FLOOR)


def next_to_pyarrow(name: str, count: int, table: Table) -> None:
    dataset = ds.dataset([task.file.file_path.removeprefix("file://") for task in table.scan().plan_files()])
    assert table.scan().to_arrow().num_rows == count
    names = ["id", "amount"]
    compare(f"{name}: all columns", table.scan().to_arrow, dataset.to_table, rows=count, floor=FLOOR)
    narrow = table.scan(selected_fields=tuple(names))
    compare(f"{name}: two columns", narrow.to_arrow, lambda: dataset.to_table(names), rows=count, floor=FLOOR)
    low, high = count // 2, count // 2 + count // 100
    few, condition = table.scan(f"id >= {low} and id < {high}"), (pc.field("id") >= low) & (pc.field("id") < high)
    assert few.to_arrow().num_rows == high - low
    compare(f"{name}: 1 %", few.to_arrow, lambda: dataset.to_table(filter=condition), floor=FLOOR)
    half, condition = table.scan("quantity < 50", selected_fields=tuple(names)), pc.field("quantity") < 50
    compare(f"{name}: half", half.to_arrow, lambda: dataset.to_table(names, filter=condition), floor=FLOOR)


if __name__ == "__main__":
    main(run)
