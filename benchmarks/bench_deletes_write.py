"""Writing delete files: positions, deletion vectors, and streams of changes.

    python benchmarks/bench_deletes_write.py [ROWS] [PART ...]

The parts are ``vectors``, ``positions`` and ``changes``. Deletion vectors are compared with pyroaring (the C library)
and the same Puffin writer, position deletes with one string of a path for each row given to pyarrow, and a stream of
changes with a plain append of as many rows.
"""

from __future__ import annotations

import struct
import sys
import uuid
import zlib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from harness import compare, main
from icefield.catalog import Catalog, Table, load_catalog
from icefield.manifest import DataFile
from icefield.puffin import BlobType, PuffinWriter
from icefield.writing import DeleteContext, DeletedRows, write_deletion_vectors, write_position_deletes
from pyroaring import BitMap64

ROWS = 1_000_000
FILES, MANY_FILES = 10, 2_000
VECTORS, SMALL_VECTORS, POSITIONS, CHANGES = 1.5, 0.4, 1.5, 1 / 8
"""Of small vectors the time goes into checking and describing them, which the peer does not do."""


def run() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    parts = sys.argv[2:] or ["vectors", "positions", "changes"]
    catalog = load_catalog("bench", type="directory", warehouse=f"memory://{uuid.uuid4().hex}")
    catalog.create_namespace("db")
    if "vectors" in parts:
        vectors(catalog, count)
    if "positions" in parts:
        positions(catalog, count)
    if "changes" in parts:
        changes(catalog, count)


def vectors(catalog: Catalog, count: int) -> None:
    table = new_table(catalog, "vectors", "3")
    for name, files, step in (
        ("vectors: 1 % of 10 files", FILES, 100),
        ("vectors: 50 % of 10 files", FILES, 2),
        ("vectors: 100 rows of 2,000 files", MANY_FILES, 1_000),
    ):
        given = deleted(table, files, (100 if files == MANY_FILES else count // files) * step, step)
        compare(
            name,
            lambda given=given: write_deletion_vectors(context_of(table), given),
            lambda given=given: with_pyroaring(table, given),
            floor=SMALL_VECTORS if files == MANY_FILES else VECTORS,
            rows=sum(len(each.positions) for each in given),
        )


def positions(catalog: Catalog, count: int) -> None:
    table = new_table(catalog, "positions", "2")
    given = deleted(table, FILES, count // FILES * 100, 100)
    compare(
        "positions: 1 % of 10 files",
        lambda: write_position_deletes(context_of(table), given),
        lambda: with_strings(table, given),
        floor=POSITIONS,
        rows=count,
    )


def changes(catalog: Catalog, count: int) -> None:
    table = new_table(catalog, "changes", "2")
    rng = np.random.default_rng(3)
    ids = rng.integers(0, count, count)
    rows = pa.table({"id": ids, "name": pa.array(ids % 1_000).cast(pa.string())})
    kinds = pa.array(rng.choice(["+I", "+U", "-D"], count))
    stream = rows.append_column("_change_type", kinds)
    compare(
        "changes: upserts by a key of a long",
        lambda: table.apply_changes(stream, ["id"], upsert=True),
        lambda: table.append(rows),
        floor=CHANGES,
        rows=count,
        runs=3,
    )


def new_table(catalog: Catalog, name: str, version: str) -> Table:
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    return catalog.create_table(f"db.{name}", schema, properties={"format-version": version})


def context_of(table: Table) -> DeleteContext:
    """Another one for each call, since it names the files."""
    return DeleteContext.from_metadata(table.metadata, table.io)


def deleted(table: Table, files: int, rows: int, step: int) -> list[DeletedRows]:
    """Rows of files that are only named, one in ``step`` at random."""
    rng = np.random.default_rng(files)
    made = []
    for number in range(files):
        location = f"{table.location()}/data/00000-{number}-{uuid.uuid4()}-00001.parquet"
        file = DataFile(file_path=location, file_format="parquet", record_count=rows, file_size_in_bytes=1)
        made.append(DeletedRows(file, np.unique(rng.integers(0, rows, rows // step))))
    return made


def with_pyroaring(table: Table, given: list[DeletedRows]) -> None:
    sink = table.io.open_output(f"{table.location()}/data/{uuid.uuid4()}.puffin")
    with PuffinWriter(sink, {}) as writer:
        for each in given:
            bitmap = BitMap64(each.positions)
            bitmap.run_optimize()
            body = bytes.fromhex("D1D33964") + bitmap.serialize()
            blob = struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))
            properties = {"referenced-data-file": each.file.file_path, "cardinality": str(len(bitmap))}
            writer.add(BlobType.DELETION_VECTOR, blob, fields=[2147483645], properties=properties)


def with_strings(table: Table, given: list[DeletedRows]) -> None:
    paths: list[str] = []
    ordered: list[Any] = sorted(given, key=lambda each: each.file.file_path)
    for each in ordered:
        paths += [each.file.file_path] * len(each.positions)
    rows = pa.table({"file_path": paths, "pos": np.concatenate([each.positions for each in ordered])})
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="zstd")
    with table.io.open_output(f"{table.location()}/data/{uuid.uuid4()}.parquet") as output:
        output.write(sink.getvalue())


if __name__ == "__main__":
    main(run)
