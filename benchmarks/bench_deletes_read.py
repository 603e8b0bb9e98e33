"""Scanning tables with row-level deletes of 1 % of their rows, next to the same tables without, and next to PyIceberg.

    python benchmarks/bench_deletes_read.py [ROWS] [PART ...]

The parts are ``rows``, ``keys`` (the memory that a million delete keys take) and ``planning``.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from bench_scan import rows
from harness import compare, main
from icefield.catalog import Catalog, Table, load_catalog
from icefield.manifest import DataFileContent
from icefield.manifest.cache import clear_caches
from icefield.types.reserved import DELETE_FILE_PATH

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from bounded import peak_memory
from delete_files import commit, data_files, deletion_vectors, equality_deletes, position_deletes
from planned_tables import PlannedTable

ROWS = 4_000_000
FILES = 4
KEYS = 1_000_000
DATA_FILES, DELETE_FILES = 100_000, 10_000

POSITIONS, VECTORS, EQUALITY, PEER, PLANNING = 1 / 1.25, 1 / 1.15, 1 / 1.6, 1.5, 1 / 1.5
MOST_KEY_BYTES = 300 << 20


def run() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    parts = sys.argv[2:] or ["rows", "keys", "planning"]
    if "rows" in parts:
        scanning(count)
    if "keys" in parts:
        keys()
    if "planning" in parts:
        planning()


def scanning(count: int) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    with tempfile.TemporaryDirectory() as folder:
        uri, warehouse = f"sqlite:///{folder}/catalog.db", f"file://{folder}/warehouse"
        catalog = load_catalog("bench", type="sql", uri=uri, warehouse=warehouse)
        catalog.create_namespace("db")
        data = rows(count)
        rng = np.random.default_rng(9)
        deleted = np.sort(rng.choice(count, count // 100, replace=False))
        plain, by_position, by_vector, by_key = (
            made(catalog, name, data, version)
            for name, version in (("plain", 2), ("position", 2), ("vector", 3), ("equality", 2))
        )
        step = -(-count // FILES)
        inside = {at: deleted[(deleted >= at * step) & (deleted < (at + 1) * step)] - at * step for at in range(FILES)}
        files = data_files(by_position)
        pairs = [(file.file_path, place) for at, file in enumerate(files) for place in inside[at].tolist()]
        commit(by_position, position_deletes(by_position, sorted(pairs)))
        vectors = {file: inside[at] for at, file in enumerate(data_files(by_vector))}
        commit(by_vector, *deletion_vectors(by_vector, vectors))
        commit(by_key, equality_deletes(by_key, ["id"], pa.table({"id": deleted})))
        for table in (by_position, by_vector, by_key):
            assert table.scan().to_arrow().num_rows == count - len(deleted)
        whole = plain.scan().to_arrow
        compare("1 % position deletes, plain scan", by_position.scan().to_arrow, whole, floor=POSITIONS)
        compare("1 % deletion vectors, plain scan", by_vector.scan().to_arrow, whole, floor=VECTORS)
        compare("1 % equality deletes, plain scan", by_key.scan().to_arrow, whole, floor=EQUALITY)
        peer = SqlCatalog("bench", uri=uri, warehouse=warehouse).load_table("db.position")
        compare(
            "1 % position deletes, PyIceberg", by_position.scan().to_arrow, peer.scan().to_arrow, floor=PEER, runs=3
        )


def made(catalog: Catalog, name: str, data: pa.Table, version: int) -> Table:
    table = catalog.create_table(f"db.{name}", data.schema, properties={"format-version": str(version)})
    step = -(-data.num_rows // FILES)
    for start in range(0, data.num_rows, step):
        table.append(data.slice(start, step))
    return table


def keys() -> None:
    """The memory that a scan takes on top of itself for a million delete keys, in a process of its own each."""
    least, most = (int(subprocess.check_output([sys.executable, __file__, "--keys", str(n)])) for n in (1, KEYS))
    print(
        f"{KEYS:,} delete keys take {(most - least) >> 20} MiB; {'PASS' if most - least < MOST_KEY_BYTES else 'FAIL'}"
    )
    if most - least >= MOST_KEY_BYTES:
        sys.exit("more memory than allowed")


def memory_of(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        catalog = load_catalog("bench", type="sql", uri="sqlite://", warehouse=f"file://{folder}")
        catalog.create_namespace("db")
        numbers = pa.table({"id": np.arange(2_000_000)})
        table = made(catalog, "keys", numbers, 2)
        commit(table, equality_deletes(table, ["id"], numbers.slice(0, count)))
        total = sum(batch.num_rows for batch in table.scan().to_arrow_batch_reader())
        assert total == numbers.num_rows - count
    print(peak_memory())


def planning() -> None:
    plain, deletes = planned(0), planned(DELETE_FILES)

    def plan(table: PlannedTable) -> Any:
        return sum(len(task.delete_files) for task in table.scan().plan_files())

    def describe(table: PlannedTable) -> Any:
        return sum(len(task.delete_files) + task.file.record_count for task in table.scan().plan_files())

    assert plan(deletes) >= DELETE_FILES

    def cold(table: PlannedTable) -> Any:
        clear_caches()
        return plan(table)

    for name, timed in (("planning", plan), ("planning and describing", describe), ("first planning", cold)):
        compare(
            f"{name} with {DELETE_FILES:,} delete files", partial(timed, deletes), partial(timed, plain), floor=PLANNING
        )


def planned(deletes: int) -> PlannedTable:
    """Data files in manifests of 1,000, and position delete files of ten neighbours each, found by their bounds."""
    table = PlannedTable(location=f"memory://bench/{uuid.uuid4().hex}")
    paths = [table.path(f"data/{number:06}.parquet") for number in range(DATA_FILES)]
    for start in range(0, DATA_FILES, 1_000):
        table.add([table.file(f"{number:06}") for number in range(start, start + 1_000)])
    table.commit()
    path = DELETE_FILE_PATH.field_id
    width = DATA_FILES // max(1, deletes)
    for start in range(0, deletes, 1_000):
        table.add(
            [
                table.file(
                    f"deletes-{number}",
                    content=DataFileContent.POSITION_DELETES,
                    lower_bounds={path: paths[number * width].encode()},
                    upper_bounds={path: paths[(number + 1) * width - 1].encode()},
                )
                for number in range(start, start + 1_000)
            ]
        )
    if deletes:
        table.commit()
    return table


if __name__ == "__main__":
    if sys.argv[1:2] == ["--keys"]:
        memory_of(int(sys.argv[2]))
    else:
        main(run)
