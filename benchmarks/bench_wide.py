"""Planning a wide table against PyIceberg: 5,000 columns, statistics of every one of them, on local disk.

    python benchmarks/bench_wide.py [--columns 5000] [--manifests 2] [--files 50] [--runs 3] [--large]

A manifest's entry holds six maps with an item for each column. ``--large`` adds the peak memory of a plan of 1,000
files of 5,000 columns. Tables are fabricated below the temporary directory and used again.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from pathlib import Path
from typing import Any

from bench_planning import _OURS, _THEIRS, cold, peak, scan_of
from harness import compare, main
from icefield.manifest import ManifestWriter
from icefield.plugins import Plugins
from icefield.scan import TableScan
from icefield.storage import FileIO
from make_table import ROWS, SPEC, data_file, make_table, schema_of

FLOORS = {"full plan": 0.7, "column bounds": 0.7}  # of a decoder in C
MEMORY_OF_LARGE = 768  # MiB


def compare_plans(path: Path, files: int, runs: int) -> None:
    """A plan of everything and one of a single file, cold, as a table and as tasks."""
    from pyiceberg.table import StaticTable

    theirs = StaticTable.from_metadata(str(path))
    for name, row_filter in {"full plan": "", "column bounds": f"id = {files // 2 * ROWS + 17}"}.items():
        ours = scan_of(path).filter(row_filter) if row_filter else scan_of(path)
        peer = theirs.scan(row_filter) if row_filter else theirs.scan()

        def tasks(ours: TableScan = ours) -> int:
            return sum(1 for _ in ours.plan_files())

        def their_tasks(peer: Any = peer) -> int:
            return sum(1 for _ in peer.plan_files())

        assert tasks() == their_tasks() == ours.plan_arrow().num_rows == (1 if row_filter else files)
        compare(f"{name}: table", cold(ours.plan_arrow), their_tasks, runs=runs, floor=FLOORS[name])
        compare(f"{name}: tasks", cold(tasks), their_tasks, runs=runs, floor=FLOORS[name])


def write(folder: Path, columns: int, files: int) -> None:
    """How long a manifest of such files takes to write; the peer's takes Python objects too, so it is not timed."""
    schema = schema_of(columns)
    many = [data_file(f"file://{folder}", schema, i, 7) for i in range(files)]
    io, numbers = FileIO(Plugins.installed()), itertools.count()

    def written(some: int) -> None:
        with ManifestWriter(io, f"file://{folder}/w-{next(numbers)}.avro", SPEC, schema, 2, 1) as writer:
            writer.add(many[:some])

    # Twice the files take twice the time: half of them stand in for a peer.
    compare("writing, against half as many", lambda: written(files), lambda: written(files // 2), floor=0.35)


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, default=5000)
    parser.add_argument("--manifests", type=int, default=2)
    parser.add_argument("--files", type=int, default=50, help="in each manifest")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--large", action="store_true")
    given = parser.parse_args()
    folder = Path(tempfile.gettempdir()) / "icefield-bench-wide"
    name = f"{given.columns}-{given.manifests}-{given.files}"
    path = make_table(folder / name, given.manifests, given.files, given.columns)
    compare_plans(path, given.manifests * given.files, given.runs)
    (count, ours), (same, theirs) = peak(_OURS, path), peak(_THEIRS, path)
    assert count == same
    print(f"{count:,} tasks kept: ours {ours:,} MiB, peer {theirs:,} MiB {'PASS' if ours <= theirs else 'FAIL'}")
    with tempfile.TemporaryDirectory() as scratch:
        write(Path(scratch), given.columns, given.files)
    if given.large:
        count, ours = peak(_OURS, make_table(folder / "large", 20, 50, 5000))
        verdict = "PASS" if ours < MEMORY_OF_LARGE else "FAIL"
        print(f"{count:,} tasks kept: ours {ours:,} MiB ({MEMORY_OF_LARGE}) {verdict}")


if __name__ == "__main__":
    main(run)
