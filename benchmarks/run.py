"""Run benchmarks, each in a process of its own, and say which reached their factors: ``run.py [NAME ...]``.

``make bench`` runs all. With ``--history VERSION`` the ratios go to ``benchmarks/history/VERSION.json``, one file a
release. Ratios to a peer, measured in turns on one machine, can be compared between machines; times cannot.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LIBRARIES = ("pyarrow", "numpy", "pyiceberg", "fastavro")
ABOUT = "How many times as fast as its peer Icefield is: the median of neighbouring runs on one machine."


def run(path: Path) -> tuple[bool, dict[str, Any]]:
    """Whether a benchmark reached its factors, and its ratios by workload."""
    print(f"\n== {path.name}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.json"
        environment = {**os.environ, "ICEFIELD_BENCHMARK_RESULTS": str(results)}
        passed = subprocess.run([sys.executable, str(path)], check=False, env=environment).returncode == 0
        return passed, json.loads(results.read_text("utf-8")) if results.exists() else {}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="as 'avro' for bench_avro.py; default: all")
    parser.add_argument("--history", metavar="VERSION", help="write the ratios of a release")
    given = parser.parse_args()
    paths = [HERE / f"bench_{name}.py" for name in given.names] or sorted(HERE.glob("bench_*.py"))
    found = {path.stem.removeprefix("bench_"): run(path) for path in paths}
    if given.history:
        kept = {
            "version": given.history,
            "about": ABOUT,
            "python": platform.python_version(),
            "libraries": {name: version(name) for name in LIBRARIES},
            "ratios": {name: ratios for name, (_, ratios) in found.items()},
        }
        (HERE / "history").mkdir(exist_ok=True)
        (HERE / "history" / f"{given.history}.json").write_text(json.dumps(kept, indent=2) + "\n", "utf-8")
    missed = [name for name, (passed, _) in found.items() if not passed]
    print(f"\n{'missed: ' + ', '.join(missed) if missed else 'every factor was reached'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
