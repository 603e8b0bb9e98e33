"""Compaction: 1,000 files of 1 MB packed, and 10 million rows clustered by two columns.

Packing is compared with reading the same files and writing their rows into one with pyarrow, one file after another in
bounded memory; the z-order with sorting the same rows by one column, both by ``rewrite_data_files``.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlparse

import icefield
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from harness import compare, main
from icefield.catalog import Table

FILES = 1_000
FILE_ROWS = 72_000
"""Makes about 1 MB of two random columns and one of few values."""

ROWS = 10_000_000


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
    quick = "--quick" in sys.argv
    with tempfile.TemporaryDirectory() as folder:
        _packed(Path(folder), FILES // 10 if quick else FILES)
    with tempfile.TemporaryDirectory() as folder:
        _clustered(Path(folder), ROWS // 10 if quick else ROWS)


def _packed(folder: Path, files: int) -> None:
    table = made_table(folder, files, FILE_ROWS)
    first = table.current_snapshot()
    assert first is not None
    located = sorted(urlparse(path).path for path in table.inspect.data_files()["file_path"].to_pylist())
    numbers = itertools.count()

    def ours() -> None:
        branch = f"run{next(numbers)}"
        table.manage_snapshots().create_branch(first.snapshot_id, branch).commit()
        made = table.maintenance.rewrite_data_files(branch=branch, rewrite_all=True)
        assert made.rewritten_data_files == files

    def theirs() -> None:
        with pq.ParquetWriter(folder / "peer.parquet", pq.read_schema(located[0]), compression="zstd") as writer:
            for path in located:
                writer.write_table(pq.read_table(path), row_group_size=4 << 20)

    compare("pack files of 1 MB", ours, theirs, runs=1 if files < FILES else 3, floor=1 / 1.3, rows=files * FILE_ROWS)


def _clustered(folder: Path, rows: int) -> None:
    table = made_table(folder, 10, rows // 10)

    def clustered() -> None:
        table.maintenance.rewrite_data_files("zorder", zorder_columns=["id", "value"], rewrite_all=True)

    def ordered() -> None:
        table.maintenance.rewrite_data_files("sort", ["id"], rewrite_all=True)

    compare("z-order against a sort", clustered, ordered, runs=1 if rows < ROWS else 3, floor=0.5, rows=rows)


if __name__ == "__main__":
    main(run)
