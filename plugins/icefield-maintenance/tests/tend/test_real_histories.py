"""Small real tables, tended for real each hour, cost as much as the simulator says."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa
import pytest
from icefield import Table
from icefield.metadata import Operation
from icefield_maintenance.tend import Goals, Policy, Tending
from icefield_maintenance.tend.histories import recorded
from icefield_maintenance.tend.simulator import NEVER, History, Schedule, SimulatedCosts, simulate
from tables import memory_catalog, new_table

NAMES = ("files-per-scan", "deleted-rows", "delete-files")
SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("payload", pa.binary())])
HOURS = 18
Change = Callable[[Table, random.Random, int], None]


def rows(rng: random.Random, hour: int, count: int) -> pa.Table:
    """Rows of 2 KiB each, so that a file's size follows from its rows. Ids are not used twice."""
    ids = [hour * 1000 + number for number in range(count)]
    days = [str(hour // 8)] * count
    return pa.table({"id": ids, "day": days, "payload": [rng.randbytes(2048) for _ in ids]}, schema=SCHEMA)


def append(table: Table, rng: random.Random, hour: int) -> None:
    table.append(rows(rng, hour, rng.randint(20, 40)))


def append_and_delete(table: Table, rng: random.Random, hour: int) -> None:
    append(table, rng, hour)
    if hour % 3 == 2:  # a fifth of all rows of the day
        table.refresh().delete(f"day = '{hour // 8}' and id in ({', '.join(map(str, gone_of(table, hour)))})")


def gone_of(table: Table, hour: int) -> list[int]:
    """Every fifth row of a day, the same share of each of its files."""
    return sorted(table.scan(f"day = '{hour // 8}'").to_arrow()["id"].to_pylist())[::5]


def append_or_replace(table: Table, rng: random.Random, hour: int) -> None:
    if hour % 8 == 7:
        table.overwrite(rows(rng, hour, 50), f"day = '{hour // 8}'")
    else:
        append(table, rng, hour)


def tended(goals: Goals | None, change: Change, **properties: str) -> tuple[Table, SimulatedCosts]:
    """A real table, and its costs over its hours: what an hourly scan of all files opens and reads, and rewrites."""
    catalog = memory_catalog()
    table = new_table(["day"], catalog=catalog, schema=SCHEMA, properties=properties)
    stated = {} if goals is None else {name: getattr(goals, name.replace("-", "_")) for name in NAMES}
    tending = Tending(catalog, Policy.from_mapping({"rules": [{"tables": "db.t", **stated}]}))
    rng = random.Random(1)
    costs = SimulatedCosts()
    for hour in range(HOURS):
        for each in tending.run() if hour and goals is not None else ():
            assert each.outcome == "done"
            costs += SimulatedCosts(rewritten_bytes=each.rewritten_bytes)
        change(table.refresh(), rng, hour)
        costs += scan(table.refresh())
    rewrites = [each.summary for each in table.snapshots() if each.operation is Operation.REPLACE]
    rewritten = sum(int(each.get("deleted-data-files", 0)) for each in rewrites)
    return table, replace(costs, rewritten_files=rewritten)


def scan(table: Table) -> SimulatedCosts:
    """The costs of a scan of all files; each partition needs one."""
    tasks = list(table.scan().plan_files())
    nbytes = sum(task.file.file_size_in_bytes for task in tasks)
    deletes = {(each.file_path, each.content_offset) for task in tasks for each in task.delete_files}
    requests = len(tasks) + len(deletes)
    days = {task.file.partition for task in tasks}
    return SimulatedCosts(scan_requests=requests, scan_bytes=nbytes, debt=(requests - len(days)) / HOURS)


def by_hour(history: History, hours: list[int]) -> History:
    """The history with each commit at its hour; a scan reads all partitions."""
    made = sorted({each.hour for each in history.commits})
    at = dict(zip(made, hours, strict=True))
    commits = tuple(replace(each, hour=at[each.hour]) for each in history.commits)
    return replace(history, commits=commits, scanned_partitions=HOURS)


def hours_of(change: Change) -> Iterator[int]:
    """The hour of each commit."""
    for hour in range(HOURS):
        yield hour
        if change is append_and_delete and hour % 3 == 2:
            yield hour


COPY = {"write.delete.mode": "copy-on-write"}
MERGE = {"write.delete.mode": "merge-on-read"}
KINDS: dict[str, tuple[Change, dict[str, str]]] = {
    "appends": (append, {}),
    "overwrites": (append_or_replace, {}),
    "copy on write": (append_and_delete, COPY),
    # Nobody knows the deleted rows of a data file by a delete file of several: the goal deleted-rows leaves them out.
    "position deletes": (append_and_delete, {**MERGE, "format-version": "2", "write.delete.granularity": "file"}),
    "deletion vectors": (append_and_delete, {**MERGE, "format-version": "3"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("goals", [None, Goals(files_per_scan=2, deleted_rows=0.15, delete_files=2)], ids=["no", "yes"])
def test_a_simulation_costs_what_the_real_table_cost(kind: str, goals: Goals | None) -> None:
    change, properties = KINDS[kind]
    table, real = tended(goals, change, **properties)
    history = by_hour(recorded(table), [*hours_of(change)])
    simulated = simulate([history], NEVER if goals is None else Schedule(goals=goals), days=HOURS / 24)
    counts = [(each.scan_requests, each.rewritten_files, each.debt) for each in (simulated, real)]
    assert counts[0] == pytest.approx(counts[1])
    assert (real.rewritten_files > 0) == (goals is not None)
    # One file of many rows is smaller than the files that it replaces.
    assert simulated.scan_bytes == pytest.approx(real.scan_bytes, rel=0.0 if goals is None else 0.1)
    assert simulated.rewritten_bytes == pytest.approx(real.rewritten_bytes, rel=0.1)


@pytest.mark.parametrize("stated", [0, 2**62])
def test_a_table_with_impossible_sizes_has_a_history(stated: int) -> None:
    table = new_table()
    table.append(pa.table({"id": [1, 2], "kind": ["a", "b"], "value": [0.5, 1.5]}))
    [file] = [task.file for task in table.scan().plan_files()]
    impossible = replace(file, file_path=f"{file.file_path}-2", file_size_in_bytes=stated, record_count=stated)
    with table.transaction() as tx:
        tx.update_snapshot().fast_append().append_file(impossible).commit()
    costs = simulate([recorded(table.refresh())], NEVER, days=1)
    assert costs.scan_bytes >= 0
