"""Twice the updates in one change of a table's metadata take about twice the CPU time."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from growth import MOST_GROWTH, Work, growth
from icefield.metadata import Snapshot, TableUpdate, apply_updates
from icefield.metadata.entries import EncryptedKey
from icefield.metadata.refs import MAIN_BRANCH, branch
from icefield.metadata.updates import (
    AddEncryptionKey,
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    RemoveProperties,
    RemoveSnapshotRef,
    SetProperties,
    SetSnapshotRef,
)
from icefield.metadata.updates.creation import created_by, creation_updates
from icefield.partitioning import PartitionField, PartitionSpec, SortField, SortOrder
from icefield.schema import Schema
from icefield.types import LongType, NestedField
from metadata_examples import new_table, snapshot_for

pytestmark = pytest.mark.slow

BASE = apply_updates(new_table(3), [AddSnapshot(snapshot_for(new_table(3), 1))])


def snapshot(number: int) -> Snapshot:
    return snapshot_for(BASE, number, sequence_number=number, first_row_id=10 * (number - 1))


def snapshots(count: int) -> list[TableUpdate]:
    return [AddSnapshot(snapshot(number)) for number in range(2, count + 2)]


def commits(count: int) -> list[TableUpdate]:
    heads = [SetSnapshotRef(MAIN_BRANCH, branch(number)) for number in range(2, count + 2)]
    return [update for pair in zip(snapshots(count), heads, strict=True) for update in pair]


def schemas(count: int) -> list[TableUpdate]:
    fields = BASE.schema().fields
    return [AddSchema(Schema(*fields, NestedField(90, f"n{number}", LongType()))) for number in range(count)]


def specs(count: int) -> list[TableUpdate]:
    made = (PartitionSpec(PartitionField(1, 1000, f"bucket[{n}]", f"b{n}")) for n in range(1, count + 1))
    return list(map(AddPartitionSpec, made))


def orders(count: int) -> list[TableUpdate]:
    return [AddSortOrder(SortOrder(SortField(1, f"bucket[{n}]"), order_id=1)) for n in range(1, count + 1)]


def branches(count: int) -> list[TableUpdate]:
    return [SetSnapshotRef(f"b{number}", branch(1)) for number in range(count)]


def branches_that_go(count: int) -> list[TableUpdate]:
    return [*branches(count), *(RemoveSnapshotRef(f"b{number}") for number in range(count))]


def properties(count: int) -> list[TableUpdate]:
    names = [f"p{number}" for number in range(count)]
    return [*(SetProperties({name: "1"}) for name in names), *(RemoveProperties([name]) for name in names)]


def keys(count: int) -> list[TableUpdate]:
    return [AddEncryptionKey(EncryptedKey(f"k{number}", "c2VjcmV0")) for number in range(count)]


UPDATES: dict[Callable[[int], list[TableUpdate]], int] = {
    snapshots: 1000,
    commits: 1000,
    schemas: 500,
    specs: 500,
    orders: 500,
    branches: 2000,
    branches_that_go: 1000,
    properties: 1000,
    keys: 1000,
}


@pytest.mark.parametrize("updates", UPDATES, ids=lambda updates: updates.__name__)
def test_twice_the_updates_of_a_change_take_about_twice_the_time(updates: Callable[[int], list[TableUpdate]]) -> None:
    def changing(count: int) -> Work:
        given = updates(count)
        return lambda: apply_updates(BASE, given)

    assert growth(changing, UPDATES[updates]) <= MOST_GROWTH


def test_twice_the_updates_of_a_creation_take_about_twice_the_time() -> None:
    def creating(count: int) -> Work:
        given: Iterable[TableUpdate] = [*creation_updates(new_table(3)), *schemas(count), *properties(count)]
        return lambda: created_by(given)

    assert growth(creating, 500) <= MOST_GROWTH
