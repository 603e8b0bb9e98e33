"""Twice the snapshots of twice the branches take about twice the CPU time, even if branches share snapshots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
from growth import MOST_GROWTH, Work, growth
from icefield.metadata import Snapshot, TableMetadata, TableUpdate, apply_updates
from icefield.metadata.refs import MAIN_BRANCH, RefType, SnapshotRef, branch
from icefield.metadata.remembered import STREAM_EPOCH_ID, STREAM_QUERY_ID, branches_moved
from icefield.metadata.snapshots import STAGED_WAP_ID
from icefield.metadata.updates.snapshots import AddSnapshot, SetSnapshotRef
from icefield.metadata.updates.table import SetProperties
from icefield_maintenance.expiry.action import changes_of
from icefield_maintenance.expiry.retention import Retention
from metadata_examples import new_table, snapshot_for

pytestmark = pytest.mark.slow

BASE = new_table(2)
NEVER, EVER = 0, 2**60


def snapshot(number: int, published: bool) -> Snapshot:
    deed = {STAGED_WAP_ID: f"w{number}"} if published else {STREAM_QUERY_ID: "q", STREAM_EPOCH_ID: str(number)}
    parent = number - 1 if number > 1 else None
    summary = {"operation": "append", **deed}
    return snapshot_for(BASE, number, parent_snapshot_id=parent, sequence_number=number, summary=summary)


@cache
def line(count: int, published: bool = False) -> TableMetadata:
    """A line of snapshots, of stream epochs or published ones, with as many branches at the last snapshot."""
    updates: list[TableUpdate] = [AddSnapshot(snapshot(number, published)) for number in range(1, count + 1)]
    names = [MAIN_BRANCH, *(f"b{number}" for number in range(count))]
    return apply_updates(BASE, [*updates, *(SetSnapshotRef(name, branch(count)) for name in names)])


def expiring_epochs(count: int) -> Work:
    metadata = line(count)
    return lambda: changes_of(metadata, Retention(EVER, EVER, 1), None)


def expiring_what_was_published(count: int) -> Work:
    metadata = line(count, True)
    return lambda: changes_of(metadata, Retention(EVER, EVER, 1), None)


def keeping_young_snapshots(count: int) -> Work:
    metadata = line(count)
    return lambda: changes_of(metadata, Retention(EVER, NEVER, 1), None)


def keeping_what_branches_state(count: int) -> Work:
    refs = {name: SnapshotRef(count, RefType.BRANCH, max_snapshot_age_ms=2**61) for name in line(count).refs}
    stated = replace(line(count), refs=refs)
    return lambda: changes_of(stated, Retention(EVER, EVER, 1), None)


def branches_that_follow_a_memory(count: int) -> Work:
    """The branch ``main`` keeps epochs in a property, and a new branch is created at each snapshot."""
    held = SetProperties({"icefield.epochs.main": '{"q":[1,1,1]}'})
    metadata = apply_updates(line(count), [held])
    moved: dict[str, int | None] = {f"n{number}": number for number in range(1, count + 1)}
    return lambda: branches_moved(metadata, moved)


def branches_that_all_remember(count: int) -> Work:
    """Every branch keeps epochs in a property; the work creates as many branches at the first snapshot."""
    held = {f"icefield.epochs.b{number}": '{"q":[1,1,1]}' for number in range(count)}
    metadata = apply_updates(line(count), [SetProperties(held)])
    return lambda: branches_moved(metadata, {f"n{number}": 1 for number in range(count)})


SHAPES: dict[Callable[[int], Work], int] = {
    expiring_epochs: 400,
    expiring_what_was_published: 400,
    keeping_young_snapshots: 400,
    keeping_what_branches_state: 400,
    branches_that_follow_a_memory: 400,
    branches_that_all_remember: 100,
}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_twice_the_branches_over_twice_the_snapshots_take_about_twice_the_time(shape: Callable[[int], Work]) -> None:
    assert growth(shape, SHAPES[shape]) <= MOST_GROWTH
