"""Metadata tables against PyIceberg's ``inspect``: 100,000 files with statistics of 20 columns, in ten snapshots.

    python benchmarks/bench_inspect.py [--manifests 100] [--files 1000] [--tables files,entries] [--runs 1]

``first`` is with nothing decoded beforehand, ``again`` as for a user who looks at one metadata table after another:
decoded manifests are kept, within a bound, while PyIceberg keeps manifest lists only. First readings are compared by
elapsed time, which must be a twentieth, and by CPU time of all threads, which other load on the machine changes little:
Icefield inflates manifests in parallel threads. Both are without garbage collection, and ``collecting`` is with it, as
by default in Python: PyIceberg's objects for each entry are collected too. The table ``manifests`` has as many rows as
the table has manifests, so it is measured where each commit added 100 files: 1,000 manifests. After that the peak
memory of a stream of all files is compared with the peak memory of the whole table. Tables are fabricated below the
temporary directory and used again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import icefield
from harness import cold, compare, main
from icefield.manifest import write_manifest_list
from icefield.manifest.manifest_list import read_manifest_list
from icefield.metadata import decode_metadata
from icefield.plugins import Plugins
from icefield.storage import FileIO
from make_table import make_table

TABLES = ("files", "entries", "partitions", "manifests", "all_files")
SNAPSHOTS = 10
FLOOR = 20
FIRST = {"files": 20, "entries": 14, "partitions": 10, "all_files": 12}
"""Where every manifest is yet to be decoded, which takes three quarters of the time."""

_PEAK = """
import icefield
table = icefield.open_table(PATH)
rows = READ
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(rows, int(peak.split()[1]) // 1024)
"""
_STREAM = "sum(batch.num_rows for batch in table.inspect.scan('files').to_arrow_batch_reader())"
_WHOLE = "table.inspect.files().num_rows"


def with_history(path: Path) -> Path:
    """Return the table with ten snapshots; each snapshot adds a tenth of its manifests."""
    target = path.with_name("v2.metadata.json")
    if target.exists():
        return target
    data = json.loads(path.read_text())
    metadata, io = decode_metadata(path.read_bytes(), str(path)), FileIO(Plugins.installed())
    (last,) = data["snapshots"]
    manifests = read_manifest_list(io, metadata.snapshots[0], metadata).manifests
    snapshots = []
    for number in range(1, SNAPSHOTS):
        listed = f"{data['location']}/metadata/snap-{number}.avro"
        part = manifests[: len(manifests) * number // SNAPSHOTS]
        write_manifest_list(
            io, listed, part, format_version=2, snapshot_id=number, parent_snapshot_id=None, sequence_number=1
        )
        snapshots.append({**last, "snapshot-id": number, "manifest-list": listed})
    target.write_text(json.dumps({**data, "snapshots": [*snapshots, last]}))
    return target


def compare_tables(path: Path, names: list[str], runs: int, what: str) -> None:
    """Each metadata table as one pyarrow table."""
    from pyiceberg.table import StaticTable

    ours, theirs = icefield.open_table(str(path)).inspect, StaticTable.from_metadata(str(path)).inspect
    for name in names:
        mine, peer = getattr(ours, name), getattr(theirs, name)
        if name in FIRST:
            first = f"{name}, {what}: first"
            compare(first, cold(mine), peer, runs=runs, floor=FLOOR)
            compare(f"{first}, collecting", cold(mine), peer, runs=runs, floor=FLOOR, collecting=True)
            compare(f"{first}, CPU", cold(mine), peer, runs=runs, floor=FIRST[name], clock=time.process_time)
        compare(f"{name}, {what}: again", mine, peer, runs=runs if name in FIRST else 10 * runs, floor=FLOOR)


def compare_memory(path: Path) -> None:
    """The peak memory of reading all files as a stream, and as one table, each in a process of its own."""
    peaks = []
    for read in (_STREAM, _WHOLE):
        code = f"PATH = {str(path)!r}\n{_PEAK.replace('READ', read)}"
        found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
        peaks.append(int(found[1]))
    verdict = "PASS" if peaks[0] < peaks[1] else "FAIL"
    print(f"{found[0]} files: stream {peaks[0]:,} MiB, one table {peaks[1]:,} MiB {verdict}")


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manifests", type=int, default=100)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--runs", type=int, default=1)
    given = parser.parse_args()
    folder = Path(tempfile.gettempdir()) / "icefield-bench-inspect"
    names = given.tables.split(",")

    def made(manifests: int, files: int) -> Path:
        return with_history(make_table(folder / f"{manifests}-{files}", manifests, files))

    path = made(given.manifests, given.files)
    compare_tables(path, [name for name in names if name != "manifests"], given.runs, f"{given.manifests} manifests")
    if "manifests" in names:
        many = made(10 * given.manifests, given.files // 10)
        compare_tables(many, ["manifests"], given.runs, f"{10 * given.manifests} manifests")
    compare_memory(path)


if __name__ == "__main__":
    main(run)
