"""Random histories: what expiry deletes is what sets of strings say, and every kept snapshot reads as before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield import Table
from icefield.abc import WorkRunner
from icefield.errors import IcefieldError
from naive_reachability import files_of, kept_snapshots
from pickling_runner import PicklingRunner
from tables import ids, memory_catalog, new_table, orphans, rows, stored_files

MARKED = {f"write.{change}.mode": "merge-on-read" for change in ("delete", "update", "merge")}
PLACES = st.integers(0, 7)


def steps() -> st.SearchStrategy[tuple[Any, ...]]:
    number = st.integers(0, 9)
    return st.one_of(
        st.tuples(st.just("append"), number, st.sampled_from(["main", "b", None])),
        st.tuples(st.just("delete"), number, st.sampled_from(["main", "b"])),
        st.tuples(st.just("overwrite"), number, st.just("main")),
        st.tuples(st.just("manifests"), number, st.just("main")),
        st.tuples(st.just("again"), number, st.just("main")),
        st.tuples(st.just("tag"), number, st.sampled_from(["t", "u"])),
        st.tuples(st.just("branch"), number, st.just("b")),
        st.tuples(st.just("current"), number, st.just("main")),
        st.tuples(st.just("pick"), number, st.just("main")),
        st.tuples(st.just("untag"), number, st.sampled_from(["t", "u"])),
    )


def taken(table: Table, step: tuple[str, int, str | None]) -> None:
    """One change of the table; one that is refused changes nothing."""
    name, number, ref = step
    snapshots = table.snapshots()
    chosen = snapshots[number % len(snapshots)].snapshot_id if snapshots else 0
    changes: dict[str, Callable[[], Any]] = {
        "append": lambda: table.append(rows([number], "ab"[number % 2]), branch=ref),
        "delete": lambda: table.delete(f"id < {number}", branch=ref),
        "overwrite": lambda: table.overwrite(rows([number, 10]), "kind = 'a'"),
        "manifests": lambda: table.maintenance.rewrite_manifests(),
        "again": lambda: table.add_files(
            [sorted(name for name in stored_files(table) if name.endswith(".parquet"))[0]], check_duplicate_files=False
        ),
        "tag": lambda: table.manage_snapshots().create_tag(chosen, str(ref)).commit(),
        "branch": lambda: table.manage_snapshots().create_branch(chosen, "b").commit(),
        "current": lambda: table.manage_snapshots().set_current_snapshot(chosen).commit(),
        "pick": lambda: table.manage_snapshots().cherry_pick(chosen).commit(),
        "untag": lambda: table.manage_snapshots().remove_tag(str(ref)).commit(),
    }
    try:
        changes[name]()
    except (IcefieldError, IndexError):
        table.refresh()


def shown(table: Table, snapshot_id: int) -> list[int] | str:
    try:
        return ids(table, snapshot_id=snapshot_id)
    except IcefieldError as error:  # a file that was added twice is refused
        return type(error).__name__


@pytest.mark.slow
@pytest.mark.spec("REF-09", "SNAP-25")
@given(
    st.lists(steps(), min_size=2, max_size=10),
    st.integers(0, 10),
    st.integers(1, 3),
    st.sampled_from(["1", "2", "3"]),
    st.booleans(),
    st.sampled_from([None, PicklingRunner()]),
)
@settings(max_examples=60, deadline=None)
def test_what_is_deleted_is_what_only_expired_snapshots_refer_to(
    history: list[tuple[str, int, str | None]],
    cut: int,
    least: int,
    version: str,
    marked: bool,
    runner: WorkRunner | None,
) -> None:
    properties = {"format-version": version, "commit.manifest.min-count-to-merge": "3"}
    if marked and version != "1":
        properties |= MARKED
    table = new_table(["kind"], catalog=memory_catalog(), **properties)
    table.append(rows(range(4)))
    for half in (history[: len(history) // 2], history):
        for step in half:
            taken(table, step)
        snapshots = table.snapshots()
        older_than = snapshots[min(cut, len(snapshots) - 1)].timestamp_ms + 1
        kept, refs = kept_snapshots(table.metadata, 0, older_than, least)
        before, contents = stored_files(table), {each: shown(table, each) for each in kept}
        stay = files_of(table, [each for each in snapshots if each.snapshot_id in kept])
        expected = files_of(table, [each for each in snapshots if each.snapshot_id not in kept]) - stay
        planned = table.maintenance.expire_snapshots(older_than, least, dry_run=True)
        maintenance = table.maintenance if runner is None else table.maintenance.on(runner)
        done = maintenance.expire_snapshots(older_than, least)
        assert {each.snapshot_id for each in table.snapshots()} == kept
        assert set(table.refs()) == refs
        assert before - stored_files(table) == expected
        assert done.files == planned.files == len(expected)
        assert set(planned.locations().read_all()["location"].to_pylist()) == expected
        assert {each: shown(table, each) for each in kept} == contents
        # Files that are marked as deleted in a kept snapshot, and live in none, are gone; others are not.
        assert orphans(table) == set()
