"""Writing manifests against PyIceberg's ``ManifestWriter``: 1,000 files with statistics of 20 columns, to local disk.

Also a manifest list of 10,000 manifests to which one is added: spliced here, read and written anew there.
"""

from __future__ import annotations

import itertools
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import compare, main
from icefield.manifest import ManifestWriter, read_manifest_list, write_manifest_list
from icefield.metadata.snapshots import Snapshot
from icefield.plugins import Plugins
from icefield.schema import schema_to_json
from icefield.storage import FileIO
from make_table import SPEC, data_file, schema_of

FILES = 1000
MANIFESTS = 10_000


class _Version2:
    format_version = 2


def run() -> None:
    with tempfile.TemporaryDirectory() as folder:
        _manifests(Path(folder))
        _lists(Path(folder))


def _manifests(folder: Path) -> None:
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.manifest import DataFile as TheirFile
    from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus, write_manifest
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import BucketTransform, DayTransform
    from pyiceberg.typedef import Record

    schema = schema_of(20)
    io, numbers = FileIO(Plugins.installed()), itertools.count()
    files = [data_file(f"file://{folder}", schema, i, 7) for i in range(FILES)]
    theirs = [
        TheirFile.from_args(
            content=0,
            file_path=file.file_path,
            file_format="PARQUET",
            partition=Record(*file.partition),
            record_count=file.record_count,
            file_size_in_bytes=file.file_size_in_bytes,
            column_sizes=file.column_sizes,
            value_counts=file.value_counts,
            null_value_counts=file.null_value_counts,
            nan_value_counts=file.nan_value_counts,
            lower_bounds=file.lower_bounds,
            upper_bounds=file.upper_bounds,
            key_metadata=None,
            split_offsets=list(file.split_offsets or ()),
            equality_ids=None,
            sort_order_id=0,
        )
        for file in files
    ]
    for file in theirs:
        file.spec_id = 0
    their_schema = Schema.model_validate(schema_to_json(schema))
    their_spec = PartitionSpec(
        PartitionField(3, 1000, DayTransform(), "ts_day"),
        PartitionField(2, 1001, BucketTransform(16), "user_id_bucket"),
    )

    def ours() -> None:
        location = f"file://{folder}/ours-{next(numbers)}.avro"
        with ManifestWriter(io, location, SPEC, schema, 2, 1) as writer:
            writer.add(files)

    def peer() -> None:
        output = PyArrowFileIO().new_output(f"file://{folder}/theirs-{next(numbers)}.avro")
        with write_manifest(2, their_spec, their_schema, output, 1, "deflate") as writer:
            for file in theirs:
                entry = ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=1, data_file=file)
                writer.add_entry(entry)

    compare("a manifest of 1,000 files", ours, peer, floor=3, rows=FILES)


def _lists(folder: Path) -> None:
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.manifest import read_manifest_list as their_reader
    from pyiceberg.manifest import write_manifest_list as their_writer

    io, numbers = FileIO(Plugins.installed()), itertools.count()
    location = f"file://{folder}/m.avro"
    with ManifestWriter(io, location, SPEC, schema_of(20), 2, 1) as writer:
        writer.add([data_file(location, schema_of(20), 1, 1)])
    one = writer.close()
    many = [replace(one, manifest_path=f"{location}-{i}") for i in range(MANIFESTS)]
    given: dict[str, Any] = {"format_version": 2, "snapshot_id": 1, "parent_snapshot_id": None, "sequence_number": 3}
    base = f"file://{folder}/base.avro"
    write_manifest_list(io, base, many, **given)
    snapshot = Snapshot(snapshot_id=1, timestamp_ms=1, manifest_list=base)
    uncached = FileIO(Plugins.installed(), {"io.manifest.cache-enabled": "false"})

    def ours() -> None:
        old = read_manifest_list(uncached, snapshot, _Version2())
        write_manifest_list(uncached, f"file://{folder}/ours-list-{next(numbers)}.avro", [one], base=old, **given)

    def peer() -> None:
        theirs = PyArrowFileIO()
        rows = list(their_reader(theirs.new_input(base)))
        target = theirs.new_output(f"file://{folder}/theirs-list-{next(numbers)}.avro")
        with their_writer(2, target, 1, None, 3, "deflate") as writer:
            writer.add_manifests([*rows, rows[0]])

    compare("one manifest added to 10,000", ours, peer, floor=20)


if __name__ == "__main__":
    main(run)
