"""Metadata shows the updates that made it, and shows no other updates."""

from __future__ import annotations

import pytest
from icefield.metadata import (
    AddEncryptionKey,
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    EncryptedKey,
    PartitionStatisticsFile,
    RefType,
    RemoveEncryptionKey,
    RemovePartitionSpecs,
    RemovePartitionStatistics,
    RemoveProperties,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetPartitionStatistics,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
    SnapshotRef,
    StatisticsFile,
    TableUpdate,
    UpgradeFormatVersion,
    apply_updates,
)
from icefield.partitioning import PartitionField, PartitionSpec, SortField, SortOrder
from icefield.schema import Schema
from icefield.types import NestedField, StringType
from icefield_rest.shown import not_shown
from metadata_examples import new_table, snapshot_for

LAST_ADDED = -1
BARE = new_table(3, properties={"kept": "1"})
WIDER = Schema(*BARE.schema().fields, NestedField(4, "extra", StringType()))
BY_NAME = PartitionSpec(PartitionField(3, 1001, "bucket[4]", "name_bucket"))
SORTED = SortOrder(SortField(1, "identity", "asc", "nulls-first"))
SNAPSHOT = snapshot_for(BARE, 7)
WITH_ROWS = apply_updates(BARE, [AddSnapshot(SNAPSHOT)])
STATISTICS = StatisticsFile(7, "s3://b/s.puffin", 1, 1, ())
PARTITIONS = PartitionStatisticsFile(7, "s3://b/p.parquet", 1)
KEY = EncryptedKey("k", "AAAA")

# Each kind of change: the updates before it, the update itself, and the update that undoes it.
STEPS: dict[str, tuple[list[TableUpdate], TableUpdate, TableUpdate]] = {
    "snapshot": ([], AddSnapshot(SNAPSHOT), RemoveSnapshots([7])),
    "ref": ([AddSnapshot(SNAPSHOT)], SetSnapshotRef("x", SnapshotRef(7, RefType.TAG)), RemoveSnapshotRef("x")),
    "property": ([], SetProperties({"a": "1"}), RemoveProperties(["a"])),
    "schema": ([AddSchema(WIDER)], SetCurrentSchema(LAST_ADDED), SetCurrentSchema(0)),
    "added schema": ([], AddSchema(WIDER), RemoveSchemas([1])),
    "spec": ([AddPartitionSpec(BY_NAME)], SetDefaultSpec(LAST_ADDED), SetDefaultSpec(0)),
    "added spec": ([], AddPartitionSpec(BY_NAME), RemovePartitionSpecs([1])),
    "order": ([AddSortOrder(SORTED)], SetDefaultSortOrder(LAST_ADDED), SetDefaultSortOrder(0)),
    "statistics": ([AddSnapshot(SNAPSHOT)], SetStatistics(STATISTICS), RemoveStatistics(7)),
    "partition statistics": ([AddSnapshot(SNAPSHOT)], SetPartitionStatistics(PARTITIONS), RemovePartitionStatistics(7)),
    "key": ([], AddEncryptionKey(KEY), RemoveEncryptionKey("k")),
}


@pytest.mark.parametrize("step", STEPS)
def test_an_update_is_shown_by_what_it_made_and_not_by_what_was_before(step: str) -> None:
    before, update, undo = STEPS[step]
    base = apply_updates(BARE, before)
    made = apply_updates(BARE, [*before, update])
    assert not not_shown([*before, update], made, made)
    assert list(not_shown([update], made, base).values()) == [update]
    undone = apply_updates(made, [undo])
    assert not not_shown([undo], undone, undone)
    assert list(not_shown([undo], undone, made).values()) == [undo]


@pytest.mark.parametrize("step", STEPS)
def test_what_a_change_undid_itself_is_not_missed(step: str) -> None:
    before, update, undo = STEPS[step]
    if step == "snapshot":
        undo = SetProperties({"other": "1"})
    made = apply_updates(BARE, [*before, update, undo])
    assert not not_shown([*before, update, undo], made, made)


def test_a_format_version_is_shown_however_it_was_asked_for() -> None:
    base = new_table(2)
    for update in (UpgradeFormatVersion(3), SetProperties({"format-version": "3"})):
        made = apply_updates(base, [update])
        assert not not_shown([update], made, made)
        assert list(not_shown([update], made, base).values()) == [update]


def test_what_a_service_adds_and_how_it_numbers_is_no_difference() -> None:
    updates = [AddSchema(WIDER), SetCurrentSchema(LAST_ADDED), SetProperties({"a": "1"})]
    made = apply_updates(BARE, updates)
    other = apply_updates(BARE, [AddSchema(BARE.schema().select("id")), SetProperties({"service": "x"})])
    assert not not_shown(updates, made, apply_updates(other, updates))
