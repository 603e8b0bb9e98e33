"""Maintenance and writes whose version expires while they read it: they begin anew, and leave nothing over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import icefield
import pytest
from icefield import MemoryFileSystem, Table
from icefield.errors import FileMissing
from tables import again, ids, new_table, orphans, rows

ALL = 2**60
MARKED = {f"write.{change}.mode": "merge-on-read" for change in ("delete", "update", "merge")}

CHANGES: dict[str, tuple[Callable[[Table], Any], list[int]]] = {
    # what is done, and the ids that are there afterwards
    "pack": (lambda table: table.maintenance.rewrite_data_files(rewrite_all=True), [77, 78]),
    "sort": (lambda table: table.maintenance.rewrite_data_files("sort", "id", rewrite_all=True), [77, 78]),
    "z-order": (
        lambda table: table.maintenance.rewrite_data_files("zorder", zorder_columns=["id", "kind"], rewrite_all=True),
        [77, 78],
    ),
    "pack in parts": (
        lambda table: table.maintenance.rewrite_data_files(rewrite_all=True, partial_progress=True, max_commits=2),
        [77, 78],
    ),
    "manifests": (lambda table: table.maintenance.rewrite_manifests(), [77, 78]),
    "deletes": (lambda table: table.maintenance.rewrite_position_delete_files(), [77, 78]),
    "dangling deletes": (lambda table: table.maintenance.remove_dangling_deletes(), [77, 78]),
    "equality deletes": (lambda table: table.maintenance.convert_equality_deletes(), [77, 78]),
    "expiry": (lambda table: table.maintenance.expire_snapshots(ALL, retain_last=3), [77, 78]),
    "orphans": (
        lambda table: table.maintenance.remove_orphan_files(
            time.time_ns() // 1_000_000, dry_run=False, allow_recent=True
        ),
        [77, 78],
    ),
    "dry run of packing": (
        lambda table: table.maintenance.rewrite_data_files(rewrite_all=True, dry_run=True),
        [77, 78],
    ),
    "dry run of manifests": (lambda table: table.maintenance.rewrite_manifests(dry_run=True), [77, 78]),
    "dry run of deletes": (lambda table: table.maintenance.rewrite_position_delete_files(dry_run=True), [77, 78]),
    "distinct values": (lambda table: table.maintenance.compute_table_stats(["id"]), [77, 78]),
    "partitions": (lambda table: table.maintenance.compute_partition_stats(), [77, 78]),
    "paths": (
        lambda table: table.maintenance.rewrite_table_path(
            table.metadata.location, "memory://elsewhere/t", staging_location=f"{table.metadata.location}-copied"
        ),
        [77, 78],
    ),
    "append with a merge": (lambda table: table.append(rows([5])), [5, 77, 78]),
}

OF_ROWS = ("pack", "sort", "z-order", "pack in parts", "equality deletes", "distinct values")
ALONE = ("dry run of packing", "dry run of manifests", "dry run of deletes", "distinct values", "partitions", "paths")
"""What commits nothing, or nothing that is planned: which of its reads fails makes no difference."""

NO_MANIFEST = (*ALONE, "expiry")
"""Expiry reads no manifest here, since the next snapshots take over all files."""

READS = [
    (change, reads)
    for change in CHANGES
    for reads in (".parquet", "-m0.avro", "/snap-")
    if (change in OF_ROWS if reads == ".parquet" else reads == "/snap-" or change not in NO_MANIFEST)
]


@contextmanager
def meanwhile(reads: str, act: Callable[[], Any]) -> Iterator[None]:
    """Something else happens just before the first file is opened that has this in its name."""
    waiting, inner = [act], MemoryFileSystem.open_input

    def opened(self: MemoryFileSystem, location: str) -> Any:
        if waiting and reads in location:
            waiting.pop()()
        return inner(self, location)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(MemoryFileSystem, "open_input", opened)
        yield
    assert not waiting, "nothing was read"


def lived_in(version: str) -> Table:
    table = new_table(**{"format-version": version, "commit.manifest.min-count-to-merge": "3", **MARKED})
    for number in range(6):
        table.append(rows([number, number + 10], "ab"[number % 2]))
        if number % 2:
            table.delete(f"id = {number}")
    table.delete_by_equality(rows([2]).select(["id"]), ["id"])
    with table.update_spec() as update:
        update.add_identity("kind")
    return table


def replaced(table: Table) -> None:
    """All files are others, and those before are deleted."""
    table.overwrite(rows([77, 78]))
    table.maintenance.expire_snapshots(ALL)


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize(("change", "reads"), READS)
def test_what_expires_while_it_is_read_is_planned_anew(change: str, reads: str, version: str) -> None:
    table = lived_in(version)
    make, expected = CHANGES[change]
    other = again(table)
    icefield.clear_caches()
    with meanwhile(reads, lambda: replaced(other)):
        make(table)
    assert ids(table.refresh()) == expected
    assert orphans(table) == set()


@pytest.mark.spec("REF-09")
def test_what_an_expired_version_shares_with_the_newest_is_no_orphan() -> None:
    table = new_table(["kind"])
    table.append(rows([0]))
    (first,) = table.inspect.manifests()["path"].to_pylist()
    table.append(rows([1], "b"))
    table.append(rows([2]))
    other = again(table)

    def goes_on() -> None:
        other.delete("id = 0")
        other.append(rows([7]))
        other.maintenance.expire_snapshots(ALL)

    icefield.clear_caches()
    with meanwhile(first.rpartition("/")[2], goes_on):
        table.maintenance.remove_orphan_files(time.time_ns() // 1_000_000 + 1, dry_run=False, allow_recent=True)
    assert first not in MemoryFileSystem.files
    icefield.clear_caches()
    assert ids(table.refresh()) == [1, 2, 7]
    assert orphans(table) == set()


def test_a_file_that_is_missing_in_the_current_version_is_an_error() -> None:
    table = lived_in("2")
    lost = table.inspect.data_files()["file_path"][0].as_py()
    del MemoryFileSystem.files[lost]
    icefield.clear_caches()
    with pytest.raises(FileMissing, match=lost):
        table.maintenance.rewrite_data_files(rewrite_all=True)
