"""Many processes commit to one table: none is lost, the history is linear, no file is missing and none is left over."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pyarrow as pa
import pytest
from catalogs import KINDS, open_catalog
from census import metadata_versions, present, referenced

SOAK = bool(os.environ.get("ICEFIELD_SOAK"))
PROCESSES, COMMITS = (16, 50) if SOAK else (4, 6)

# Patience for many writers on few cores; the default of four retries is for few writers.
RETRIES = {
    "commit.retry.num-retries": "1000",
    "commit.retry.min-wait-ms": "10",
    "commit.retry.max-wait-ms": "2000",
    "commit.retry.total-timeout-ms": "3600000",
}
SCHEMA = pa.schema([("writer", pa.int64()), ("number", pa.int64())])


def append_many(kind: str, folder: str, writer: int) -> None:
    table = open_catalog(kind, folder).load_table("db.t")
    for number in range(COMMITS):
        table.append(pa.table({"writer": [writer], "number": [number]}, schema=SCHEMA))


@pytest.mark.slow
@pytest.mark.spec("COMMIT-01", "COMMIT-03", "COMMIT-07", "COMMIT-13", "FS-09", "FS-10", "FS-13", "META-01")
@pytest.mark.parametrize("kind", KINDS)
def test_no_commit_of_many_processes_is_lost(kind: str, tmp_path: Path) -> None:
    catalog = open_catalog(kind, tmp_path)
    catalog.create_namespace("db")
    catalog.create_table("db.t", SCHEMA, properties=RETRIES)
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=append_many, args=(kind, str(tmp_path), n)) for n in range(PROCESSES)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * PROCESSES

    table = catalog.load_table("db.t")
    rows = table.scan().to_arrow().to_pylist()
    expected = [(writer, number) for writer in range(PROCESSES) for number in range(COMMITS)]
    assert sorted((row["writer"], row["number"]) for row in rows) == expected

    snapshots = table.snapshots()
    assert len(snapshots) == PROCESSES * COMMITS
    assert [snapshot.sequence_number for snapshot in snapshots] == list(range(1, len(snapshots) + 1))
    parents = [None, *(snapshot.snapshot_id for snapshot in snapshots[:-1])]
    assert [snapshot.parent_snapshot_id for snapshot in snapshots] == parents

    first = 0 if kind == "sql" else 1
    assert metadata_versions(table) == list(range(first, first + len(snapshots) + 1))
    assert present(table) == referenced(table)
