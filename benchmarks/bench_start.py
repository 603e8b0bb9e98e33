"""CPU time of whole processes that load or scan a small table, next to PyIceberg, delta-rs and ``import pyarrow``.

    python benchmarks/bench_start.py [--runs 10] [--python PYTHON]

The table has one row and lies in a SQL catalog in SQLite. ``--python`` names the interpreter of an environment without
peers, in which Icefield runs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import deltalake
import pyarrow as pa
from harness import compare, main
from icefield import load_catalog

LOAD = "import icefield\ntable = icefield.load_catalog('start').load_table('db.t')\n"
PYICEBERG = "from pyiceberg.catalog import load_catalog\ntable = load_catalog('start', **{}).load_table('db.t')\n"
DELTA = "import deltalake\ntable = deltalake.DeltaTable({!r})\n"
END = "\nimport os\nos._exit(0)"
"""delta-rs sometimes aborts when Python ends after a scan."""

SCAN = "assert table.scan().to_arrow().num_rows == 1"


def process(*command: str | Path) -> Callable[[], None]:
    return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL) and None


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        properties = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}
        rows = pa.table({"id": [1], "name": ["a"]})
        with load_catalog("start", **properties) as catalog:
            catalog.create_namespace("db")
            catalog.create_table_as("db.t", rows)
        deltalake.write_deltalake(f"{folder}/delta", rows)
        settings = "".join(f'{key} = "{value}"\n' for key, value in properties.items())
        Path(folder, "icefield.toml").write_text(f"[catalog.start]\n{settings}", "utf-8")
        os.environ["ICEFIELD_CONFIG"] = f"{folder}/icefield.toml"
        steps(given.python, given.runs, PYICEBERG.format(properties), DELTA.format(f"{folder}/delta"))


def steps(python: Path, runs: int, pyiceberg: str, delta: str) -> None:
    def beside(name: str, ours: Callable[[], None], theirs: Callable[[], None], floor: float | None = None) -> None:
        made = compare(name, ours, theirs, runs=runs, floor=floor, clock=time.process_time)
        print(f"    the least of ours: {min(cost.cpu for cost in made.costs):.3f} s")

    load, scan = process(python, "-c", LOAD), process(python, "-c", LOAD + SCAN)
    command = python.with_name("icefield")
    bare = process(python, "-c", "import pyarrow")
    beside("load, import pyarrow", load, bare, 1 / 3)
    beside("scan, import pyarrow", scan, bare, 1 / 5)
    beside("icefield --version, import pyarrow", process(command, "--version"), bare, 1)
    beside("icefield describe, import pyarrow", process(command, "--catalog", "start", "describe", "db.t"), bare, 1 / 4)
    beside("load, PyIceberg", load, process(sys.executable, "-c", pyiceberg), 2)
    beside("scan, PyIceberg", scan, process(sys.executable, "-c", pyiceberg + SCAN), 1.5)
    beside("load, delta-rs", load, process(sys.executable, "-c", delta))
    beside("scan, delta-rs", scan, process(sys.executable, "-c", delta + "table.to_pyarrow_table()" + END))


if __name__ == "__main__":
    main(run)
