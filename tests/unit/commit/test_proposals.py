"""The proposals of commits: updates, and the requirements that protect them."""

from __future__ import annotations

import pytest
from icefield.commit import change_of, creation_of
from icefield.metadata import RefType, SnapshotRef
from icefield.metadata.requirements import AssertCreate, AssertCurrentSchemaId, AssertRefSnapshotID, AssertTableUUID
from icefield.metadata.updates.snapshots import RemoveSnapshotRef, SetSnapshotRef
from icefield.metadata.updates.table import SetProperties
from tables import new_table, rows


@pytest.mark.spec("COMMIT-01")
def test_a_change_requires_the_table_and_the_refs_that_it_moves() -> None:
    table = new_table()
    table.append(rows([1]))
    metadata = table.metadata
    snapshot_id = table.current_snapshot().snapshot_id
    assert metadata.table_uuid is not None
    same = AssertTableUUID(metadata.table_uuid)
    moved = [
        SetSnapshotRef("new", SnapshotRef(snapshot_id, RefType.BRANCH)),
        RemoveSnapshotRef("new"),
        SetSnapshotRef("main", SnapshotRef(snapshot_id, RefType.BRANCH)),
        SetProperties({"a": "1"}),
    ]
    refs = (AssertRefSnapshotID("new", None), AssertRefSnapshotID("main", snapshot_id))
    proposal = change_of(metadata, moved, (same, refs[1]))
    assert proposal.requirements == (same, *refs)
    assert (proposal.updates, proposal.base) == (tuple(moved), metadata)
    assert proposal.metadata.properties["a"] == "1"
    assert change_of(metadata, moved, metadata=metadata).metadata is metadata


def test_a_requirement_on_the_result_of_an_earlier_action_is_left_out() -> None:
    metadata = new_table().metadata
    current = AssertCurrentSchemaId(metadata.current_schema_id)
    later = AssertCurrentSchemaId(metadata.current_schema_id + 1)
    assert change_of(metadata, [], (current, later)).requirements[1:] == (current,)


def test_a_creation_requires_that_there_is_no_table_and_begins_with_the_updates_that_create_it() -> None:
    metadata = new_table().metadata
    changed = new_table().metadata
    proposal = creation_of(metadata, [SetProperties({"a": "1"})], changed)
    assert proposal.metadata is changed
    assert proposal.requirements == (AssertCreate(),)
    assert proposal.updates[-1] == SetProperties({"a": "1"})
    assert proposal.updates[:-1] == creation_of(metadata).updates
    assert creation_of(metadata).metadata is metadata
