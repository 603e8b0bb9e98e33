"""Deletes, dynamic overwrites and conflict checks over 200 manifests, on storage that takes 20 ms a request.

    python benchmarks/bench_deletes.py [--manifests 200] [--files 50] [--runs 3] [--milliseconds 20] [--no-peer]

Each is timed next to itself with manifests read and published one after another, as by a single worker, and next to
PyIceberg where that has the operation. Data files are only named: whole files go, and none is read. Requests of one
commit and the CPU time of the process are printed.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import icefield
import pyarrow as pa
from harness import compare, main
from icefield.manifest import DataFile
from pyiceberg.catalog.sql import SqlCatalog
from slow_storage import Requests, slow_local

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.int32())])
ROWS = 1_000
FLOORS = {
    "delete: one file of all": 3,
    "overwrite with a conflict check": 2.5,
    # To encode every manifest anew takes most of the time.
    "delete: a file of each manifest": 1.5,
    "dynamic overwrite of a partition": 1.5,
}


def make_table(catalog: icefield.Catalog, number: int, files: int) -> icefield.Table:
    """A table of so many manifests, each with a file in each of ``files`` partitions."""
    table = catalog.create_table("db.made", SCHEMA, properties={"commit.manifest-merge.enabled": "false"})
    table.update_spec().add_identity("part").commit()
    spec = table.spec()
    for manifest in range(number):
        files_of_one = (
            DataFile(
                file_path=f"{table.location()}/data/{manifest}-{part}.parquet",
                file_format="parquet",
                record_count=ROWS,
                file_size_in_bytes=1_000_000,
                partition=(part,),
                spec_id=spec.spec_id,
                value_counts={1: ROWS, 2: ROWS},
                null_value_counts={1: 0, 2: 0},
                lower_bounds={1: _long(manifest * files + part, 0), 2: part.to_bytes(4, "little")},
                upper_bounds={1: _long(manifest * files + part, ROWS - 1), 2: part.to_bytes(4, "little")},
            )
            for part in range(files)
        )
        table.update_snapshot().fast_append().append_fresh(files_of_one).commit()
    return table


def _long(file: int, offset: int) -> bytes:
    return (file * ROWS + offset).to_bytes(8, "little")


class Tables:
    """The same table under a new name for each change, with nothing decoded, so that every run finds the same."""

    def __init__(self, catalog: Any, location: str, who: str) -> None:
        self._catalog = catalog
        self._location = location
        self._names = (f"db.{who}{number}" for number in count())

    def fresh(self) -> Any:
        """The table, unchanged."""
        icefield.clear_caches()
        return self._catalog.register_table(next(self._names), self._location)


def one_by_one(work: Callable[[], Any]) -> Callable[[], Any]:
    """The work with one thread."""

    def timed() -> Any:
        with patch.object(icefield.FileIO, "workers", lambda *_, **__: 1):
            return work()

    return timed


def counted(name: str, requests: Requests, work: Callable[[], Any]) -> None:
    """Run the work once and print its requests to storage, and its CPU time."""
    requests.taken()
    began = time.process_time()
    work()
    print(f"# {name}: {requests.taken()}; {1000 * (time.process_time() - began):.0f} ms of CPU", flush=True)


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manifests", type=int, default=200)
    parser.add_argument("--files", type=int, default=50, help="in each manifest")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--milliseconds", type=float, default=20)
    parser.add_argument("--no-peer", action="store_true")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="icefield-bench-deletes-"))
    try:
        properties = {"warehouse": f"file://{folder}/warehouse", "file.sync": "false"}
        catalog = icefield.load_catalog("ours", type="sql", uri=f"sqlite:///{folder}/ours.db", **properties)
        catalog.create_namespace("db")
        peers = SqlCatalog("peer", uri=f"sqlite:///{folder}/peer.db", warehouse=f"file://{folder}/warehouse")
        peers.create_namespace("db")
        made = make_table(catalog, given.manifests, given.files)
        first = made.history()[0].snapshot_id
        ours = Tables(catalog, made.metadata_location, "ours")
        theirs = Tables(peers, made.metadata_location, "theirs")
        middle = given.manifests // 2 * given.files
        one_file = f"id >= {middle * ROWS} and id < {middle * ROWS + ROWS}"

        def replaced() -> None:
            table = ours.fresh()
            rows = pa.table({"id": [1], "part": pa.array([7], pa.int32())}, schema=SCHEMA)
            table.dynamic_partition_overwrite(rows)

        def guarded() -> None:
            # Nothing that was added since can hold such a row, which the manifests alone show.
            action = ours.fresh().update_snapshot().overwrite().delete_file(f"{made.location()}/data/0-0.parquet")
            action.validate_from_snapshot(first).conflict_detection_filter("id < 0")
            action.validate_no_conflicting_data().commit()

        workloads = {
            "delete: one file of all": (lambda: ours.fresh().delete(one_file), lambda: theirs.fresh().delete(one_file)),
            "delete: a file of each manifest": (
                lambda: ours.fresh().delete("part = 7"),
                lambda: theirs.fresh().delete("part = 7"),
            ),
            "dynamic overwrite of a partition": (replaced, None),
            "overwrite with a conflict check": (guarded, None),
        }
        with slow_local(given.milliseconds / 1000) as requests:
            for name, (change, peer) in workloads.items():
                counted(name, requests, change)
                compare(f"{name}: before", change, one_by_one(change), runs=given.runs, floor=FLOORS[name])
                if peer is not None and not given.no_peer:
                    counted(f"{name}, PyIceberg", requests, peer)
                    compare(f"{name}: peer", change, peer, runs=given.runs, floor=FLOORS[name])
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(run)
