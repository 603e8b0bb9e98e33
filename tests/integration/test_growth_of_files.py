"""Twice the files, manifests or rows of a table take about twice the CPU time.

Each shape prepares a table of a size and returns the work that is timed. ``growth`` compares n with 2n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import icefield
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from growth import MOST_GROWTH, Work, growth
from icefield.catalog import Table
from icefield.manifest import DataFile, ManifestEntries
from icefield.manifest.schemas import FILE_PATH
from icefield_maintenance.manifests import runs, sorting
from tables import new_table, rows

pytestmark = pytest.mark.slow

KINDS = 50
MERGE_ON_READ = {"write.delete.mode": "merge-on-read"}


def files(table: Table, first: int, count: int, kind: int | None = None) -> Iterator[DataFile]:
    """Data files that nobody reads, with ids of their own; their kinds take turns unless one is named."""
    for number in range(first, first + count):
        yield DataFile(
            file_path=f"{table.location()}/data/{number}.parquet",
            file_format="parquet",
            record_count=10,
            file_size_in_bytes=1000,
            partition=(f"{number % KINDS if kind is None else kind:06}",),
            spec_id=table.spec().spec_id,
            value_counts={1: 10, 2: 10, 3: 10},
            null_value_counts={1: 0, 2: 0, 3: 1},
            lower_bounds={1: (10 * number).to_bytes(8, "little")},
            upper_bounds={1: (10 * number + 9).to_bytes(8, "little")},
        )


def add(table: Table, manifests: int, each: int, *, apart: bool = False) -> Table:
    """Add files in one commit; ``apart``: each manifest has a kind of its own."""
    with table.transaction() as tx:
        for place in range(manifests):
            appending = tx.update_snapshot().fast_append()
            for file in files(table, place * each, each, place if apart else None):
                appending.append_file(file)
            appending.commit()
    return table


def with_files(manifests: int, each: int, *, apart: bool = False, **properties: str) -> Table:
    table = new_table(["kind"], properties={"commit.manifest-merge.enabled": "false", **properties})
    return add(table, manifests, each, apart=apart)


@cache
def planned(manifests: int) -> Table:
    return with_files(manifests, 200)


# Files without rows.


def planning(manifests: int) -> Work:
    table = planned(manifests)

    def work() -> None:
        icefield.clear_caches()
        assert len(list(table.scan("id = 5").plan_files())) == 1
        assert len(list(table.scan().plan_files())) == 200 * manifests

    return work


def planning_again(manifests: int) -> Work:
    table = planned(manifests)
    list(table.scan("id = 5").plan_files())
    return lambda: [list(table.scan(f"id = {number}").plan_files()) for number in range(20)]


def inspecting(manifests: int) -> Work:
    table = planned(manifests)

    def work() -> None:
        icefield.clear_caches()
        table.inspect.files()
        table.inspect.manifests()

    return work


def appending_files(manifests: int) -> Work:
    table = new_table(["kind"])
    made = list(files(table, 0, 200 * manifests))

    def work() -> None:
        appending = table.update_snapshot().fast_append()
        for file in made:
            appending.append_file(file)
        appending.commit()

    return work


def deleting_files(manifests: int) -> Work:
    table = with_files(manifests, 200)
    gone = [file.file_path for file in files(table, 0, 200 * manifests)][::2]

    def work() -> None:
        table.update_snapshot().delete().delete_file(*gone).commit()

    return work


def merging_manifests(manifests: int) -> Work:
    """A commit merges from 100 manifests on, by default."""
    table = with_files(manifests, 2)
    with table.transaction() as tx:
        tx.set_properties({"commit.manifest-merge.enabled": "true"})
    return lambda: table.update_snapshot().merge_append().append_file(next(files(table, 10**6, 1))).commit()


def rewriting_manifests(manifests: int) -> Work:
    table = with_files(manifests, 200)
    return lambda: table.maintenance.rewrite_manifests()


def rewriting_manifests_of_other_partitions(manifests: int) -> Work:
    table = with_files(manifests, 200, apart=True)
    return lambda: table.maintenance.rewrite_manifests()


def expiring_files(manifests: int) -> Work:
    table = with_files(manifests, 200)
    table.update_snapshot().delete().delete_by_filter("true").commit()
    return lambda: table.maintenance.expire_snapshots(2**60, dry_run=True)


FILES = {
    planning: 20,
    planning_again: 20,
    inspecting: 20,
    appending_files: 20,
    deleting_files: 10,
    merging_manifests: 100,
    rewriting_manifests: 20,
    rewriting_manifests_of_other_partitions: 20,
    expiring_files: 20,
}


@pytest.mark.parametrize("shape", FILES, ids=lambda shape: shape.__name__)
def test_twice_the_files_take_about_twice_the_time(shape: Callable[[int], Work]) -> None:
    assert growth(shape, FILES[shape]) <= MOST_GROWTH


# Rows.


def appending_rows(count: int) -> Work:
    data = rows(range(count))
    return lambda: new_table().append(data)


def deleting_rows(count: int) -> Work:
    """Each file of ten rows loses one."""
    table = new_table()
    with table.transaction() as tx:
        for number in range(count):
            tx.append(rows(range(10 * number, 10 * number + 10), value=1.0))
    return lambda: table.delete(f"id in ({_threes(count)})")


def _threes(count: int) -> str:
    return ", ".join(str(10 * number + 3) for number in range(count))


def upserting(count: int) -> Work:
    table, changed = new_table(), rows(range(count // 2, count + count // 2), value=2.0)
    table.append(rows(range(count)))
    return lambda: table.upsert(changed, ["id"])


@cache
def with_position_deletes(count: int) -> Table:
    """Each data file has a position delete file of its own."""
    table = new_table(properties={"format-version": "2", **MERGE_ON_READ})
    with table.transaction() as tx:
        for number in range(count):
            tx.append(rows(range(10 * number, 10 * number + 10)))
    table.delete(f"id in ({_threes(count)})")
    return table


def reading_position_deletes(count: int) -> Work:
    table = with_position_deletes(count)

    def work() -> None:
        icefield.clear_caches()
        assert table.scan().to_arrow().num_rows == 9 * count

    return work


ROWS = {appending_rows: 200_000, deleting_rows: 40, upserting: 50_000, reading_position_deletes: 60}


@pytest.mark.parametrize("shape", ROWS, ids=lambda shape: shape.__name__)
def test_twice_the_rows_take_about_twice_the_time(shape: Callable[[int], Work]) -> None:
    assert growth(shape, ROWS[shape]) <= MOST_GROWTH


def test_a_rewrite_that_walks_all_manifests_for_each_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def walking(entries: ManifestEntries, *given: Any) -> sorting.Ints:
        seen.append(entries.column(FILE_PATH))
        for _ in range(50):
            pc.sort_indices(pa.concat_arrays(seen))
        return sorting.sorted_places(entries, *given)

    def rewriting(manifests: int) -> Work:
        seen.clear()
        return rewriting_manifests_of_other_partitions(manifests)

    seen: list[pa.Array] = []
    monkeypatch.setattr(runs, "sorted_places", walking)
    monkeypatch.setattr(runs, "_ENTRIES_AT_ONCE", 1)
    assert growth(rewriting, 20) > MOST_GROWTH
