"""Many updates in one change: the result is that of single steps, and no metadata that was handed out changes."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.metadata import TableMetadata, encode_metadata
from icefield.metadata.entries import PartitionStatisticsFile, StatisticsFile
from icefield.metadata.refs import SnapshotRef, branch, tag
from icefield.metadata.updates.apply import MetadataBuilder, apply_updates
from icefield.metadata.updates.base import TableDrafts, TableUpdate
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
from icefield.metadata.updates.table import RemoveProperties, SetProperties
from icefield.partitioning import PartitionField, PartitionSpec, SortField, SortOrder
from icefield.schema import Schema
from icefield.types import NestedField, StringType
from metadata_examples import NOW_MS, new_table, snapshot_for

NUMBERS = st.integers(1, 4)
NAMES = st.sampled_from(["a", "b", "c"])
BASE = new_table(2)


def wider(number: int) -> Schema:
    return Schema(*BASE.schema().fields, NestedField(90, f"n{number}", StringType()))


def spec(number: int) -> PartitionSpec:
    return PartitionSpec(PartitionField(1, 1000, f"bucket[{number}]", f"b{number}"))


def order(number: int) -> SortOrder:
    return SortOrder(SortField(1, f"bucket[{number}]"), order_id=1)


def snapshot(number: int) -> AddSnapshot:
    return AddSnapshot(snapshot_for(BASE, number, sequence_number=number, timestamp_ms=NOW_MS))


def moved(name: str, ref: SnapshotRef) -> SetSnapshotRef:
    return SetSnapshotRef(name, ref)


def statistics(number: int) -> SetStatistics:
    return SetStatistics(StatisticsFile(number, f"s3://{number}", 1, 1, ()))


UPDATES: st.SearchStrategy[TableUpdate] = st.one_of(
    st.builds(AddSchema, NUMBERS.map(wider)),
    st.builds(AddPartitionSpec, NUMBERS.map(spec)),
    st.builds(AddSortOrder, NUMBERS.map(order)),
    NUMBERS.map(snapshot),
    st.builds(moved, NAMES, st.one_of(NUMBERS.map(branch), NUMBERS.map(tag))),
    st.builds(RemoveSnapshotRef, st.one_of(NAMES, st.just("main"))),
    st.builds(RemoveSnapshots, st.sets(NUMBERS)),
    st.builds(RemoveSchemas, st.sets(NUMBERS)),
    NUMBERS.map(statistics),
    st.builds(RemoveStatistics, NUMBERS),
    st.builds(lambda number: SetPartitionStatistics(PartitionStatisticsFile(number, f"s3://{number}", 1)), NUMBERS),
    st.builds(RemovePartitionStatistics, NUMBERS),
    st.builds(RemovePartitionSpecs, st.sets(NUMBERS)),
    st.builds(SetProperties, st.dictionaries(NAMES, NAMES)),
    st.builds(RemoveProperties, st.lists(NAMES)),
)


def lived() -> TableMetadata:
    """A table with a history, and with two files of statistics for one snapshot, as other writers leave them."""
    metadata = apply_updates(BASE, list(map(AddPartitionSpec, map(spec, range(1, 5)))), now_ms=NOW_MS)
    for number in (1, 2, 1, 3):
        head = [] if metadata.snapshots.has(number) else [snapshot(number)]
        metadata = apply_updates(metadata, [*head, moved("main", branch(number))], now_ms=NOW_MS)
    metadata = apply_updates(metadata, [moved("main", branch(3)), *map(statistics, (1, 2))], now_ms=NOW_MS)
    return replace(metadata, statistics=metadata.statistics.extended([statistics(1).statistics]))


LIVED = lived()


def valid(updates: list[TableUpdate], base: TableMetadata = BASE) -> tuple[list[TableUpdate], TableMetadata]:
    """The updates that can be applied, and the metadata after applying them one by one."""
    taken: list[TableUpdate] = []
    change, metadata = TableDrafts(base=base, timestamp_ms=NOW_MS), base
    for update in updates:
        try:
            before, string = metadata, encode_metadata(metadata)
            metadata = change.settled(update.apply(metadata, change))
            taken.append(update)
            assert encode_metadata(before) == string
        except ValueError:
            continue
    return taken, metadata


@settings(max_examples=300)
@given(st.sampled_from([BASE, LIVED]), st.lists(UPDATES, max_size=25))
def test_many_updates_at_once_give_what_single_ones_give(base: TableMetadata, updates: list[TableUpdate]) -> None:
    taken, alone = valid(updates, base)
    together = apply_updates(base, taken, now_ms=NOW_MS)
    if together.current_snapshot_id == base.current_snapshot_id:
        assert list(together.snapshot_log) == list(alone.snapshot_log)
    for name in ("schemas", "partition_specs", "sort_orders", "snapshots", "statistics", "partition_statistics"):
        found, wanted = getattr(together, name), getattr(alone, name)
        assert list(found) == list(wanted)
        assert found.raw() == wanted.raw()
        assert found.positions == wanted.positions
    assert list(together.refs.items()) == list(alone.refs.items())
    assert list(together.properties.items()) == list(alone.properties.items())


@settings(max_examples=150)
@given(st.lists(st.lists(UPDATES, max_size=4), max_size=6))
def test_metadata_between_two_steps_of_a_change_stays_as_it_is(steps: list[list[TableUpdate]]) -> None:
    builder = MetadataBuilder(BASE, now_ms=NOW_MS)
    seen: list[tuple[TableMetadata, bytes]] = [(BASE, encode_metadata(BASE))]
    for step in steps:
        try:
            metadata = builder.apply(step)
        except ValueError:
            break
        seen.append((metadata, encode_metadata(metadata)))
    for metadata, string in seen:
        assert encode_metadata(metadata) == string
