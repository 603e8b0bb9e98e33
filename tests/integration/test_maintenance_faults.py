"""Each maintenance call of a table, in processes that die at any step, and beside others that write."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest
from catalogs import properties_of
from forked import forking
from icefield import Table, load_catalog
from icefield.manifest import clear_caches
from killing import CHANGING, dies_at
from maintenance_calls import (
    ALL,
    EVER,
    REWRITES,
    TAG,
    MaintenanceCall,
    all_named,
    all_there,
    check_whole,
    expire,
    found,
    made,
    remove_orphans,
    rows,
)
from servers.s3 import S3

SOAK = bool(os.environ.get("ICEFIELD_SOAK"))
STRIDE = 1 if SOAK else 11
COMMITS = 40 if SOAK else 5

Given = dict[str, str]

BESIDE = [("create", "3"), ("create", "2"), ("sql", "3")]
WALKS = [(*where, each) for each in ALL for where in (("create", "2"), ("rename", "3"), ("sql", "3"))]
"""Each maintenance call, with each way of committing."""


def opened(given: Given) -> Table:
    clear_caches()
    return load_catalog("test", **given).load_table("db.t")


def on_s3(s3: S3) -> Given:
    """The properties of a catalog in a folder of its own."""
    where = {"type": "directory", "warehouse": f"s3://{s3.bucket}/{uuid4().hex}", "commit": "create"}
    return {**where, **s3.properties}


def walk(given: Given, maintenance: MaintenanceCall, as_before: Callable[[], None], first: int = 1) -> None:
    """Kill the call at each step, every time on the same table, and check that the second run finishes."""
    table = opened(given)
    before, tagged = found(table), found(table, TAG)
    after = tagged if maintenance.rolls_back else before
    versions = set()
    for step in range(first, 1000, STRIDE):
        as_before()
        version = opened(given).metadata_location
        died = dies_at(step, given, maintenance.run, counted=CHANGING)
        table = opened(given)
        versions.add(table.metadata_location == version)
        check_whole(table, after if found(table) == after else before, tagged)
        maintenance.run(table)
        assert maintenance.is_done(opened(given)), f"the second run left work after step {step}"
        table = opened(given)
        check_whole(table, after, tagged)
        remove_orphans(table)
        check_whole(table, after, tagged)
        assert all_there(table) == all_named(table), f"a file is left after step {step}"
        if not died:
            break
    else:
        pytest.fail("the call has more steps than the harness walks")
    assert versions == ({True} if maintenance.name == "remove_orphans" else {True, False}), "it died on one side only"


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "version", "maintenance"), WALKS if SOAK else [*WALKS[::4]], ids=lambda each: getattr(each, "name", each)
)
def test_a_second_run_finishes_what_a_killed_one_began(
    tmp_path: Path, kind: str, version: str, maintenance: MaintenanceCall
) -> None:
    folder, kept = tmp_path / "here", tmp_path / "kept"
    folder.mkdir()
    given = properties_of(kind, folder)
    made(given, version)
    shutil.copytree(folder, kept)

    def as_before() -> None:
        shutil.rmtree(folder)
        shutil.copytree(kept, folder)

    walk(given, maintenance, as_before)


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.parametrize("maintenance", ALL if SOAK else [ALL[4], ALL[6]], ids=lambda each: each.name)
def test_a_second_run_finishes_what_a_killed_one_began_on_s3(s3: S3, maintenance: MaintenanceCall) -> None:
    root = uuid4().hex
    given = {
        "type": "directory",
        "warehouse": f"s3://{s3.bucket}/{root}",
        "commit": "create",
        **s3.properties,
    }
    table = made(given, "3")
    prefix = f"s3://{s3.bucket}/"
    kept = {
        info.location: s3.get(info.location.removeprefix(prefix)) for info in table.io.list_files(f"{prefix}{root}")
    }

    def as_before() -> None:
        there = {info.location for info in table.io.list_files(f"{prefix}{root}")}
        table.io.delete_many(there - kept.keys())
        for location in kept.keys() - there:
            s3.put(location.removeprefix(prefix), kept[location] or b"")

    walk(given, maintenance, as_before)


def _appends(given: Given) -> None:
    table = opened(given)
    for number in range(COMMITS):
        table.append(rows([10_000 + number], "ab"[number % 2]))


def _deletes(given: Given) -> None:
    table = opened(given)
    for number in range(COMMITS):
        table.delete(f"id = {number}")


def _deletes_by_equality(given: Given) -> None:
    table = opened(given)
    for number in range(COMMITS):
        table.delete_by_equality(rows([500 + number], "a"), ["id", "kind"])
        table.delete_by_equality(rows([500 + number], "b"), ["id", "kind"])


def _reads(given: Given) -> None:
    """Check that the rows of the tag never change and can always be read."""
    first = found(opened(given), TAG)
    assert len(first) == 2000
    for _ in range(2 * COMMITS):
        assert found(opened(given), TAG) == first


def _keeps_up(given: Given) -> None:
    for _ in range(COMMITS // 4):
        for maintenance in REWRITES:
            maintenance.run(opened(given))
        maintenance = opened(given).maintenance
        maintenance.compute_table_stats()
        maintenance.compute_partition_stats()
        # No writer here works on a version that is older than the latest 25 snapshots.
        maintenance.expire_snapshots(EVER, retain_last=25)
        opened(given).maintenance.remove_orphan_files(dry_run=False)


JOBS = (_appends, _deletes, _deletes_by_equality, _reads, _keeps_up, _keeps_up)


def _by_processes(given: Given) -> None:
    context = forking()
    processes = [context.Process(target=job, args=(given,)) for job in JOBS]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * len(JOBS)


def _by_threads(given: Given) -> None:
    with ThreadPoolExecutor(len(JOBS)) as pool:
        for ended in [pool.submit(job, given) for job in JOBS]:
            ended.result()


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.parametrize("together", [_by_processes, _by_threads])
@pytest.mark.parametrize(("kind", "version"), BESIDE if SOAK else BESIDE[::2])
def test_no_row_is_lost_or_doubled_beside_writers(
    tmp_path: Path, kind: str, version: str, together: Callable[[Given], None]
) -> None:
    given = properties_of(kind, tmp_path)
    table = made(given, version)
    for name in all_there(table):
        if name.endswith(".left"):
            os.utime(name, (0, 0))
    _check_beside_writers(given, together)


@pytest.mark.soak
@pytest.mark.parametrize("together", [_by_processes, _by_threads])
def test_no_row_is_lost_or_doubled_beside_writers_on_s3(s3: S3, together: Callable[[Given], None]) -> None:
    given = on_s3(s3)
    table = made(given, "3")
    # Files on the server cannot be given an older time, so these two are too young to count as orphans.
    table.io.delete_many([name for name in all_there(table) if name.endswith(".left")])
    _check_beside_writers(given, together)


def _check_beside_writers(given: Given, together: Callable[[Given], None]) -> None:
    table = opened(given)
    before, tagged = found(table), found(table, TAG)
    together(given)
    gone = {*range(COMMITS), *range(500, 500 + COMMITS)}
    expected = [row for row in before if row[0] not in gone]
    expected += [(10_000 + number, "ab"[number % 2]) for number in range(COMMITS)]
    table = opened(given)
    check_whole(table, sorted(expected), tagged)
    # A losing writer removes its own files, and expiry removes unneeded files. When two processes compute statistics of
    # one snapshot, the second replaces the file of the first. Older versions may still name that file, so it is left to
    # the next orphan removal.
    expire(table)
    left = all_there(table) - all_named(table)
    assert not {each for each in left if not each.endswith(".stats") and "/partition-stats-" not in each}
    _keeps_up(given)
    remove_orphans(opened(given))
    assert all_there(opened(given)) == all_named(opened(given))
    table = opened(given)
    check_whole(table, sorted(expected), tagged)
    kinds = {file["content"] for file in table.inspect.delete_files().to_pylist()}
    assert 2 not in kinds, "every equality delete was converted"
