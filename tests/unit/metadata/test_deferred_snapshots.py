"""Metadata with only some snapshots fetches all of them as soon as an operation needs another snapshot."""

from __future__ import annotations

from dataclasses import replace

import pytest
from icefield.errors import StorageError
from icefield.metadata import TableMetadata, apply_updates, with_deferred_snapshots
from icefield.metadata.updates.snapshots import AddSnapshot
from metadata_examples import new_table, snapshot_for


def with_snapshots(metadata: TableMetadata, *ids: int) -> TableMetadata:
    for number in ids:
        metadata = apply_updates(metadata, [AddSnapshot(snapshot_for(metadata, number))])
    return metadata


def test_only_what_is_not_at_hand_is_fetched_and_once() -> None:
    whole, fetched = with_snapshots(new_table(), 1, 2, 3), []
    some = replace(whole, snapshots=whole.snapshots.kept([2]))
    deferred = with_deferred_snapshots(some, lambda: fetched.append(1) or with_snapshots(whole, 4))  # type: ignore
    assert deferred.snapshot_by_id(3) == whole.snapshot_by_id(3)
    assert deferred.snapshots.loaded(3) == whole.snapshot_by_id(3)
    assert deferred.snapshots.loaded(1) is None
    assert "snapshots=1" in repr(deferred)
    assert fetched == []
    assert deferred.snapshot_by_id(1) == whole.snapshot_by_id(1)
    assert deferred.snapshot_by_id(4) is None
    assert deferred == whole
    assert [each.snapshot_id for each in with_snapshots(deferred, 5).snapshots] == [1, 2, 3, 5]
    assert deferred.snapshots.loaded(1) == whole.snapshots.loaded(1) == whole.snapshot_by_id(1)
    assert fetched == [1]


def test_what_went_meanwhile_is_gone_but_for_what_was_at_hand() -> None:
    whole = with_snapshots(new_table(), 1, 2, 3)
    some = replace(whole, snapshots=whole.snapshots.kept([2]))
    later = replace(whole, snapshots=whole.snapshots.kept([1]))
    assert [each.snapshot_id for each in with_deferred_snapshots(some, lambda: later).snapshots] == [2, 3]
    with pytest.raises(StorageError, match="replaced by another"):
        len(with_deferred_snapshots(some, new_table).snapshots)
