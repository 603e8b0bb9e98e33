"""Planning against PyIceberg: 100 manifests of 1,000 files with statistics of 20 columns, on local disk.

    python benchmarks/bench_planning.py [--manifests 100] [--files 1000] [--runs 3] [--large]

``--large`` adds the peak memory of a plan of 1,000 manifests. Tables are fabricated below the temporary directory
and used again.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from harness import cold, compare, main
from icefield.metadata import decode_metadata
from icefield.plugins import Plugins
from icefield.scan import TableScan
from icefield.storage import FileIO
from make_table import FIRST_DAY, ROWS, make_table

_OURS = """
import icefield
from icefield.storage import FileIO
from icefield.metadata import decode_metadata
from icefield.plugins import Plugins
from icefield.scan import TableScan
scan = TableScan(metadata=decode_metadata(open(PATH, "rb").read(), PATH), io=FileIO(Plugins.installed()))
tasks = list(scan.plan_files())
"""
_THEIRS = """
from pyiceberg.table import StaticTable
tasks = list(StaticTable.from_metadata(PATH).scan().plan_files())
"""
_PEAK = """
# Not getrusage: it counts the process that this one was spawned from.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(len(tasks), int(peak.split()[1]) // 1024)
"""


def scan_of(path: Path) -> TableScan:
    """A scan of all rows."""
    return TableScan(metadata=decode_metadata(path.read_bytes(), str(path)), io=FileIO(Plugins.installed()))


def filters(manifests: int, files: int) -> dict[str, str]:
    """Return filters by name: an empty one, one for a single manifest, and one for a single file."""
    day = date(1970, 1, 1) + timedelta(days=FIRST_DAY + manifests // 2)
    return {
        "full plan": "",
        "one partition": f"ts >= '{day}T00:00:00' and ts < '{day}T23:59:00'",
        "column bounds": f"id = {manifests * files // 2 * ROWS + 17}",
    }


def peak(code: str, path: Path) -> tuple[int, int]:
    """Number of tasks and peak memory in MiB of a plan in a process of its own."""
    text = f"PATH = {str(path)!r}\n{code}\n{_PEAK}"
    found = subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True).stdout.split()
    return int(found[0]), int(found[1])


FLOORS = {
    "64 KiB blocks": {"full plan": 12, "one partition": 20, "column bounds": 12},
    # PyIceberg's own manifests: to call a library for each of 100,000 blocks alone takes a twelfth of its time.
    "1-row blocks": {"full plan": 7, "one partition": 20, "column bounds": 7},
}


def compare_plans(path: Path, manifests: int, files: int, runs: int, what: str) -> None:
    """Each filter, cold and repeated, as a table and as tasks."""
    from pyiceberg.table import StaticTable

    theirs = StaticTable.from_metadata(str(path))
    floors = FLOORS[what]
    for name, row_filter in filters(manifests, files).items():
        ours = scan_of(path).filter(row_filter) if row_filter else scan_of(path)
        peer = theirs.scan(row_filter) if row_filter else theirs.scan()

        def tasks(ours: TableScan = ours) -> int:
            return sum(1 for _ in ours.plan_files())

        def their_tasks(peer: Any = peer) -> int:
            return sum(1 for _ in peer.plan_files())

        assert tasks() == their_tasks() == ours.plan_arrow().num_rows
        label = f"{name}, {what}"
        compare(f"{label}: table", cold(ours.plan_arrow), their_tasks, runs=runs, floor=floors[name])
        compare(f"{label}: tasks", cold(tasks), their_tasks, runs=runs, floor=floors[name])
        warm = 300 if name == "full plan" else None
        compare(f"{label}, again: table", ours.plan_arrow, their_tasks, runs=runs, floor=warm)
        compare(f"{label}, again: tasks", tasks, their_tasks, runs=runs, floor=20)


def compare_memory(folder: Path, path: Path, large: bool) -> None:
    """Compare the peak memory of plans while all their tasks are kept."""
    (count, ours), (same, theirs) = peak(_OURS, path), peak(_THEIRS, path)
    assert count == same
    verdict = "PASS" if ours * 4 <= theirs else "FAIL"
    print(f"{count:,} tasks kept: ours {ours:,} MiB, peer {theirs:,} MiB, {ours / theirs:.2f} (0.25) {verdict}")
    if large:
        count, ours = peak(_OURS, make_table(folder / "large", 1000, 1000))
        print(f"{count:,} tasks kept: ours {ours:,} MiB (1,536) {'PASS' if ours < 1536 else 'FAIL'}")


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manifests", type=int, default=100)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--blocks", choices=("java", "pyiceberg"), default=None, help="one style instead of both")
    parser.add_argument("--large", action="store_true")
    given = parser.parse_args()
    folder = Path(tempfile.gettempdir()) / "icefield-bench-planning"
    styles = [given.blocks] if given.blocks else ["java", "pyiceberg"]
    for style in styles:
        path = make_table(folder / f"{style}-{given.manifests}-{given.files}", given.manifests, given.files, 20, style)
        what = "64 KiB blocks" if style == "java" else "1-row blocks"
        compare_plans(path, given.manifests, given.files, given.runs, what)
        compare_memory(folder, path, given.large)


if __name__ == "__main__":
    main(run)
