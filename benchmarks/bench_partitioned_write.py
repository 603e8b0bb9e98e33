"""Appending two million rows to a table of 480 partitions, next to PyIceberg and next to one plain Parquet file.

python benchmarks/bench_partitioned_write.py [ROWS]
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from harness import compare, main
from icefield.catalog import load_catalog
from icefield.partitioning import UNPARTITIONED, PartitionField, PartitionSpec
from icefield.schema import schema_from_arrow, schema_to_arrow

ROWS = 2_000_000
DAYS = 30
SPEC = PartitionSpec(PartitionField(3, 1000, "bucket[16]", "user_bucket"), PartitionField(2, 1001, "day", "ts_day"))


def rows(count: int) -> pa.Table:
    rng = np.random.default_rng(9)
    first = 1_704_067_200_000_000
    words = pa.array([f"customer-{number:06}" for number in range(50_000)])
    countries = pa.array(["NO", "SE", "DK", "FI", "DE"])
    return pa.table(
        {
            "id": pa.array(np.arange(count)),
            "ts": pa.array(first + rng.integers(0, DAYS * 86_400_000_000, count), pa.timestamp("us", "UTC")),
            "user": pa.array(rng.integers(0, 100_000, count)),
            "amount": pa.array(rng.random(count)),
            "quantity": pa.array(rng.integers(0, 100, count).astype(np.int32)),
            "country": countries.take(pa.array(rng.integers(0, len(countries), count))),
            "name": words.take(pa.array(rng.integers(0, len(words), count))),
            "flag": pa.array(rng.random(count) < 0.5),
        }
    )


def ours(table: pa.Table, folder: str, spec: PartitionSpec, syncs: bool = True) -> Callable[[], Any]:
    properties = {} if syncs else {"file.sync": "false"}
    name = uuid4().hex
    uri, warehouse = f"sqlite:///{folder}/{name}.db", f"file://{folder}/{name}"
    catalog = load_catalog("ours", type="sql", uri=uri, warehouse=warehouse, **properties)
    catalog.create_namespace("db")
    schema = schema_from_arrow(table.schema)
    numbers = iter(range(1_000_000))

    def write() -> None:
        made = catalog.create_table(f"db.t{next(numbers)}", schema, partition_spec=spec)
        made.append(table)
        shutil.rmtree(Path(folder, name))

    return write


def pyiceberg(table: pa.Table, folder: str) -> Callable[[], Any]:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.io.pyarrow import pyarrow_to_schema
    from pyiceberg.partitioning import PartitionField as PeerField
    from pyiceberg.partitioning import PartitionSpec as PeerSpec
    from pyiceberg.transforms import BucketTransform, DayTransform

    catalog = SqlCatalog("peer", uri=f"sqlite:///{folder}/peer.db", warehouse=f"file://{folder}/peer")
    catalog.create_namespace("db")
    numbers = iter(range(1_000_000))
    schema = pyarrow_to_schema(schema_to_arrow(schema_from_arrow(table.schema)))

    def write() -> None:
        name = f"db.t{next(numbers)}"
        spec = PeerSpec(
            PeerField(3, 1000, BucketTransform(16), "user_bucket"), PeerField(2, 1001, DayTransform(), "ts_day")
        )
        made = catalog.create_table(name, schema, partition_spec=spec)
        made.append(table)
        shutil.rmtree(Path(folder, "peer"))

    return write


def plain(table: pa.Table, folder: str) -> Callable[[], Any]:
    return lambda: pq.write_table(table, f"{folder}/plain.parquet", compression="zstd")


def run() -> None:
    table = rows(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
    count = table.num_rows
    with tempfile.TemporaryDirectory() as folder:
        peer, one = pyiceberg(table, folder), plain(table, folder)
        compare("480 partitions", ours(table, folder, SPEC), peer, runs=3, rows=count, floor=4)
        compare("480 partitions, no fsync", ours(table, folder, SPEC, syncs=False), peer, runs=3, rows=count, floor=4)
        compare("480 partitions / one plain file", ours(table, folder, SPEC), one, runs=3, rows=count)
        compare("unpartitioned / one plain file", ours(table, folder, UNPARTITIONED), one, runs=3, rows=count)


if __name__ == "__main__":
    main(run)
