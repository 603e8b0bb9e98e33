"""Twice the updates in one change of a table's metadata take about twice the CPU time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache

import pytest
from growth import MOST_GROWTH, Work, growth
from icefield.metadata import JsonArray, Snapshot, SnapshotLogEntry, TableMetadata, TableUpdate, apply_updates
from icefield.metadata.codecs import SNAPSHOT_LOG
from icefield.metadata.entries import EncryptedKey, PartitionStatisticsFile, StatisticsFile
from icefield.metadata.refs import MAIN_BRANCH, branch
from icefield.metadata.updates.apply import created_by, creation_updates
from icefield.metadata.updates.definitions import (
    AddPartitionSpec,
    AddSchema,
    AddSortOrder,
    RemovePartitionSpecs,
    RemoveSchemas,
)
from icefield.metadata.updates.snapshots import (
    AddSnapshot,
    RemovePartitionStatistics,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
    SetPartitionStatistics,
    SetSnapshotRef,
    SetStatistics,
)
from icefield.metadata.updates.table import AddEncryptionKey, RemoveEncryptionKey, RemoveProperties, SetProperties
from icefield.metadata.view_updates import (
    AddViewSchema,
    AddViewVersion,
    SetViewProperties,
    ViewUpdate,
    apply_view_updates,
    new_view_metadata,
)
from icefield.metadata.views import ViewRepresentation, ViewVersion
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


# Removals from a base with the same number of entries.


def statistics(number: int) -> SetStatistics:
    return SetStatistics(StatisticsFile(number, f"memory://s/{number}", 1, 1, ()))


def partition_statistics(number: int) -> SetPartitionStatistics:
    return SetPartitionStatistics(PartitionStatisticsFile(number, f"memory://p/{number}", 1))


@cache
def with_snapshots(count: int) -> TableMetadata:
    """Snapshots with statistics, log entries and a schema each; a branch names only the last snapshot."""
    numbers = range(2, count + 2)
    stated = [made(number) for number in numbers for made in (statistics, partition_statistics)]
    made = apply_updates(BASE, [*commits(count + 1), *stated, *schemas(count), *keys(count), *specs(count)])
    log = [SnapshotLogEntry(1, number) for number in range(1, count + 3)]
    return replace(made, snapshot_log=JsonArray(SNAPSHOT_LOG).extended(log))


def statistics_that_go(count: int) -> list[TableUpdate]:
    return [RemoveStatistics(number) for number in range(2, count + 2)]


def statistics_that_are_replaced(count: int) -> list[TableUpdate]:
    return [made(number) for number in range(2, count + 2) for made in (statistics, partition_statistics)]


def snapshots_that_go(count: int) -> list[TableUpdate]:
    """Removals of single snapshots and of their statistics, as Java's library describes an expiry."""
    kinds: tuple[Callable[[int], TableUpdate], ...] = (
        lambda number: RemoveSnapshots([number]),
        RemoveStatistics,
        RemovePartitionStatistics,
    )
    return [made(number) for number in range(2, count + 2) for made in kinds]


def newest_snapshots_that_go(count: int) -> list[TableUpdate]:
    return [RemoveSnapshots([number]) for number in range(count + 1, 1, -1)]


def snapshots_that_go_beside_branches(count: int) -> list[TableUpdate]:
    named = [SetSnapshotRef(f"b{number}", branch(count + 2)) for number in range(count)]
    return [*named, *snapshots_that_go(count)]


def schemas_that_go(count: int) -> list[TableUpdate]:
    return [RemoveSchemas([number]) for number in range(1, count + 1)]


def specs_that_go(count: int) -> list[TableUpdate]:
    return [RemovePartitionSpecs([number]) for number in range(1, count + 1)]


def keys_that_go(count: int) -> list[TableUpdate]:
    return [RemoveEncryptionKey(f"k{number}") for number in range(count)]


def alternating(count: int, *kinds: Callable[[int], list[TableUpdate]]) -> list[TableUpdate]:
    return [update for updates in zip(*(made(count) for made in kinds), strict=True) for update in updates]


def later_snapshots(count: int) -> list[TableUpdate]:
    return [AddSnapshot(snapshot(number)) for number in range(count + 3, 2 * count + 3)]


def later_heads(count: int) -> list[TableUpdate]:
    return [SetSnapshotRef(MAIN_BRANCH, branch(number)) for number in range(count + 3, 2 * count + 3)]


def earlier_snapshots_that_go(count: int) -> list[TableUpdate]:
    return [RemoveSnapshots([number]) for number in range(2, count + 2)]


def further_branches(count: int) -> list[TableUpdate]:
    return [SetSnapshotRef(f"b{number}", branch(count + 2)) for number in range(count)]


def further_schemas(count: int) -> list[TableUpdate]:
    fields = BASE.schema().fields
    return [AddSchema(Schema(*fields, NestedField(91, f"m{number}", LongType()))) for number in range(count)]


def newest_schemas_that_go(count: int) -> list[TableUpdate]:
    return [RemoveSchemas([number]) for number in range(count, 0, -1)]


def further_specs(count: int) -> list[TableUpdate]:
    made = (PartitionSpec(PartitionField(1, 1000, f"truncate[{n}]", f"t{n}")) for n in range(1, count + 1))
    return list(map(AddPartitionSpec, made))


def snapshots_that_go_as_others_come(count: int) -> list[TableUpdate]:
    return alternating(count, earlier_snapshots_that_go, later_snapshots)


def snapshots_that_go_as_the_head_moves_beside_branches(count: int) -> list[TableUpdate]:
    moving = alternating(count, earlier_snapshots_that_go, later_snapshots, later_heads)
    return [*further_branches(count), *moving]


def schemas_that_go_as_others_come(count: int) -> list[TableUpdate]:
    return alternating(count, schemas_that_go, further_schemas)


def newest_schemas_that_go_as_others_come(count: int) -> list[TableUpdate]:
    return alternating(count, newest_schemas_that_go, further_schemas)


def specs_that_go_as_others_come(count: int) -> list[TableUpdate]:
    return alternating(count, specs_that_go, further_specs)


REMOVALS: dict[Callable[[int], list[TableUpdate]], int] = {
    statistics_that_go: 1000,
    statistics_that_are_replaced: 500,
    snapshots_that_go: 500,
    newest_snapshots_that_go: 1000,
    snapshots_that_go_beside_branches: 500,
    schemas_that_go: 1000,
    specs_that_go: 1000,
    keys_that_go: 1000,
    snapshots_that_go_as_others_come: 500,
    snapshots_that_go_as_the_head_moves_beside_branches: 1000,
    schemas_that_go_as_others_come: 500,
    newest_schemas_that_go_as_others_come: 500,
    specs_that_go_as_others_come: 500,
}


@pytest.mark.parametrize("updates", REMOVALS, ids=lambda updates: updates.__name__)
def test_twice_the_removals_of_twice_the_entries_take_about_twice_the_time(
    updates: Callable[[int], list[TableUpdate]],
) -> None:
    def changing(count: int) -> Work:
        base, given = with_snapshots(count), updates(count)
        return lambda: apply_updates(base, given)

    assert growth(changing, REMOVALS[updates]) <= MOST_GROWTH


# Views.


QUERY = ViewRepresentation("sql", "select 1", "spark")
VIEW = new_view_metadata(BASE.schema(), ViewVersion(1, 1, 0, {}, (QUERY,), ("db",)), "memory://v")


def view_schemas(count: int) -> list[ViewUpdate]:
    fields = BASE.schema().fields
    return [AddViewSchema(Schema(*fields, NestedField(90, f"n{number}", LongType()))) for number in range(count)]


def view_versions(count: int) -> list[ViewUpdate]:
    summaries = ({"number": str(number)} for number in range(count))
    return [AddViewVersion(ViewVersion(1, 1, 0, summary, (QUERY,), ("db",))) for summary in summaries]


def view_properties(count: int) -> list[ViewUpdate]:
    names = [f"p{number}" for number in range(count)]
    return [*(SetViewProperties({name: "1"}) for name in names), *(RemoveProperties([name]) for name in names)]


VIEWS: dict[Callable[[int], list[ViewUpdate]], int] = {view_schemas: 500, view_versions: 500, view_properties: 1000}


@pytest.mark.parametrize("updates", VIEWS, ids=lambda updates: updates.__name__)
def test_twice_the_updates_of_a_view_take_about_twice_the_time(updates: Callable[[int], list[ViewUpdate]]) -> None:
    def changing(count: int) -> Work:
        given = updates(count)
        return lambda: apply_view_updates(VIEW, given)

    assert growth(changing, VIEWS[updates]) <= MOST_GROWTH
