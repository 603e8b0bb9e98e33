"""Commits to a table with 10 MB of metadata, on local disk and on storage of 20 ms a request, against PyIceberg.

    python benchmarks/bench_commits.py [--megabytes 10] [--runs 2] [--milliseconds 20]

Each run loads the table from an SQLite catalog and appends ten rows, as a job does that makes one commit. Both sides
begin with the same metadata file and have a pointer of their own. Requests of one commit and the CPU time of the
process are printed.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
from bench_metadata import summary_of
from harness import compare, main
from icefield.abc import PutMode
from icefield.metadata import TableMetadata, apply_updates, decode_metadata, encode_metadata
from icefield.metadata.refs import MAIN_BRANCH, branch
from icefield.metadata.snapshots import Snapshot
from icefield.metadata.updates.snapshots import AddSnapshot, SetSnapshotRef
from pyiceberg.catalog.sql import SqlCatalog
from slow_storage import Requests, slow_local

SCHEMA = pa.schema([("id", pa.int64()), ("kind", pa.string()), ("value", pa.float64())])
ROWS = pa.table({"id": range(10), "kind": ["a"] * 10, "value": [0.5] * 10}, schema=SCHEMA)
NAME = "db.made"
FLOORS = {"local disk": 10.0, "slow storage": 5.0}
GROWTH = 500  # snapshots that are added before the size is looked at


def grown(metadata: TableMetadata, size: int) -> bytes:
    """Metadata with as many more snapshots of the same files as make the file so large."""
    first = metadata.current_snapshot()
    assert first is not None
    data = encode_metadata(metadata)
    while len(data) < size:
        for _ in range(GROWTH):
            number = metadata.next_sequence_number()
            snapshot = Snapshot(
                snapshot_id=first.snapshot_id // 2 + number,
                parent_snapshot_id=metadata.current_snapshot_id,
                sequence_number=number,
                timestamp_ms=metadata.last_updated_ms + 1,
                summary=summary_of(number),
                manifest_list=first.manifest_list,
                schema_id=first.schema_id,
            )
            head = SetSnapshotRef(MAIN_BRANCH, branch(snapshot.snapshot_id))
            metadata = apply_updates(metadata, [AddSnapshot(snapshot), head])
        data = encode_metadata(metadata)
        metadata = decode_metadata(data, metadata.location)  # joins the new part and the old one into one string
    return data


def make_table(catalog: icefield.Catalog, size: int) -> str:
    """Make a table of that size, and return the location of its metadata file."""
    table = catalog.create_table("db.small", SCHEMA)
    table.append(ROWS)
    location = f"{table.location()}/metadata/90000-large.metadata.json"
    data = grown(table.metadata, size)
    table.io.put(location, data, PutMode.CREATE)
    print(f"# {len(decode_metadata(data, location).snapshots):,} snapshots, {len(data) / 1e6:.1f} MB of metadata")
    return location


def counted(name: str, requests: Requests, work: Callable[[], Any]) -> None:
    """Run the work once and print its requests to storage, and its CPU time."""
    requests.taken()
    began = time.process_time()
    work()
    print(f"# {name}: {requests.taken()}; {1000 * (time.process_time() - began):.0f} ms of CPU", flush=True)


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=10)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--milliseconds", type=float, default=20)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="icefield-bench-commits-"))
    try:
        warehouse = f"file://{folder}/warehouse"
        properties = {"warehouse": warehouse, "file.sync": "false"}  # the peer leaves flushing to the system
        ours = icefield.load_catalog("ours", type="sql", uri=f"sqlite:///{folder}/ours.db", **properties)
        theirs = SqlCatalog("peer", uri=f"sqlite:///{folder}/peer.db", warehouse=warehouse)
        for catalog in (ours, theirs):
            catalog.create_namespace("db")
        location = make_table(ours, int(given.megabytes * 1e6))
        ours.register_table(NAME, location)
        theirs.register_table(NAME, location)

        def mine() -> None:
            # Another job's process has nothing decoded.
            icefield.clear_caches()
            ours.load_table(NAME).append(ROWS)

        def peers() -> None:
            theirs.load_table(NAME).append(ROWS)

        for storage, seconds in (("local disk", 0.0), ("slow storage", given.milliseconds / 1000)):
            with slow_local(seconds) as requests:
                counted(f"a commit on {storage}", requests, mine)
                counted(f"a commit on {storage}, PyIceberg", requests, peers)
                name = f"append, {given.megabytes:g} MB, {storage}"
                compare(name, mine, peers, runs=given.runs, floor=FLOORS[storage])
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(run)
