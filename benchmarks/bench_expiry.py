"""Finding the expired files of 1,000 snapshots of a table of 100,000 files, against reading each manifest once.

    python benchmarks/bench_expiry.py [--snapshots 1000] [--files 100] [--runs 5]

Each snapshot adds files, manifests are merged on the way, and the last rewrites a tenth of the files. All snapshots but
the last expire. The floor is the CPU time for reading each manifest list and each manifest once, the locations of live
files only. The data files are not there: a dry run finds them, and deleting is the store's work. PyIceberg expires
snapshots as well, but deletes no file.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import icefield
import numpy as np
from harness import cold, compare, main
from icefield.manifest import ManifestFile, ManifestReader, ManifestRequest, read_manifest_list
from icefield.manifest import schemas as f
from icefield.manifest.manifest_list import PATH
from icefield.scan.planning.manifest_reads import manifest_groups
from icefield.types import StructType
from make_table import SPEC, data_file, schema_of

COLUMNS = 8
FLOOR = 1 / 1.3
MOST_MIB = 500

_PEAK = """
import icefield
found = icefield.open_table(PATH).maintenance.expire_snapshots(2**60, dry_run=True)
# Not getrusage: it counts the process that this one was spawned from.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(found.files, int(peak.split()[1]) // 1024)
"""


def made(folder: Path, snapshots: int, files: int) -> icefield.Table:
    """Return the table, and make it unless it exists."""
    catalog = icefield.load_catalog("bench", type="directory", warehouse=f"file://{folder}", **{"file.sync": "false"})
    schema = schema_of(COLUMNS)
    catalog.create_namespace_if_not_exists("db")
    table = catalog.create_table_if_not_exists("db.t", schema, partition_spec=SPEC)
    if len(table.snapshots()) > snapshots:
        return table
    started = time.perf_counter()
    for number in range(len(table.snapshots()), snapshots):
        numbers = range(number * files, (number + 1) * files)
        added = [data_file(table.location(), schema, each, each // 64) for each in numbers]
        with table.transaction() as tx:
            tx.update_snapshot().merge_append().append_fresh(added).commit()
    live = sorted(table.inspect.files()["file_path"].to_pylist())[::10]
    added = [data_file(table.location(), schema, each, each // 64) for each in range(10**8, 10**8 + len(live) // 10)]
    with table.transaction() as tx:
        tx.update_snapshot().overwrite().delete_file(*live).add_fresh(added).commit()
    print(f"# {len(table.snapshots())} snapshots of {snapshots * files} files in {time.perf_counter() - started:.1f} s")
    return table


def reading_once(table: icefield.Table) -> Callable[[], int]:
    """Each manifest list and each manifest of the table, read once and not kept."""

    def read() -> int:
        found: dict[str, ManifestFile] = {}
        for snapshot in table.snapshots():
            listed = read_manifest_list(table.io, snapshot, table.metadata, summaries=False)
            paths = listed.columns[PATH].to_pylist()
            new = np.array([row for row, path in enumerate(paths) if path not in found], np.int64)
            found |= {one.manifest_path: one for one in listed.select(new, summaries=False)}
        reader = ManifestReader(table.io, remember=False)
        wanted = [(one, StructType()) for one in found.values() if one.has_added_files or one.has_existing_files]
        request = ManifestRequest(frozenset({f.STATUS, f.FILE_PATH}))
        groups = manifest_groups(reader, wanted, request)
        return sum(len(part) for group in groups for part in group)

    return cold(read)


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--snapshots", type=int, default=1000)
    parser.add_argument("--files", type=int, default=100, help="that each snapshot adds")
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    folder = Path(tempfile.gettempdir()) / "icefield-bench-expiry" / f"{given.snapshots}-{given.files}"
    table = made(folder, given.snapshots, given.files)
    once = reading_once(table)
    found = table.maintenance.expire_snapshots(2**60, dry_run=True)
    print(f"# {once():,} entries in all manifests; {found.files:,} files that nothing refers to")

    def expired() -> int:
        return icefield.open_table(table.metadata_location).maintenance.expire_snapshots(2**60, dry_run=True).files

    what = f"expiry of {given.snapshots} snapshots"
    compare(f"{what}: CPU", cold(expired), once, runs=given.runs, floor=FLOOR, clock=time.process_time)
    compare(f"{what}: elapsed", cold(expired), once, runs=given.runs)
    code = f"PATH = {table.metadata_location!r}\n{_PEAK}"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    files, peak = map(int, said.split())
    assert files == found.files
    print(f"peak memory: {peak:,} MiB ({MOST_MIB}) {'PASS' if peak < MOST_MIB else 'FAIL'}")
    if peak >= MOST_MIB:
        sys.exit("too much memory")


if __name__ == "__main__":
    main(run)
