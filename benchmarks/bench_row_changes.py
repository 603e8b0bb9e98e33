"""Changes of rows: merge-on-read next to copy-on-write, and upserts next to PyIceberg's.

    python benchmarks/bench_row_changes.py [ROWS] [PART ...]

``delete`` deletes 1,000 rows among ROWS (10 million, unless told) by a list of their keys. ``upsert`` puts 10,000 rows
with a key of two columns into 1 million, next to PyIceberg with a key of one, and prints the most memory that takes.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from bench_scan import rows as wide_rows
from harness import compare, main
from icefield.catalog import Catalog, Table, load_catalog
from icefield.expressions import In

ROWS = 10_000_000
FILES = 4
DELETED = 1_000
HELD, GIVEN = 1_000_000, 10_000
ON_READ, UPSERT = 10, 20
MOST_BYTES = 1 << 30

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.int32()), ("name", pa.string()), ("value", pa.float64())])


def run() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    parts = sys.argv[2:] or ["delete", "upsert"]
    if "delete" in parts:
        deleting(count)
    if "upsert" in parts:
        upserting()


def rows(ids: np.ndarray, value: float = 1.0) -> pa.Table:
    names = pa.array([f"name {number}" for number in range(1_000)]).take(pa.array(ids % 1_000))
    columns = [pa.array(ids), pa.array((ids % 7).astype(np.int32)), names, pa.array(ids + value)]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def deleting(count: int) -> None:
    """Each run deletes other rows of the same files."""
    with tempfile.TemporaryDirectory() as folder:
        catalog = local(folder)
        for version in (2, 3):
            tables = [filled(catalog, f"db.{mode[:4]}{version}", wide_rows(count), mode, version) for mode in MODES]
            rng = np.random.default_rng(3)

            def delete(at: int, tables: list[Table] = tables, rng: np.random.Generator = rng) -> None:
                tables[at].delete(In("id", rng.integers(0, count, DELETED).tolist()))

            name = f"delete {DELETED:,} of {count:,}, version {version}"
            compare(name, lambda: delete(1), lambda: delete(0), runs=3, floor=ON_READ)


MODES = ("copy-on-write", "merge-on-read")


def upserting() -> None:
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = local(folder), peer(folder)
        other = theirs.create_table("db.theirs", SCHEMA)
        other.append(rows(np.arange(HELD)))
        turn = iter(range(1, 1_000))
        for which, keys in (("recent", recent), ("scattered", scattered)):
            for mode in MODES:
                table = filled(ours, f"db.{which}_{mode[:4]}", rows(np.arange(HELD)), mode, 2)
                compare(
                    f"upsert {GIVEN:,} {which} keys, {mode}",
                    lambda table=table, keys=keys: table.upsert(rows(keys(), float(next(turn))), ["id", "part"]),
                    lambda keys=keys: other.upsert(rows(keys(), float(next(turn))), ["id"]),
                    runs=3,
                    floor=UPSERT if which == "recent" else None,
                )
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import bench_row_changes as b; b.alone()"
    taken = int(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout)
    print(f"{'the most memory of an upsert':<36} {taken / 2**20:>10,.0f} MiB")
    assert taken < MOST_BYTES, f"an upsert took {taken:,} bytes"


def recent() -> np.ndarray:
    """The greatest keys, and as many that are new the first time."""
    return np.arange(HELD - GIVEN // 2, HELD + GIVEN // 2)


def scattered() -> np.ndarray:
    """Keys from everywhere, of which some are new: every file is concerned."""
    return np.random.default_rng().choice(HELD + GIVEN, GIVEN, replace=False)


def alone() -> None:
    """One upsert in a process of its own; prints the most memory that it took."""
    with tempfile.TemporaryDirectory() as folder:
        table = filled(local(folder), "db.ours", rows(np.arange(HELD)), MODES[0], 2)
        table.upsert(rows(scattered(), 5.0), ["id", "part"])
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def local(folder: str) -> Catalog:
    catalog = load_catalog("bench", type="directory", warehouse=f"file://{folder}/ours")
    catalog.create_namespace("db")
    return catalog


def peer(folder: str):
    from pyiceberg.catalog.sql import SqlCatalog

    Path(folder, "theirs").mkdir()
    catalog = SqlCatalog("peer", uri=f"sqlite:///{folder}/peer.db", warehouse=f"file://{folder}/theirs")
    catalog.create_namespace("db")
    return catalog


def filled(catalog: Catalog, name: str, data: pa.Table, mode: str, version: int) -> Table:
    modes = {f"write.{change}.mode": mode for change in ("delete", "merge")}
    table = catalog.create_table(name, data.schema, properties={"format-version": str(version), **modes})
    step = -(-data.num_rows // FILES)
    for number in range(FILES):
        table.append(data.slice(number * step, step))
    return table


if __name__ == "__main__":
    main(run)
