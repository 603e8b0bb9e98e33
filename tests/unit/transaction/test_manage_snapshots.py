"""Branches, tags and the current snapshot."""

from __future__ import annotations

import numpy as np
import pytest
from icefield.errors import InvalidArgument, NoSuchSnapshot
from tables import ids, meddled, new_table, rows


@pytest.fixture
def table():
    found = new_table()
    for number in range(1, 4):
        found.append(rows([number]))
    return found


def snapshot_ids(table) -> list[int]:
    return [snapshot.snapshot_id for snapshot in table.snapshots()]


@pytest.mark.spec("REF-01", "REF-02", "REF-03", "REF-04")
def test_branches_and_tags_are_created_and_removed(table):
    first, second, third = snapshot_ids(table)
    with table.manage_snapshots() as manage:
        manage.create_branch(first, "dev", max_ref_age_ms=1, max_snapshot_age_ms=2, min_snapshots_to_keep=3)
        manage.create_tag(second, "v1", max_ref_age_ms=4)
    dev, tag = table.refs()["dev"], table.refs()["v1"]
    assert (dev.snapshot_id, dev.type.value, dev.max_ref_age_ms) == (first, "branch", 1)
    assert (dev.max_snapshot_age_ms, dev.min_snapshots_to_keep) == (2, 3)
    assert (tag.snapshot_id, tag.type.value, tag.max_ref_age_ms) == (second, "tag", 4)
    assert table.current_snapshot().snapshot_id == third
    assert (ids(table, ref="dev"), ids(table, ref="v1"), ids(table)) == ([1], [1, 2], [1, 2, 3])
    assert table.snapshot_by_name("v1").snapshot_id == second
    table.manage_snapshots().remove_branch("dev").remove_tag("v1").commit()
    assert list(table.refs()) == ["main"]


@pytest.mark.spec("REF-03", "REF-06")
def test_what_cannot_be_is_refused_and_changes_nothing(table):
    first, *_ = snapshot_ids(table)
    table.manage_snapshots().create_branch(first, "dev").create_tag(first, "v1").commit()
    before = table.metadata_location
    wrong = [
        (InvalidArgument, "already", lambda m: m.create_branch(first, "dev")),
        (InvalidArgument, "already", lambda m: m.create_tag(first, "main")),
        (InvalidArgument, "is a tag", lambda m: m.remove_branch("v1")),
        (InvalidArgument, "is a branch", lambda m: m.remove_tag("dev")),
        (InvalidArgument, "cannot be removed", lambda m: m.remove_branch("main")),
        (InvalidArgument, "cannot be renamed", lambda m: m.rename_branch("main", "x")),
        (NoSuchSnapshot, "no branch 'x'", lambda m: m.remove_branch("x")),
        (NoSuchSnapshot, "no snapshot 42", lambda m: m.create_tag(42, "x")),
        (NoSuchSnapshot, "no snapshot 42", lambda m: m.set_current_snapshot(42)),
        (InvalidArgument, "is a tag", lambda m: m.set_min_snapshots_to_keep("v1", 3)),
        (InvalidArgument, "is a tag", lambda m: m.fast_forward("v1", "main")),
        (InvalidArgument, "never expires", lambda m: m.set_max_ref_age_ms("main", 3)),
    ]
    for kind, message, change in wrong:
        manage = table.manage_snapshots()
        change(manage)
        with pytest.raises(kind, match=message):
            manage.commit()
    with pytest.raises(InvalidArgument):
        table.manage_snapshots().create_tag(first, "")
    with pytest.raises(InvalidArgument):
        table.manage_snapshots().create_branch(first, "x", max_ref_age_ms=-1)
    with pytest.raises(InvalidArgument):
        table.manage_snapshots().set_current_snapshot()
    assert table.refresh().metadata_location == before


@pytest.mark.spec("META-17")
def test_rolling_back_is_stated_by_the_log(table):
    first, second, third = snapshot_ids(table)
    table.manage_snapshots().rollback_to_snapshot(first).commit()
    assert ids(table) == [1]
    assert [entry.snapshot_id for entry in table.history()] == [first, second, third, first]
    assert [entry.timestamp_ms for entry in table.history()][-1] == table.metadata.last_updated_ms
    with pytest.raises(InvalidArgument, match="no ancestor"):
        table.manage_snapshots().rollback_to_snapshot(third).commit()
    table.manage_snapshots().set_current_snapshot(third).commit()
    assert ids(table) == [1, 2, 3]
    table.append(rows([4]))
    assert table.current_snapshot().parent_snapshot_id == third


def test_rolling_back_to_a_time_finds_the_last_ancestor_before_it(table):
    first, second, _ = table.snapshots()
    table.manage_snapshots().rollback_to_timestamp(table.snapshots()[2].timestamp_ms + 1).commit()
    assert ids(table) == [1, 2, 3]
    target = max(
        (s for s in (first, second) if s.timestamp_ms < table.snapshots()[2].timestamp_ms),
        key=lambda s: s.sequence_number,
        default=None,
    )
    if target is not None:
        table.manage_snapshots().rollback_to_timestamp(table.snapshots()[2].timestamp_ms).commit()
        assert table.current_snapshot().snapshot_id == target.snapshot_id
    with pytest.raises(NoSuchSnapshot, match=r"older than 1970-01-01T00:00:00\.001Z$"):
        table.manage_snapshots().rollback_to_timestamp(1).commit()


def test_a_ref_can_be_made_current(table):
    first, *_ = snapshot_ids(table)
    table.manage_snapshots().create_tag(first, "v1").commit()
    table.manage_snapshots().set_current_snapshot(ref_name="v1").commit()
    assert ids(table) == [1]
    assert table.refs()["main"].is_branch


def test_ids_of_a_data_frame_name_snapshots(table):
    first, second, _ = map(np.int64, snapshot_ids(table))
    with table.manage_snapshots() as manage:
        manage.create_branch(first, "dev").create_tag(first, "v1").create_tag(first, "v2")
        manage.replace_tag("v2", second).rollback_to_snapshot(second).set_current_snapshot(first)
    assert {name: ref.snapshot_id for name, ref in table.refs().items()} == {
        "main": first,
        "dev": first,
        "v1": first,
        "v2": second,
    }


@pytest.mark.spec("REF-10")
def test_a_branch_moves_forward_only_to_what_was_built_on_it(table):
    first, second, third = snapshot_ids(table)
    table.manage_snapshots().create_branch(first, "dev").create_branch(second, "old").commit()
    table.manage_snapshots().fast_forward("dev", "main").commit()
    assert table.refs()["dev"].snapshot_id == third
    table.append(rows([9]), branch="old")
    with pytest.raises(InvalidArgument, match="no ancestor"):
        table.manage_snapshots().fast_forward("dev", "old").commit()
    table.manage_snapshots().fast_forward("fresh", "old").commit()
    assert ids(table, ref="fresh") == [1, 2, 9]
    table.manage_snapshots().replace_branch("dev", table.refs()["old"].snapshot_id).commit()
    assert ids(table, ref="dev") == [1, 2, 9]


@pytest.mark.spec("REF-10")
def test_main_can_be_moved_forward_to_an_audited_branch(table):
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "audit").commit()
    table.append(rows([4]), branch="audit")
    table.manage_snapshots().fast_forward("main", "audit").remove_branch("audit").commit()
    assert ids(table) == [1, 2, 3, 4]
    assert list(table.refs()) == ["main"]


def test_refs_are_renamed_and_retained(table):
    first, second, _ = snapshot_ids(table)
    table.manage_snapshots().create_branch(first, "a").create_tag(first, "t").commit()
    with table.manage_snapshots() as manage:
        manage.rename_branch("a", "b").set_min_snapshots_to_keep("b", 2).set_max_snapshot_age_ms("b", 3)
        manage.set_max_ref_age_ms("t", 4).replace_tag("t", second)
    assert table.refs()["b"].min_snapshots_to_keep == 2
    assert table.refs()["b"].max_snapshot_age_ms == 3
    assert (table.refs()["t"].max_ref_age_ms, table.refs()["t"].snapshot_id) == (4, second)
    assert "a" not in table.refs()


@pytest.mark.spec("COMMIT-28")
def test_a_change_of_refs_without_effect_makes_no_version(table):
    first, *_ = snapshot_ids(table)
    before = table.metadata_location
    table.manage_snapshots().create_tag(first, "t").remove_tag("t").commit()
    table.manage_snapshots().set_current_snapshot(table.current_snapshot().snapshot_id).commit()
    assert table.refresh().metadata_location == before


@pytest.mark.spec("COMMIT-03")
def test_a_change_of_refs_is_taken_again_on_what_was_committed_meanwhile(table):
    first, second, _ = snapshot_ids(table)
    holder = meddled(table, lambda other: other.append(rows([4])))
    holder.manage_snapshots().create_tag(first, "v1").commit()
    assert ids(holder) == [1, 2, 3, 4]
    taken = meddled(table.refresh(), lambda other: other.manage_snapshots().create_tag(second, "v2").commit())
    with pytest.raises(InvalidArgument, match="already"):
        taken.manage_snapshots().create_tag(first, "v2").commit()
