"""Rewriting manifests: 10,000 files with statistics of 20 columns in 100 manifests, each with files of all partitions.

Against PyIceberg, which reads the entries and writes them again, unsorted; and against reading and writing the same
entries here, unsorted and without a commit. Then 100,000 files: the most memory that a process takes.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
from pathlib import Path

import icefield
from harness import compare, main
from icefield.catalog import Table
from icefield.engine import Head
from icefield.manifest import ALL_COLUMNS, ManifestEntries, ManifestWriter, clear_caches
from make_table import SPEC, data_file, schema_of

DAYS = 50
MOST_MIB = 1_000

_PEAK = """
import icefield
table = icefield.load_catalog("bench", type="directory", warehouse=FOLDER).load_table("db.t")
made = table.maintenance.rewrite_manifests()
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(made.entries, made.added_manifests, int(peak.split()[1]) // 1024)
"""


def made_table(folder: Path, manifests: int, files: int) -> Table:
    """A table of so many appends; file i is of day i modulo 50."""
    catalog = icefield.load_catalog("bench", type="directory", warehouse=f"file://{folder}")
    catalog.create_namespace("db")
    properties = {"commit.manifest-merge.enabled": "false"}
    schema = schema_of(20)
    table = catalog.create_table("db.t", schema, partition_spec=SPEC, properties=properties)
    for number in range(manifests):
        appending = table.update_snapshot().fast_append()
        for one in range(number * files, (number + 1) * files):
            appending.append_file(data_file(table.location(), schema, one, one % DAYS))
        appending.commit()
    return table


def run() -> None:
    with tempfile.TemporaryDirectory() as folder:
        _speed(Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        _memory(Path(folder))


def _speed(folder: Path) -> None:
    table = made_table(folder, 100, 100)
    before = table.current_snapshot()
    assert before is not None
    numbers = itertools.count()

    def ours() -> None:
        clear_caches()
        made = table.maintenance.rewrite_manifests()
        assert (made.rewritten_manifests, made.entries) == (100, 10_000)
        table.manage_snapshots().set_current_snapshot(before.snapshot_id).commit()

    def plain() -> None:
        clear_caches()
        head = Head(table.metadata, before, table.io)
        location = f"file://{folder}/plain-{next(numbers)}.avro"
        with ManifestWriter(table.io, location, SPEC, table.schema(), 2, 1) as writer:
            writer.existing(ManifestEntries.concat([*head.read(head.manifests, ALL_COLUMNS)]))

    compare("10,000 files: read and written", ours, plain, floor=0.7, rows=10_000)
    compare("10,000 files: PyIceberg", ours, lambda: _peer(folder, table, next(numbers)), runs=3, floor=6, rows=10_000)


def _peer(folder: Path, table: Table, number: int) -> None:
    from pyiceberg.manifest import write_manifest
    from pyiceberg.table import StaticTable

    theirs = StaticTable.from_metadata(table.metadata_location)
    output = theirs.io.new_output(f"file://{folder}/theirs-{number}.avro")
    snapshot = theirs.current_snapshot()
    assert snapshot is not None
    with write_manifest(2, theirs.spec(), theirs.schema(), output, 1, "deflate") as writer:
        for manifest in snapshot.manifests(theirs.io):
            for entry in manifest.fetch_manifest_entry(theirs.io):
                writer.existing(entry)


def _memory(folder: Path) -> None:
    made_table(folder, 100, 1_000)
    code = f"FOLDER = {f'file://{folder}'!r}\n{_PEAK}"
    answer = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    print(f"100,000 files: {answer[0]} entries into {answer[1]} manifests, {answer[2]} MiB at most (bound {MOST_MIB})")
    if int(answer[2]) > MOST_MIB:
        sys.exit("rewriting manifests took more memory than it may")


if __name__ == "__main__":
    main(run)
