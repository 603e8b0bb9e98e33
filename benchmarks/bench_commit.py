"""Appending ten rows to a table with many snapshots, against PyIceberg, both with SQLite catalogs on local disk.

    python benchmarks/bench_commit.py [--snapshots 1000] [--runs 5]

Both append to the same table, made here by as many appends; each has the pointer in a database of its own. The peer
leaves flushing to the system, so the runs that must reach the floor do too; one more shows the cost of flushing.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path

import icefield
import pyarrow as pa
from harness import compare, main
from pyiceberg.catalog.sql import SqlCatalog

SCHEMA = pa.schema([("id", pa.int64()), ("kind", pa.string()), ("value", pa.float64())])
ROWS = pa.table({"id": range(10), "kind": ["a"] * 10, "value": [0.5] * 10}, schema=SCHEMA)
FLOOR = 20.0


def our_catalog(folder: Path, *, sync: bool) -> icefield.Catalog:
    """Our catalog; with ``sync`` every file is durable before the commit names it."""
    properties = {"uri": f"sqlite:///{folder}/ours.db", "warehouse": f"file://{folder}/warehouse", "file.sync": sync}
    return icefield.load_catalog("ours", type="sql", **properties)


def table_with(folder: Path, snapshots: int, *, merging: bool) -> icefield.Table:
    """A table with so many snapshots; without merging also with as many manifests."""
    catalog = our_catalog(folder, sync=False)
    catalog.create_namespace_if_not_exists("db")
    name = "db.merged" if merging else "db.unmerged"
    properties = {"commit.manifest-merge.enabled": "true" if merging else "false"}
    table = catalog.create_table(name, SCHEMA, properties=properties)
    started = time.perf_counter()
    for _ in range(snapshots):
        table.append(ROWS)
    print(f"# {snapshots} appends to {name} in {time.perf_counter() - started:.1f} s")
    return table


def peers_table(folder: Path, table: icefield.Table):
    """The same table for the peer, with a pointer of its own."""
    catalog = SqlCatalog("peer", uri=f"sqlite:///{folder}/peer.db", warehouse=f"file://{folder}/warehouse")
    catalog.create_namespace_if_not_exists("db")
    return catalog.register_table(".".join(table.name()), table.metadata_location)


def run() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--snapshots", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="icefield-bench-commit-"))
    try:
        for merging in (True, False):
            table = table_with(folder, given.snapshots, merging=merging)
            peer = peers_table(folder, table)
            what = "merged" if merging else "unmerged"
            compare(
                f"append, {given.snapshots} snapshots, {what}",
                lambda table=table: table.append(ROWS),
                lambda peer=peer: peer.append(ROWS),
                runs=given.runs,
                floor=FLOOR,
            )
        durable = our_catalog(folder, sync=True).load_table("db.merged")
        compare(
            f"append, {given.snapshots} snapshots, durable",
            lambda: durable.append(ROWS),
            lambda: peer.append(ROWS),
            runs=given.runs,
        )
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(run)
