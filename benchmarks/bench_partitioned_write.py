"""Appending two million rows to a table of 480 partitions, next to PyIceberg and next to one plain Parquet file.

    python benchmarks/bench_partitioned_write.py [ROWS]
    python benchmarks/bench_partitioned_write.py --partitions 50000

The second form appends two rows to each partition, next to ``write_dataset`` of pyarrow, each in its own process.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from harness import compare, main
from icefield.catalog import load_catalog
from icefield.partitioning import UNPARTITIONED, PartitionField, PartitionSpec
from icefield.schema import schema_from_arrow, schema_to_arrow
from measuring import Cost, measured

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


def many(partitions: int) -> None:
    """Print the costs of one append to many partitions, ours and pyarrow's."""
    print(f"{'append':<20}{'partitions':>12}{'CPU s':>10}{'wall s':>10}{'MiB':>8}{'files':>10}")
    for name in ("pyarrow", "ours"):
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            cost, files = process.submit(_cost, name, partitions).result()
        print(f"{name:<20}{partitions:>12,}{cost.cpu:>10.2f}{cost.wall:>10.2f}{cost.memory:>8}{files:>10,}", flush=True)


def _cost(name: str, partitions: int) -> tuple[Cost, int]:
    append = {"ours": _append, "pyarrow": _write_dataset}[name]
    with tempfile.TemporaryDirectory() as folder:
        append(f"{folder}/small", _two_rows_each(10))  # imports are not measured
        table = _two_rows_each(partitions)
        cost = measured(lambda: append(f"{folder}/large", table))
        written = sum(1 for _ in Path(folder, "large").rglob("*.parquet"))
    return cost, written


def _two_rows_each(partitions: int) -> pa.Table:
    """Rows of all partitions, shuffled."""
    table = rows(2 * partitions)
    part = np.random.default_rng(11).permutation(np.arange(2 * partitions) % partitions)
    return table.append_column("part", pa.array(part))


def _append(folder: str, table: pa.Table) -> None:
    """Append without fsync, as pyarrow writes."""
    catalog = load_catalog("many", type="directory", warehouse=f"file://{folder}", **{"file.sync": "false"})
    catalog.create_namespace("db")
    schema = schema_from_arrow(table.schema)
    spec = PartitionSpec(PartitionField(schema.find_field("part").field_id, 1000, "identity", "part"))
    catalog.create_table("db.t", schema, partition_spec=spec).append(table)


def _write_dataset(folder: str, table: pa.Table) -> None:
    # pyarrow closes files when too many are open, and begins another for later rows of their partitions.
    ds.write_dataset(
        table,
        folder,
        format="parquet",
        file_options=ds.ParquetFileFormat().make_write_options(compression="zstd"),
        partitioning=ds.partitioning(pa.schema([table.schema.field("part")]), flavor="hive"),
        max_partitions=len(table),
        max_open_files=resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 1000,
    )


def run(count: int) -> None:
    table = rows(count)
    with tempfile.TemporaryDirectory() as folder:
        peer, one = pyiceberg(table, folder), plain(table, folder)
        compare("480 partitions", ours(table, folder, SPEC), peer, runs=3, rows=count, floor=4)
        compare("480 partitions, no fsync", ours(table, folder, SPEC, syncs=False), peer, runs=3, rows=count, floor=4)
        compare("480 partitions / one plain file", ours(table, folder, SPEC), one, runs=3, rows=count)
        compare("unpartitioned / one plain file", ours(table, folder, UNPARTITIONED), one, runs=3, rows=count)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=int, nargs="?", default=ROWS)
    parser.add_argument("--partitions", type=int)
    given = parser.parse_args()
    if given.partitions:
        many(given.partitions)
    else:
        main(lambda: run(given.rows))
