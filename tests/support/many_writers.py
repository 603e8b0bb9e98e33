"""Many processes that commit to one table of a catalog on any storage, and the invariants of the table afterwards."""

from __future__ import annotations

import os
from collections.abc import Mapping

import pyarrow as pa
from forked import forking
from icefield import Plugins, Table, load_catalog
from icefield.metadata.file_names import version_of

# The number of writers, and of commits by each, to a table on a server: each writer loses many attempts.
PROCESSES, COMMITS = (8, 20) if os.environ.get("ICEFIELD_SOAK") else (4, 10)
# Limits of retries for many writers on few cores. They also bound changes other than appends.
RETRIES = {
    "commit.retry.num-retries": "1000",
    "commit.retry.min-wait-ms": "10",
    "commit.retry.max-wait-ms": "1000",
    "commit.retry.total-timeout-ms": "3600000",
}
SCHEMA = pa.schema([("writer", pa.int64()), ("number", pa.int64())])


def append_many(properties: Mapping[str, str], writer: int, commits: int, modules: tuple[str, ...]) -> None:
    """One writer: so many appends of one row each."""
    plugins = Plugins.installed(extra=modules)
    table = load_catalog("test", plugins=plugins, **properties).load_table("db.t")
    for number in range(commits):
        table.append(pa.table({"writer": [writer], "number": [number]}, schema=SCHEMA))


def race(
    properties: Mapping[str, str],
    processes: int,
    commits: int,
    modules: tuple[str, ...] = (),
    retries: Mapping[str, str] = RETRIES,
) -> tuple[Table, list[int | None]]:
    """Create a table, let processes append to it, and return the table and the exit code of each process.

    ``modules`` are plugins that are not installed, by the names of their modules. ``retries`` are table properties.
    """
    plugins = Plugins.installed(extra=modules)
    catalog = load_catalog("test", plugins=plugins, **properties)
    catalog.create_namespace("db")
    catalog.create_table("db.t", SCHEMA, properties=retries)
    context = forking()
    arguments = (dict(properties), commits, modules)
    writers = [
        context.Process(target=append_many, args=(arguments[0], number, *arguments[1:])) for number in range(processes)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    return catalog.load_table("db.t"), [writer.exitcode for writer in writers]


def check_race(properties: Mapping[str, str]) -> None:
    """Let many processes commit to a table of a catalog with these properties: no commit is lost, none is doubled."""
    table, ended = race(properties, PROCESSES, COMMITS)
    assert ended == [0] * PROCESSES
    assert lost(table, PROCESSES, COMMITS) == set()
    check_history(table, PROCESSES * COMMITS)


def lost(table: Table, processes: int, commits: int) -> set[tuple[int, int]]:
    """The appends that are not in the table exactly once, although their writers reported success."""
    rows = [(row["writer"], row["number"]) for row in table.scan().to_arrow().to_pylist()]
    expected = {(writer, number) for writer in range(processes) for number in range(commits)}
    return (expected - set(rows)) | {row for row in rows if rows.count(row) > 1}


def check_history(table: Table, snapshots: int) -> None:
    """One line of snapshots from the first to the last, a version for each, and no file missing or left over."""
    found = table.snapshots()
    assert len(found) == snapshots
    assert [snapshot.sequence_number for snapshot in found] == list(range(1, snapshots + 1))
    parents = [None, *(snapshot.snapshot_id for snapshot in found[:-1])]
    assert [snapshot.parent_snapshot_id for snapshot in found] == parents

    stored = {info.location for info in table.io.list_files(table.location())}
    versions = {location: version_of(location) for location in stored}
    assert sorted(version for version in versions.values() if version is not None) == list(range(1, snapshots + 2))
    others = {location for location, version in versions.items() if version is None}
    assert {location for location in others if not location.endswith("version-hint.text")} == _referenced(table)


def _referenced(table: Table) -> set[str]:
    """Manifest lists, manifests and data files of every snapshot."""
    found: set[str] = set()
    for snapshot in table.snapshots():
        found.add(snapshot.manifest_list)
        found |= set(table.inspect.manifests(snapshot.snapshot_id).column("path").to_pylist())
        found |= set(table.inspect.files(snapshot.snapshot_id).column("file_path").to_pylist())
    return found
