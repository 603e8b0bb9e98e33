"""Many processes commit to one table: none is lost, the history is linear, no file is missing and none is left over."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import many_writers
import pytest
from catalogs import KINDS, open_catalog, properties_of
from census import metadata_versions, present, referenced
from icefield import Table
from servers.postgres import new_database

PROCESSES, COMMITS = (16, 50) if os.environ.get("ICEFIELD_SOAK") else (8, 20)


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.spec("COMMIT-01", "COMMIT-03", "COMMIT-07", "COMMIT-13", "FS-09", "FS-10", "FS-13", "META-01")
@pytest.mark.parametrize("kind", KINDS)
def test_no_commit_of_many_processes_is_lost(kind: str, tmp_path: Path) -> None:
    table, ended = many_writers.race(properties_of(kind, tmp_path), PROCESSES, COMMITS)
    check(table, ended, first=0 if kind == "sql" else 1)


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_append_of_many_processes_is_refused_without_properties_of_retries(kind: str, tmp_path: Path) -> None:
    table, ended = many_writers.race(properties_of(kind, tmp_path), PROCESSES, COMMITS, retries={})
    check(table, ended, first=0 if kind == "sql" else 1)


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_append_of_many_threads_is_refused_without_properties_of_retries(kind: str, tmp_path: Path) -> None:
    catalog = open_catalog(kind, tmp_path)
    catalog.create_namespace("db")
    catalog.create_table("db.t", many_writers.SCHEMA)

    def work(writer: int) -> int:
        many_writers.append_many(properties_of(kind, tmp_path), writer, COMMITS, ())
        return 0

    with ThreadPoolExecutor(PROCESSES) as pool:
        ended = list(pool.map(work, range(PROCESSES)))
    check(catalog.load_table("db.t"), ended, first=0 if kind == "sql" else 1)


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.spec("COMMIT-01", "COMMIT-03", "COMMIT-13", "FS-13")
def test_no_commit_of_many_processes_is_lost_in_postgres(postgres: str, tmp_path: Path) -> None:
    properties = {**properties_of("sql", tmp_path), "uri": new_database(postgres)}
    table, ended = many_writers.race(properties, PROCESSES, COMMITS)
    check(table, ended, first=0)


def check(table: Table, ended: list[int | None], first: int) -> None:
    """Every append is there once, in one line of snapshots with a metadata file each, numbered from ``first`` on."""
    assert ended == [0] * PROCESSES
    assert many_writers.lost(table, PROCESSES, COMMITS) == set()

    snapshots = table.snapshots()
    assert len(snapshots) == PROCESSES * COMMITS
    assert [snapshot.sequence_number for snapshot in snapshots] == list(range(1, len(snapshots) + 1))
    parents = [None, *(snapshot.snapshot_id for snapshot in snapshots[:-1])]
    assert [snapshot.parent_snapshot_id for snapshot in snapshots] == parents

    assert metadata_versions(table) == list(range(first, first + len(snapshots) + 1))
    assert present(table) == referenced(table)
