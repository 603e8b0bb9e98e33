"""A table of 10,000 columns beside PyIceberg, in a SQL catalog on local disk.

    python benchmarks/bench_columns.py [--columns 10000] [--runs 1] [--edits 100]

Both create a table, append three batches of two rows, read one column, and rename columns of another new table. Then
half as many columns stand in for the peer: twice the columns take about twice the time.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections.abc import Callable
from typing import Any

import icefield
import pyarrow as pa
from harness import compare, compare_clocks, main
from pyiceberg.catalog.sql import SqlCatalog

BATCHES = 3
LEAST_OF_HALF = 1 / 2.6


def rows(columns: int) -> pa.Table:
    return pa.table({f"c{number}": pa.array([1, 2], pa.int64()) for number in range(columns)})


def steps(catalog: Any, columns: int, edits: int) -> dict[str, Callable[[], None]]:
    """The steps in a catalog, in their order; each may be taken several times."""
    catalog.create_namespace("db")
    given, numbers, tables, filled = rows(columns), itertools.count(), list[Any](), list[Any]()

    def create() -> None:
        tables.append(catalog.create_table(f"db.t{next(numbers)}", schema=given.schema))

    def append() -> None:
        for _ in range(BATCHES):
            tables[-1].append(given)

    def read() -> None:
        if not filled:
            filled.append(catalog.create_table("db.filled", schema=given.schema))
            for _ in range(BATCHES):
                filled[0].append(given)
        icefield.clear_caches()
        assert filled[0].scan(selected_fields=(f"c{columns // 2}",)).to_arrow().num_rows == 2 * BATCHES

    def evolve() -> None:
        create()
        with tables[-1].update_schema() as update:
            for number in range(edits):
                update.rename_column(f"c{number}", f"r{number}")

    return {"create": create, f"append {BATCHES} batches": append, "read one column": read, "create, rename": evolve}


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--edits", type=int, default=100)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:

        def ours(name: str, columns: int, edits: int) -> dict[str, Callable[[], None]]:
            place = {"uri": f"sqlite:///{folder}/{name}.db", "warehouse": f"file://{folder}/{name}"}
            return steps(icefield.load_catalog(name, type="sql", **place), columns, edits)

        theirs = SqlCatalog("peer", uri=f"sqlite:///{folder}/peer.db", warehouse=f"file://{folder}/peer")
        whole = ours("whole", given.columns, given.edits)
        half = ours("half", given.columns // 2, given.edits // 2)
        peer = steps(theirs, given.columns, given.edits)
        for name, work in whole.items():
            for taken in (work, peer[name]):
                taken()
            compare_clocks(name, work, peer[name], runs=given.runs, floor=1.0)
            compare(f"{name}, against half", work, half[name], runs=3, floor=LEAST_OF_HALF, clock=time.process_time)


if __name__ == "__main__":
    main(run)
