"""The workloads of ``check.py``: ``checked_work.py FOLDER [WORKLOAD ...]`` runs each at n and 2n, and prints the costs.

It runs with the code of the last release as well, so it uses only names that both have. Tables that are only read
are kept in the folder for the next process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import icefield
import numpy as np
import pyarrow as pa
from make_table import data_file, make_table, schema_of
from measuring import measured

Work = Callable[[], Any]


def planned(folder: Path, files: int) -> icefield.Table:
    """The table of a number of files, 500 in a manifest, without data files."""
    path = make_table(folder / f"planned-{files}", manifests=files // 500, files=500)
    return icefield.open_table(f"file://{path}")


def new_table(schema: Any, **options: Any) -> icefield.Table:
    """An empty table in memory."""
    catalog = icefield.load_catalog("check", type="directory", warehouse=f"memory://{uuid.uuid4().hex}")
    catalog.create_namespace("db")
    return catalog.create_table("db.t", schema, **options)


def rows(count: int) -> pa.Table:
    """Rows with a number, a key of 100 values, a double and a string."""
    numbers = np.arange(count)
    text = pa.array(np.char.mod("value %d", numbers % 1000))
    return pa.table({"id": numbers, "key": numbers % 100, "value": numbers / 7, "text": text})


def start(folder: Path, times: int) -> Work:
    table = new_table_on_disk(folder, "start", 1)
    code = f"import icefield; icefield.load_catalog('c', type='directory', warehouse={table!r}).load_table('db.t')"

    def work() -> None:
        for _ in range(times):
            subprocess.run([sys.executable, "-c", code], check=True)

    return work


def new_table_on_disk(folder: Path, name: str, count: int) -> str:
    """The warehouse with a table of so many files of 2,000 rows."""
    warehouse = f"file://{folder}/{name}-{count}"
    catalog = icefield.load_catalog("check", type="directory", warehouse=warehouse, **{"file.sync": "false"})
    if not catalog.table_exists("db.t"):
        catalog.create_namespace("db")
        table = catalog.create_table("db.t", rows(1).schema)
        with table.transaction() as tx:
            for _ in range(count):
                tx.append(rows(2000))
    return warehouse


def plan_cold(folder: Path, files: int) -> Work:
    table = planned(folder, files)

    def work() -> None:
        for _ in range(4):
            icefield.clear_caches()
            assert len(list(table.scan("id = 5").plan_files())) == 1
            assert table.scan().count()

    return work


def plan_warm(folder: Path, files: int) -> Work:
    table = planned(folder, files)
    list(table.scan().plan_files())

    def work() -> None:
        for number in range(80):
            list(table.scan(f"id = {number}").plan_files())
        for _ in range(4):
            list(table.scan().plan_files())

    return work


def inspect(folder: Path, files: int) -> Work:
    table = planned(folder, files)

    def work() -> None:
        for _ in range(5):
            table.inspect.files()
            table.inspect.partitions()

    return work


def doctor(folder: Path, files: int) -> Work:
    from icefield_maintenance.doctor.tables import examine_table

    table = planned(folder, files)

    def work() -> None:
        icefield.clear_caches()
        list(examine_table(table, sample=0))

    return work


def expire(folder: Path, commits: int) -> Work:
    table = new_table(schema_of(4), properties={"commit.manifest-merge.enabled": "true"})
    for number in range(commits):
        added = [data_file(table.location(), table.schema(), number, 0)]
        with table.transaction() as tx:
            tx.update_snapshot().merge_append().append_fresh(_unpartitioned(added)).commit()

    def work() -> None:
        icefield.clear_caches()
        table.maintenance.expire_snapshots(2**60, dry_run=True)

    return work


def _unpartitioned(files: list[Any]) -> list[Any]:
    from dataclasses import replace

    return [replace(file, partition=()) for file in files]


def commit(folder: Path, commits: int) -> Work:
    batch = rows(1)

    def work() -> None:
        table = new_table(batch.schema)
        for _ in range(commits):
            table.append(batch)

    return work


def write(folder: Path, count: int) -> Work:
    data = rows(count)

    def work() -> None:
        new_table(data.schema, partition_spec=["key"]).append(data)

    return work


def read(folder: Path, count: int) -> Work:
    table = new_table(rows(1).schema)
    table.append(rows(count))

    def work() -> None:
        table.scan("value > 5 and text != 'value 7'").to_arrow()

    return work


def deletes(folder: Path, files: int) -> Work:
    """Equality deletes of one key in each file, and position deletes of one row of each."""
    table = new_table(rows(1).schema, properties={"format-version": "2", "write.delete.mode": "merge-on-read"})
    with table.transaction() as tx:
        for _ in range(files):
            tx.append(rows(100))
    table.delete("id = 7")
    for number in range(5):
        table.delete_by_equality(pa.table({"id": np.full(1, 10 + number)}), ["id"])

    def work() -> None:
        icefield.clear_caches()
        table.scan().to_arrow()

    return work


def overwrite(folder: Path, count: int) -> Work:
    data = rows(count)

    def work() -> None:
        table = new_table(data.schema)
        table.append(data)
        table.delete("key = 7")
        table.upsert(data.slice(0, count // 10), ["id"])

    return work


WORKLOADS: dict[str, tuple[Callable[[Path, int], Work], int]] = {
    "start": (start, 1),
    "plan, cold": (plan_cold, 5_000),
    "plan, warm": (plan_warm, 5_000),
    "inspect": (inspect, 5_000),
    "doctor": (doctor, 5_000),
    "expire": (expire, 100),
    "commit": (commit, 50),
    "write": (write, 200_000),
    "read": (read, 1_000_000),
    "deletes": (deletes, 50),
    "overwrite": (overwrite, 200_000),
}


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    costs: dict[str, list[dict[str, float]] | None] = {}
    for name in sys.argv[2:] or WORKLOADS:
        make, size = WORKLOADS[name]
        try:
            works = [make(folder, size * times) for times in (1, 2)]
            works[0]()  # what is done once in a process is not measured
            costs[name] = [
                min((asdict(measured(work)) for _ in range(2)), key=lambda cost: cost["cpu"]) for work in works
            ]
        except Exception as error:  # an older release may lack a name
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
            costs[name] = None
    print(json.dumps(costs))


if __name__ == "__main__":
    main()
