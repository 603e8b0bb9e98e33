"""Run benchmarks, each in a process of its own, and compare them with the last release: ``run.py [NAME ...]``.

``make bench`` runs all, and exits with 1 if a benchmark missed its factor. Each run writes one file of results: for
each workload the ratio to its peer, and our CPU and elapsed seconds, peak memory in MiB, and requests to storage.
``--history VERSION`` writes them to ``benchmarks/history/VERSION.json``, one file a release. Ratios to a peer, measured
in turns on one machine, can be compared between machines; times cannot. So times are compared only with a file of the
same machine.

    python benchmarks/run.py avro scan                  compare with the last release
    python benchmarks/run.py avro --against build/a.json
    python benchmarks/run.py --draw                     draw the history of all ratios, and run nothing
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
HISTORY = HERE / "history"
LIBRARIES = ("pyarrow", "numpy", "pyiceberg", "fastavro")
OUTPUT = HERE.parent / "build" / "benchmarks.json"
ABOUT = (
    "How many times as fast as its peer Icefield is, by workload: the median of neighbouring runs on one machine. "
    "Since 0.2.0 also CPU and elapsed seconds, peak memory in MiB, and requests of one run of Icefield."
)

Results = dict[str, dict[str, dict[str, float]]]
"""By benchmark and workload: ``ratio``, ``cpu``, ``wall``, ``memory``, ``requests``."""


def run(path: Path) -> tuple[bool, dict[str, dict[str, float]]]:
    """Whether a benchmark reached its factors, and its results by workload."""
    print(f"\n== {path.name}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.json"
        environment = {**os.environ, "ICEFIELD_BENCHMARK_RESULTS": str(results)}
        passed = subprocess.run([sys.executable, str(path)], check=False, env=environment).returncode == 0
        return passed, json.loads(results.read_text("utf-8")) if results.exists() else {}


def releases() -> list[Path]:
    """The files of releases, the oldest first."""
    return sorted(HISTORY.glob("*.json"), key=lambda path: [int(part) for part in path.stem.split(".")])


def machine() -> str:
    """A name of this machine, for files that compare times."""
    return f"{platform.node()}, {platform.machine()}, {os.cpu_count()} CPUs"


def compared(new: dict[str, Any], old: dict[str, Any]) -> list[str]:
    """A table of the workloads of two files: ratios to peers, and our costs if the machine is the same."""
    fields = ("ratio", "cpu", "wall", "memory", "requests") if new["machine"] == old.get("machine") else ("ratio",)
    lines = [f"{'workload':<58}" + "".join(f"{field:>24}" for field in fields)]
    for name, workloads in new["results"].items():
        for workload, found in workloads.items():
            before = old["results"].get(name, {}).get(workload)
            if before is not None:
                cells = "".join(f"{_change(before.get(field), found.get(field)):>24}" for field in fields)
                lines.append(f"{name + ': ' + workload:<58}{cells}")
    return lines


def _change(before: float | None, after: float | None) -> str:
    if before is None or after is None:
        return "-"
    percent = f" {after / before - 1:+.0%}" if before else ""
    return f"{before:g} > {after:g}{percent}"


def drawn(files: Sequence[tuple[str, Results]]) -> list[str]:
    """A table of ratios: one line a workload, one column a release, and a bar that is as long as the last ratio."""
    named = dict.fromkeys((name, workload) for _, results in files for name in results for workload in results[name])
    lines = [f"{'workload':<58}" + "".join(f"{version:>10}" for version, _ in files)]
    for name, workload in named:
        ratios = [results.get(name, {}).get(workload, {}).get("ratio") for _, results in files]
        cells = "".join("         -" if ratio is None else f"{ratio:>10.2f}" for ratio in ratios)
        lines.append(f"{name + ': ' + workload:<58}{cells}  {'#' * min(40, round(4 * (ratios[-1] or 0)))}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="as 'avro' for bench_avro.py; default: all")
    parser.add_argument("--history", metavar="VERSION", help="write the results of a release")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the file of results; default: %(default)s")
    parser.add_argument("--against", type=Path, help="the file to compare with; default: the last release")
    parser.add_argument("--draw", action="store_true", help="draw the history, and run nothing")
    given = parser.parse_args()
    if given.draw:
        read = [(path.stem, json.loads(path.read_text("utf-8"))["results"]) for path in releases()]
        print("\n".join(drawn(read)))
        return 0
    against = given.against or next(iter(reversed(releases())), None)
    before = None if against is None else json.loads(against.read_text("utf-8"))
    paths = [HERE / f"bench_{name}.py" for name in given.names] or sorted(HERE.glob("bench_*.py"))
    found = {path.stem.removeprefix("bench_"): run(path) for path in paths}
    document = {
        "version": given.history or "unreleased",
        "about": ABOUT,
        "machine": machine(),
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
        "results": {name: results for name, (_, results) in found.items()},
    }
    target = HISTORY / f"{given.history}.json" if given.history else given.output
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
    if before is not None:
        print(f"\n== {against.stem} > {target}")
        print("\n".join(compared(document, before)))
    missed = [name for name, (passed, _) in found.items() if not passed]
    print(f"\n{'missed: ' + ', '.join(missed) if missed else 'every factor was reached'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
