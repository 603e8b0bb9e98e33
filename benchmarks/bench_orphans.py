"""Finding the orphans of a table of 1,000,000 files, against only listing them.

    python benchmarks/bench_orphans.py [--manifests 1000] [--files 1000] [--runs 3]

The files are not there: a file system lists the locations that the manifests name and a stray for each thousand. They
are read from one file, batch by batch, so that the listing takes no memory and little of the time.
The metadata itself is on local disk.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import icefield
import pyarrow as pa
from harness import cold, compare, main
from icefield.abc import FileInfo
from icefield.builtin.local import LocalFileSystem
from make_table import make_table

MOST_MIB = 500
OLD_MS = 1


class Fabricated(LocalFileSystem):
    """The local file system, with another listing."""

    listing: ClassVar[Path]

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        with pa.OSFile(str(Fabricated.listing)) as source, pa.ipc.open_stream(source) as batches:
            for batch in batches:
                for location in batch.column(0).to_pylist():
                    yield FileInfo(location, 1000, OLD_MS)


def write_listing(table: icefield.Table, path: Path) -> int:
    """Write the locations of a table's files and of the strays; how many they are."""
    root, schema = table.location().rstrip("/"), pa.schema([("location", pa.string())])
    planned = table.scan().plan_arrow().select(["file_path"])
    strays = [f"{root}/data/stray-{each}.parquet" for each in range(planned.num_rows // 1000)]
    with pa.OSFile(str(path), "wb") as target, pa.ipc.new_stream(target, schema) as writer:
        for batch in planned.to_batches(max_chunksize=8192):
            writer.write_batch(pa.record_batch([batch.column(0).cast(pa.string())], schema=schema))
        writer.write_batch(pa.record_batch([pa.array(strays, pa.string())], schema=schema))
    icefield.clear_caches()
    return planned.num_rows + len(strays)


def opened(path: Path) -> icefield.Table:
    """Open the table with a file system that lists it from the file that was written for it."""
    Fabricated.listing = listing_of(path)
    LocalFileSystem.list_files = Fabricated.list_files  # type: ignore[method-assign]
    return icefield.open_table(f"file://{path}")


def listing_of(path: Path) -> Path:
    """Where the listing of a table is kept."""
    return path.with_name(f"{path.name}-listing.arrow")


def searched(table: icefield.Table) -> int:
    """How many orphans there are."""
    return table.maintenance.remove_orphan_files().files


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manifests", type=int, default=1000)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--peak", type=Path, default=None, help="only print the peak memory of a search")
    given = parser.parse_args()
    if given.peak is not None:
        print_peak(given.peak)
        return
    folder = Path(tempfile.gettempdir()) / "icefield-bench-orphans"
    path = make_table(folder / f"{given.manifests}-{given.files}", given.manifests, given.files, 3, "java")
    table = opened(path)
    files = write_listing(table, listing_of(path))

    def listed() -> None:
        deque(table.io.list_files(table.location()), maxlen=0)

    compare(f"{files:,} files listed", cold(lambda: searched(table)), listed, runs=given.runs, rows=files)
    code = [sys.executable, __file__, "--peak", str(path)]
    found = subprocess.run(code, check=True, capture_output=True, text=True).stdout.split()
    orphans, before, peak = (int(each) for each in found[-3:])
    assert orphans == given.manifests * given.files // 1000, orphans
    verdict = "PASS" if peak < MOST_MIB else "FAIL"
    print(f"{files:,} files, {orphans:,} orphans: {peak:,} MiB ({MOST_MIB}) {verdict}; before the search {before} MiB")
    if peak >= MOST_MIB:
        sys.exit("more memory than allowed")


def print_peak(path: Path) -> None:
    """Print the orphans, the memory before the search, and that at its peak."""
    table = opened(path)
    before = status("VmRSS")
    print(searched(table), before, status("VmHWM"))


def status(name: str) -> int:
    """A figure of this process in MiB. Not getrusage: it counts the process that this one was spawned from."""
    with open("/proc/self/status") as lines:
        return int(next(line for line in lines if line.startswith(name)).split()[1]) // 1024


if __name__ == "__main__":
    main(run)
