"""Changes of rows: merge-on-read next to copy-on-write, and upserts next to PyIceberg's.

    python benchmarks/bench_row_changes.py [ROWS] [PART ...]

``delete`` deletes 1,000 rows among ROWS (10 million, unless told) by a list of their keys. ``upsert`` puts 10,000 rows
with a key of two columns into 1 million, next to PyIceberg with a key of one, and prints the most memory that takes.
``floor`` compares with the least that copy-on-write takes: pyarrow reading and writing the files that an upsert
changes. ``large`` upserts a tenth of ROWS into ROWS, about half of them new, and prints the most memory in each mode.

Tables of both libraries have the same files. Neither flushes them to the disk, which PyIceberg never does.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bench_scan import rows as wide_rows
from harness import compare, main
from icefield.catalog import Catalog, Table, load_catalog
from icefield.expressions import In

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from bounded import peak_memory

ROWS = 10_000_000
FILES = 4
DELETED = 1_000
HELD, GIVEN = 1_000_000, 10_000
ON_READ, UPSERT = 10, 20
MOST_BYTES = 1 << 30
MOST_LARGE_BYTES = 1 << 30

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.int32()), ("name", pa.string()), ("value", pa.float64())])


def run() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    parts = sys.argv[2:] or ["delete", "upsert", "floor", "large"]
    if "delete" in parts:
        deleting(count)
    if "upsert" in parts:
        upserting()
    if "floor" in parts:
        least()
    if "large" in parts:
        for mode in MODES:
            taken = apart("large", count, mode)
            print(f"{f'upsert {count // 10:,} into {count:,}, {mode}':<60} {taken / 2**20:>8,.0f} MiB", flush=True)
            assert taken < MOST_LARGE_BYTES, f"an upsert took {taken:,} bytes"


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
        for part in parts_of(rows(np.arange(HELD))):
            other.append(part)
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
    taken = apart("alone")
    print(f"{'the most memory of an upsert':<36} {taken / 2**20:>10,.0f} MiB")
    assert taken < MOST_BYTES, f"an upsert took {taken:,} bytes"


def least() -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = filled(local(folder), "db.ours", rows(np.arange(HELD)), MODES[0], 2)
        files = [Path(task.file.file_path.removeprefix("file://")) for task in table.scan().plan_files()]
        turn = iter(range(1, 1_000))
        for which, keys, some in (("recent", recent, files[-1:]), ("scattered", scattered, files)):

            def rewrite(some: list[Path] = some) -> None:
                for file in some:
                    pq.write_table(pq.read_table(file), f"{folder}/floor.parquet", compression="zstd")

            table = filled(local(f"{folder}/{which}"), "db.ours", rows(np.arange(HELD)), MODES[0], 2)
            upsert = partial(_upsert, table, keys, turn)
            compare(f"upsert {which} keys, pyarrow rewriting", upsert, rewrite, runs=3)


def _upsert(table: Table, keys: Callable[[], np.ndarray], turn: Iterator[int]) -> None:
    table.upsert(rows(keys(), float(next(turn))), ["id", "part"])


def apart(function: str, *arguments: object) -> int:
    """Run a function of this module in a process of its own, and return the number that it prints."""
    given = ", ".join(map(repr, arguments))
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import bench_row_changes as b; "
        f"b.{function}({given})"
    )
    return int(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True, text=True).stdout)


def large(count: int, mode: str) -> None:
    """One upsert of a tenth as many rows; prints the most memory of the process."""
    with tempfile.TemporaryDirectory() as folder:
        catalog = local(folder)
        modes = {"write.merge.mode": mode}
        table = catalog.create_table("db.ours", SCHEMA, properties=modes)
        for start in range(0, count, HELD):
            table.append(rows(np.arange(start, min(count, start + HELD))))
        given = rows(np.random.default_rng(1).choice(2 * count, count // 10, replace=False), 5.0)
        result = table.upsert(given, ["id", "part"])
        assert result.rows_updated + result.rows_inserted == given.num_rows
        assert table.scan().count() == count + result.rows_inserted
        print(peak_memory())


def recent() -> np.ndarray:
    """The greatest keys, and as many that are new the first time."""
    return np.arange(HELD - GIVEN // 2, HELD + GIVEN // 2)


def scattered() -> np.ndarray:
    """Return keys from the whole range, some of them new: they concern every file."""
    return np.random.default_rng().choice(HELD + GIVEN, GIVEN, replace=False)


def alone() -> None:
    """One upsert in a process of its own; prints the most memory that it took."""
    with tempfile.TemporaryDirectory() as folder:
        table = filled(local(folder), "db.ours", rows(np.arange(HELD)), MODES[0], 2)
        table.upsert(rows(scattered(), 5.0), ["id", "part"])
        print(peak_memory())


def local(folder: str) -> Catalog:
    catalog = load_catalog("bench", type="directory", warehouse=f"file://{folder}/ours", **{"file.sync": "false"})
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
    for part in parts_of(data):
        table.append(part)
    return table


def parts_of(data: pa.Table) -> list[pa.Table]:
    step = -(-data.num_rows // FILES)
    return [data.slice(number * step, step) for number in range(FILES)]


if __name__ == "__main__":
    main(run)
