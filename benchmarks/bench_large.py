"""Whole-table work on tables of 10^5, 10^6 or 10^7 files: CPU seconds and peak memory, each step in its own process.

    python benchmarks/bench_large.py [--files 100000 1000000] [--steps doctor expire] [--folder DIR]

Steps run in the order of ``STEPS``, each with cold caches of at most 512 MiB; imports are not measured. A step fails
above 2 GiB, or if it takes more than 12 times the CPU time of the tenth of its files. The table of ``plan`` alone takes
155 bytes a file, so at 10^7 files only ``tasks`` plans. The data files are not there; the doctor is told that each
exists. PyIceberg and Polars with PyIceberg's planning, for six minutes at most, and Iceberg's Java library run beside,
up to 10^6 files. A step of Java is a whole JVM with one plan; a warm one is the last of five plans in one JVM.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import icefield
from icefield.abc import FileInfo
from icefield.builtin import local
from icefield.manifest import resize_caches
from large_tables import large_table
from make_table import data_file
from measuring import Cost, measured

MOST_MIB = 2048
CACHE_MIB = 512
PLAN_UP_TO = 1_000_000
MOST_GROWTH = 12.0
LEAST_SECONDS = 0.2
PEERS_UP_TO = 1_000_000
PEER_SECONDS = 360


def opened(folder: Path) -> icefield.Table:
    """The table of a folder."""
    return icefield.load_catalog("large", type="directory", warehouse=f"file://{folder}").load_table("db.t")


def _found(location: str) -> FileInfo | None:
    """The size of each data file of ``make_table``, as if it existed; other files are looked up."""
    if not location.endswith(".parquet"):
        return _look(location)
    return FileInfo(location, 128_000_000 + int(location.rpartition("/")[2].split("-", 2)[1]), 0)


_look = local._look


def _examine(table: icefield.Table) -> None:
    from icefield_maintenance.doctor.tables import examine_table

    local._look = _found
    for group in examine_table(table, sample=0):
        for finding in group.findings:
            assert finding.result.name in ("OK", "WARNING", "SKIPPED"), finding


def _append(table: icefield.Table) -> None:
    with table.transaction() as tx:
        added = [data_file(table.location(), table.schema(), 10**9, 0)]
        tx.update_snapshot().merge_append().append_fresh(added).commit()


def _metadata(folder: Path) -> str:
    return f"{folder}/db/t/metadata/v1.metadata.json"


def _peer(folder: Path) -> Any:
    from pyiceberg.table import StaticTable

    return StaticTable.from_metadata(f"file://{_metadata(folder)}")


def _polars_filter(folder: Path) -> Any:
    import polars as pl

    lazy = pl.scan_iceberg(f"file://{_metadata(folder)}", reader_override="native")
    return lazy.filter(pl.col("id") == 5).explain()


STEPS: dict[str, Callable[[Path], Any]] = {
    "load": opened,
    "plan": lambda folder: opened(folder).scan().plan_arrow(),
    "tasks": lambda folder: sum(1 for _ in opened(folder).scan().plan_files()),
    "filter": lambda folder: list(opened(folder).scan("id = 5").plan_files()),
    "count": lambda folder: opened(folder).scan().count(),
    "inspect": lambda folder: sum(len(batch) for batch in opened(folder).inspect.scan("files").to_arrow_batch_reader()),
    "doctor": lambda folder: _examine(opened(folder)),
    "append": lambda folder: _append(opened(folder)),
    "expire": lambda folder: opened(folder).maintenance.expire_snapshots(2**60, dry_run=True),
    "rewrite": lambda folder: opened(folder).maintenance.rewrite_manifests(),
}
PEERS: dict[str, Callable[[Path], Any]] = {
    "load: PyIceberg": _peer,
    "filter: PyIceberg": lambda folder: list(_peer(folder).scan("id = 5").plan_files()),
    "count: PyIceberg": lambda folder: _peer(folder).scan().count(),
    "inspect: PyIceberg": lambda folder: _peer(folder).inspect.files(),
    "filter: Polars": _polars_filter,
}
JAVA: dict[str, tuple[int, tuple[str, ...]]] = {
    "tasks: Java": (1, ()),
    "tasks: Java, warm": (5, ()),
    "filter: Java": (1, ("5",)),
    "filter: Java, warm": (5, ("5",)),
}
"""For each step the number of plans in one JVM, and the value of ``id`` to filter by."""


def _java(folder: Path, plans: int, value: tuple[str, ...]) -> Cost:
    """The cost of a JVM that plans once, or else of its last plan. The peak memory is always that of the whole JVM."""
    from servers.java_iceberg import command

    started = [*command("Plans", f"-Xmx{MOST_MIB}m", "-XX:+UseSerialGC"), _metadata(folder), str(plans), *value]
    begun = time.perf_counter()
    process = subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    lines = process.stdout.read().splitlines()
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, f"Java ended with {status}"
    tasks, cpu, wall = map(int, lines[-1].split())
    assert tasks == (1 if value else int(folder.name)), tasks
    if plans > 1:
        return Cost(cpu / 1e9, wall / 1e9, usage.ru_maxrss // 1024, 0)
    return Cost(usage.ru_utime + usage.ru_stime, time.perf_counter() - begun, usage.ru_maxrss // 1024, 0)


def step(name: str, folder: Path) -> None:
    """Run a step in this process, or in a JVM, and print its costs."""
    if name in JAVA:
        print(json.dumps(asdict(_java(folder, *JAVA[name]))))
        return
    work = {**STEPS, **PEERS}[name]
    small = folder.parent / "small"
    large_table(small, 1000)
    if name not in ("append", "rewrite"):
        work(small)  # imports are not measured
    icefield.clear_caches()
    resize_caches(CACHE_MIB << 20)
    print(json.dumps(asdict(measured(lambda: work(folder)))))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--steps", nargs="+", choices=[*STEPS, *PEERS, *JAVA])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "icefield-bench-large")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        step(given.step, given.folder)
        return 0
    print(f"{'step':<20}{'files':>12}{'CPU s':>10}{'wall s':>10}{'MiB':>8}{'requests':>10}")
    failed = False
    seconds: dict[tuple[str, int], float] = {}
    for files in given.files:
        folder = (given.folder / str(files)).resolve()
        large_table(folder, files)
        metadata = folder / "db" / "t" / "metadata"
        kept = {path.name for path in metadata.iterdir()}
        hint = metadata / "version-hint.text"
        before = hint.read_bytes() if hint.exists() else None
        names = given.steps or [*STEPS, *((*PEERS, *JAVA) if files <= PEERS_UP_TO else ())]
        names = [name for name in names if name != "plan" or files <= PLAN_UP_TO]
        try:
            for name in names:
                failed |= _run(name, files, folder, seconds)
        finally:
            for path in metadata.iterdir():
                if path.name not in kept:
                    path.unlink()
            if before is not None:
                hint.write_bytes(before)
            shutil.rmtree(given.folder / "small", ignore_errors=True)
    return 1 if failed else 0


def _run(name: str, files: int, folder: Path, seconds: dict[tuple[str, int], float]) -> bool:
    command = [sys.executable, __file__, "--step", name, "--folder", str(folder)]
    limit = PEER_SECONDS if name in PEERS else None
    try:
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        print(f"{name:<20}{files:>12,}  not done in {limit} s", flush=True)
        return False
    if done.returncode:
        print(f"{name:<20}{files:>12,}  failed", flush=True)
        return name in STEPS
    cost = json.loads(done.stdout.splitlines()[-1])
    seconds[name, files] = cost["cpu"]
    tenth = seconds.get((name, files // 10))
    wrong = ["more than 2 GiB"] if cost["memory"] > MOST_MIB else []
    if tenth is not None and cost["cpu"] > MOST_GROWTH * tenth and cost["cpu"] - 10 * tenth > LEAST_SECONDS:
        wrong.append(f"{cost['cpu'] / tenth:.1f} times the CPU of a tenth")
    figures = f"{cost['cpu']:>10.2f}{cost['wall']:>10.2f}{cost['memory']:>8}{cost['requests']:>10}"
    print(f"{name:<20}{files:>12,}{figures}  {'; '.join(wrong)}", flush=True)
    return bool(wrong) and name in STEPS


if __name__ == "__main__":
    sys.exit(main())
