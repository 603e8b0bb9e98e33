"""Compaction: 1,000 files of 1 MB packed, and 10 million rows clustered by two columns, against pyarrow.

    taskset -c 1 python benchmarks/bench_compaction.py [--files 1000] [--rows 10000000] [--runs 3]

The peer of packing reads the same files one after another and writes their rows into one file, a row group each, in
bounded memory. The peer of the z-order reads its ten files into memory, sorts the rows by one column and writes them;
the rewrite holds 128 MiB of rows and sorts the others through temporary files. Neither peer syncs its file, gathers
metrics or commits anything. Each run of ours rewrites the same files, on a branch of its own. On one core (``taskset``)
nothing runs side by side in the elapsed time, and CPU time shows the cost of the work while others use the machine.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import icefield
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from harness import compare_clocks, main
from icefield.catalog import Table

FILES = 1_000
FILE_ROWS = 72_000
"""Makes about 1 MB of two random columns and one of few values."""

ROWS = 10_000_000

ROW_GROUP_ROWS = 4 << 20


def made_table(folder: Path, files: int, rows: int) -> Table:
    """A table of so many files of so many rows each."""
    catalog = icefield.load_catalog("bench", type="directory", warehouse=f"file://{folder}")
    catalog.create_namespace("db")
    schema = pa.schema([("id", pa.int64()), ("value", pa.float64()), ("kind", pa.string())])
    table = catalog.create_table("db.t", schema, properties={"write.target-file-size-bytes": str(2 << 30)})
    draw = np.random.default_rng(1)
    kinds = pa.array([f"kind-{number}" for number in range(20)])
    with table.transaction() as tx:
        for _ in range(files):
            columns = [
                pa.array(draw.integers(0, 1 << 40, rows)),
                pa.array(draw.random(rows)),
                kinds.take(pa.array(draw.integers(0, 20, rows))),
            ]
            tx.append(pa.table(columns, schema=schema))
    return table


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        _clustered(Path(folder), given.rows, given.runs)
    with tempfile.TemporaryDirectory() as folder:
        _packed(Path(folder), given.files, given.runs)


def _packed(folder: Path, files: int, runs: int) -> None:
    table = made_table(folder, files, FILE_ROWS)
    located, rewrite = _located(table), _rewriting(table, files)

    def theirs() -> None:
        with pq.ParquetWriter(folder / "peer.parquet", pq.read_schema(located[0]), compression="zstd") as writer:
            for path in located:
                writer.write_table(pq.read_table(path), row_group_size=ROW_GROUP_ROWS)

    compare_clocks("pack files of 1 MB", rewrite, theirs, runs=runs, floor=1 / 1.3, rows=files * FILE_ROWS)


def _clustered(folder: Path, rows: int, runs: int) -> None:
    table = made_table(folder, 10, rows // 10)
    located = _located(table)
    rewrite = _rewriting(table, 10, strategy="zorder", zorder_columns=["id", "value"])

    def theirs() -> None:
        whole = pa.concat_tables([pq.read_table(path) for path in located]).sort_by("id")
        pq.write_table(whole, folder / "peer.parquet", compression="zstd", row_group_size=ROW_GROUP_ROWS)

    compare_clocks("z-order against a sort", rewrite, theirs, runs=runs, floor=0.5, rows=rows)


def _located(table: Table) -> list[str]:
    """The paths of the table's files."""
    return sorted(urlparse(path).path for path in table.inspect.data_files()["file_path"].to_pylist())


def _rewriting(table: Table, files: int, **options: Any) -> Callable[[], None]:
    """Return a function that rewrites the table's current files, on a branch of its own in each call."""
    numbers, first = itertools.count(), table.current_snapshot()
    assert first is not None

    def rewrite() -> None:
        branch = f"run{next(numbers)}"
        table.manage_snapshots().create_branch(first.snapshot_id, branch).commit()
        made = table.maintenance.rewrite_data_files(branch=branch, rewrite_all=True, **options)
        assert made.rewritten_data_files == files

    return rewrite


if __name__ == "__main__":
    main(run)
