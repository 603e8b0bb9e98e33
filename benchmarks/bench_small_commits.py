"""Many small appends: the CPU time of each, and several writers of one table, next to delta-rs.

    python benchmarks/bench_small_commits.py [--commits 500] [--appends 160] [--writers 8]

One writer makes all commits, of one row each; the CPU time of the process is measured for each commit. Then writers
share the appends, with default settings: threads with a table each, threads with one ``append_queue``, and processes.

The dearest of a hundred commits takes at most six times the CPU time of a usual one. No append of several writers is
refused, and a queue reaches three times the rate of one writer.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from icefield.errors import CommitFailed

SCHEMA = pa.schema([("id", pa.int64()), ("kind", pa.string()), ("value", pa.float64())])
ROW = pa.table({"id": [1], "kind": ["a"], "value": [0.5]}, schema=SCHEMA)
MOST_TIMES = 6.0
LEAST_RATE = 3.0

Append = Callable[[], Any]


def opened(folder: Path) -> icefield.Catalog:
    """A catalog whose files are flushed by the system, as those of the peer."""
    properties = {"warehouse": f"file://{folder}/warehouse", "file.sync": "false"}
    return icefield.load_catalog("c", type="sql", uri=f"sqlite:///{folder}/c.db", **properties)


def new_table(folder: Path) -> icefield.Table:
    """A new table with a row, so that no measurement begins with loading code."""
    catalog = opened(folder)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA)
    table.append(ROW)
    return table


def new_peer(folder: Path) -> Append:
    """A new table of the peer; a call appends to it."""
    write_deltalake(str(folder / "delta"), ROW)
    return appends_to_peer(folder)


def appends_to_peer(folder: Path) -> Append:
    """A writer of the peer's table."""
    table = DeltaTable(str(folder / "delta"))
    return lambda: write_deltalake(table, ROW, mode="append")


def report_alone(name: str, append: Append, commits: int) -> float:
    """Make the commits and print their times; return the dearest of a hundred as a multiple of the median."""
    cpu, elapsed = [], []
    for _ in range(commits):
        began, since = time.process_time(), time.perf_counter()
        append()
        cpu.append(time.process_time() - began)
        elapsed.append(time.perf_counter() - since)
    middle, dear = statistics.median(cpu), sorted(cpu)[int(0.99 * commits)]
    waited = f"{1000 * statistics.median(elapsed):.1f} / {1000 * sorted(elapsed)[int(0.99 * commits)]:.0f}"
    print(
        f"{name:<26} CPU p50 {1000 * middle:5.1f} p99 {1000 * dear:5.0f} ms, {dear / middle:4.1f} times; elapsed "
        f"{waited} ms; {commits / sum(elapsed):.1f}/s",
        flush=True,
    )
    return dear / middle


def refused_of(append: Append, count: int, error: type[Exception]) -> int:
    """Append so many times, and return how many appends were refused."""
    refused = 0
    for _ in range(count):
        try:
            append()
        except error:
            refused += 1
    return refused


def report_together(name: str, appends: list[Append], count: int, error: type[Exception]) -> tuple[float, int]:
    """Share appends among threads; print and return the rate, and how many were refused."""
    began, cpu = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(len(appends)) as pool:
        refused = sum(pool.map(lambda append: refused_of(append, count // len(appends), error), appends))
    return _reported(name, count, refused, time.perf_counter() - began, time.process_time() - cpu)


def report_processes(folder: Path, writers: int, count: int) -> int:
    """The same by processes; return how many appends were refused."""
    command = [sys.executable, __file__, "--writer", str(folder), str(count // writers)]
    began = time.perf_counter()
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(writers)]
    made = [json.loads(one.communicate()[0]) for one in running]
    refused, cpu = sum(one["refused"] for one in made), sum(one["cpu"] for one in made)
    return _reported(f"{writers} processes", count, refused, time.perf_counter() - began, cpu)[1]


def _reported(name: str, count: int, refused: int, seconds: float, cpu: float) -> tuple[float, int]:
    rate = (count - refused) / seconds
    each = 1000 * cpu / max(1, count - refused)
    print(f"{name:<26} {rate:6.1f} appends/s, {each:5.1f} ms CPU each, {refused} of {count} refused", flush=True)
    return rate, refused


def run(commits: int, count: int, writers: int, folder: Path) -> list[str]:
    """Measure, and return the limits that were missed."""
    table, peer = new_table(folder), new_peer(folder)
    times = report_alone("one writer", lambda: table.append(ROW), commits)
    report_alone("one writer, delta-rs", peer, commits)
    alone, _ = report_together("one writer again", [lambda: table.append(ROW)], count, CommitFailed)
    loaded = [opened(folder).load_table("db.t") for _ in range(writers)]
    appends: list[Append] = [lambda one=one: one.append(ROW) for one in loaded]  # type: ignore[misc]
    _, refused = report_together(f"{writers} threads", appends, count, CommitFailed)
    queue = table.append_queue()
    rate, queued = report_together(f"{writers} threads, queue", [lambda: queue.append(ROW)] * writers, count, Exception)
    peers = [appends_to_peer(folder) for _ in range(writers)]
    report_together(f"{writers} threads, delta-rs", peers, count, Exception)
    refused += queued + report_processes(folder, writers, count)
    held = table.refresh().scan().count()
    missed = []
    if times > MOST_TIMES:
        missed.append(f"p99 takes {times:.1f} times the median")
    if refused:
        missed.append(f"{refused} appends were refused")
    if rate < LEAST_RATE * alone:
        missed.append(f"the queue has {rate / alone:.1f} times the rate of one writer")
    if held != 1 + commits + 4 * count - refused:
        missed.append(f"the table has {held} rows")
    return missed


def main() -> int:
    if sys.argv[1:2] == ["--writer"]:
        table = opened(Path(sys.argv[2])).load_table("db.t")
        began = time.process_time()
        refused = refused_of(lambda: table.append(ROW), int(sys.argv[3]), CommitFailed)
        print(json.dumps({"refused": refused, "cpu": time.process_time() - began}))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=500)
    parser.add_argument("--appends", type=int, default=160)
    parser.add_argument("--writers", type=int, default=8)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="icefield-bench-small-commits-"))
    try:
        missed = run(given.commits, given.appends, given.writers, folder)
    finally:
        shutil.rmtree(folder)
    print("FAIL: " + "; ".join(missed) if missed else "PASS")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
