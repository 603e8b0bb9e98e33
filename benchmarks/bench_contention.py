"""Sixteen processes that append to one table, next to a single process that appends alone.

    python benchmarks/bench_contention.py [--writers 16] [--seconds 20] [--strategies create sql] [--log]

Prints the commits a second of all writers, also as a part of a single writer's rate; the longest time of a commit; the
fewest and most commits of a writer; and the attempts for each commit. It prints the same under the former waits, which
doubled and then kept growing. ``--log`` prints every pause. The floor is 60 % of one writer's rate.

Each writer first appends to a table of its own, so that no race begins with loading code. A rate counts the commits
that were made within the time; a commit that began in it and ended later counts only for the longest time.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
from icefield.commit.retry_policy import RetryPolicy

SCHEMA = pa.schema([("id", pa.int64()), ("writer", pa.int32())])
FLOOR = 0.6
RETRIES = {"commit.retry.num-retries": "10000", "commit.manifest-merge.enabled": "false"}


def catalog_of(strategy: str, folder: Path) -> icefield.Catalog:
    """Return a catalog on local disk that commits its tables by a strategy."""
    place = f"file://{folder}/warehouse"
    if strategy == "sql":
        return icefield.load_catalog("c", type="sql", uri=f"sqlite:///{folder}/c.db", warehouse=place)
    return icefield.load_catalog("c", type="directory", warehouse=place, commit=strategy)


def growing(self: RetryPolicy, attempt: int, draw: Any = random.uniform, *, attempt_seconds: float = 0.0) -> float:
    """The waits as they were."""
    doublings = min(attempt - 1, 5) + 0.1 * max(0, attempt - 6)
    scale = max(self.min_wait_ms, attempt_seconds * 500)
    return draw(0, min(self.max_wait_ms, scale * 2 ** min(doublings, 40))) / 1000


def write(strategy: str, folder: Path, number: int, seconds: float, waits: str) -> None:
    """One writer: say when it is ready, append until the time is over, and print how long each commit took."""
    pauses: list[tuple[int, float]] = []
    policy = growing if waits == "growing" else RetryPolicy.wait_seconds

    def noted(self: RetryPolicy, attempt: int, *args: Any, **kwargs: Any) -> float:
        pause = policy(self, attempt, *args, **kwargs)
        pauses.append((attempt, round(pause, 3)))
        return pause

    RetryPolicy.wait_seconds = noted  # type: ignore[method-assign]
    catalog = catalog_of(strategy, folder)
    rows = pa.table({"id": [number], "writer": [number]}, schema=SCHEMA)
    own = catalog.create_table(f"db.of_{number}", SCHEMA, properties=RETRIES)
    for _ in range(3):
        own.append(rows)
    pauses.clear()
    table = catalog.load_table("db.t")
    print("ready", flush=True)
    end = float(input()) + seconds
    took: list[float] = []
    in_time, cpu = 0, time.process_time()
    while time.time() < end:
        began = time.perf_counter()
        table.append(rows)
        took.append(time.perf_counter() - began)
        in_time += time.time() <= end
    print(json.dumps({"took": took, "in_time": in_time, "pauses": pauses, "cpu": time.process_time() - cpu}))


def race(strategy: str, writers: int, seconds: float, waits: str) -> list[dict[str, Any]]:
    """Run some writers for the time, and return the results of each."""
    folder = Path(tempfile.mkdtemp(prefix="icefield-bench-contention-"))
    try:
        catalog = catalog_of(strategy, folder)
        catalog.create_namespace("db")
        catalog.create_table("db.t", SCHEMA, properties=RETRIES)
        command = [sys.executable, __file__, "--writer", strategy, str(folder), str(seconds), waits]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        running = [subprocess.Popen([*command, str(number)], **pipes) for number in range(writers)]
        for one in running:
            assert one.stdout is not None
            one.stdout.readline()
        start = f"{time.time()}\n"
        for one in running:
            assert one.stdin is not None
            one.stdin.write(start)
            one.stdin.flush()
        made = [json.loads(one.communicate()[0]) for one in running]
        assert catalog.load_table("db.t").scan().count() == sum(len(one["took"]) for one in made)
        return made
    finally:
        shutil.rmtree(folder)


def report(name: str, made: list[dict[str, Any]], seconds: float, alone: float, *, log: bool = False) -> float:
    """Print one race; give the part of a single writer's rate."""
    counts = sorted(len(one["took"]) for one in made)
    took = [each for one in made for each in one["took"]]
    if not took:
        raise SystemExit(f"{name}: no commit in {seconds} s")
    rate = sum(one["in_time"] for one in made) / seconds
    lost = sum(len(one["pauses"]) for one in made)
    cpu = sum(one["cpu"] for one in made)
    print(
        f"{name:<28} {rate:6.1f} commits/s, {rate / alone if alone else 1:5.2f} of one; a commit takes "
        f"{1000 * statistics.median(took):.0f} ms, longest {max(took):.2f} s; commits of a writer {counts[0]} "
        f"to {counts[-1]}; {(lost + len(took)) / len(took):.1f} attempts each; CPU {cpu:.1f} s",
        flush=True,
    )
    for number, one in enumerate(made) if log else ():
        print(f"  writer {number}: {' '.join(f'{attempt}:{pause}' for attempt, pause in one['pauses'])}")
    return rate


def main() -> int:
    if sys.argv[1:2] == ["--writer"]:
        strategy, folder, seconds, waits, number = sys.argv[2:]
        write(strategy, Path(folder), int(number), float(seconds), waits)
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--strategies", nargs="*", default=["create", "sql"])
    parser.add_argument("--log", action="store_true")
    given = parser.parse_args()
    missed = []
    for strategy in given.strategies:
        alone = report(f"{strategy}: one writer", race(strategy, 1, given.seconds, "now"), given.seconds, 0)
        for waits in ("growing", "now"):
            made = race(strategy, given.writers, given.seconds, waits)
            name = f"{strategy}: {given.writers} writers, {'before' if waits == 'growing' else 'now'}"
            rate = report(name, made, given.seconds, alone, log=given.log)
        starved = any(not one["took"] for one in made)
        if rate < FLOOR * alone or starved:
            missed.append(strategy)
    print("FAIL " + ", ".join(missed) if missed else "PASS")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
