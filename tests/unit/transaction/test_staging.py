"""Snapshots that no branch names: staged by ``branch=None``, and published by cherry-picking."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from icefield.errors import InvalidArgument, NoSuchSnapshot, ValidationFailed
from icefield.metadata.snapshots import Operation
from icefield.writing import write_batches
from tables import ids, meddled, new_table, orphans, rows


def staged_after(table, change) -> int:
    """The id of the one snapshot that a change adds without moving a branch."""
    before, refs, log = {s.snapshot_id for s in table.snapshots()}, table.refs(), table.history()
    head = table.current_snapshot()
    change(table)
    (new,) = [s for s in table.snapshots() if s.snapshot_id not in before]
    assert (table.refs(), table.history(), table.current_snapshot()) == (refs, log, head)
    assert new.parent_snapshot_id == (None if head is None else head.snapshot_id)
    return new.snapshot_id


def publish(table, snapshot_id: int) -> None:
    table.manage_snapshots().cherry_pick(snapshot_id).commit()


def _parquet_file(folder, number: int) -> str:
    pq.write_table(rows([number]), folder / "added.parquet")
    return f"file://{folder}/added.parquet"


CHANGES = {
    "append": (lambda t: t.append(rows([9]), branch=None), [1, 2, 9]),
    "overwrite": (lambda t: t.overwrite(rows([9]), "id = 2", branch=None), [1, 9]),
    "delete": (lambda t: t.delete("id = 2", branch=None), [1]),
    "dynamic overwrite": (lambda t: t.dynamic_partition_overwrite(rows([9]), branch=None), [9]),
    "upsert": (lambda t: t.upsert(rows([2, 9], value=5.0), ["id"], branch=None), [1, 2, 9]),
    "update_snapshot": (lambda t: t.update_snapshot(branch=None).delete().delete_by_filter("id <= 2").commit(), []),
}


@pytest.mark.parametrize("version", ["1", "2", "3"])
@pytest.mark.parametrize("kind", CHANGES)
def test_a_change_of_no_branch_is_staged_and_published_by_cherry_picking(kind, version):
    change, after = CHANGES[kind]
    table = new_table(**{"format-version": version})
    table.append(rows([1, 2]))
    staged = staged_after(table, change)
    assert (ids(table), ids(table, snapshot_id=staged)) == ([1, 2], after)
    publish(table, staged)
    assert ids(table) == after
    assert table.current_snapshot().snapshot_id == staged  # its parent was the head: the very snapshot is published
    assert orphans(table) == set()


def test_added_files_are_staged(tmp_path):
    table = new_table()
    table.append(rows([1]))
    path = _parquet_file(tmp_path, 2)
    staged = staged_after(table, lambda t: t.add_files([path], branch=None))
    assert (ids(table), ids(table, snapshot_id=staged)) == ([1], [1, 2])


def test_files_of_a_writer_elsewhere_are_staged():
    table = new_table()
    table.append(rows([1]))
    files = write_batches(table.write_context(), rows([3]).to_batches(), task_id=1)

    def overwrite(t) -> None:
        with t.transaction() as tx:
            tx.overwrite_files(files, branch=None)

    staged = staged_after(table, overwrite)
    assert (ids(table), ids(table, snapshot_id=staged)) == ([1], [3])


def test_the_first_snapshot_of_a_table_may_be_staged():
    table = new_table()
    staged = staged_after(table, lambda t: t.append(rows([1]), branch=None))
    assert ids(table) == []
    publish(table, staged)
    assert ids(table) == [1]


def test_two_staged_snapshots_know_nothing_of_each_other():
    table = new_table()
    table.append(rows([1]))
    with table.transaction() as tx:
        tx.append(rows([2]), branch=None, snapshot_properties={"wap.id": "a"})
        tx.append(rows([3]), branch=None, snapshot_properties={"wap.id": "b"})
    _, a, b = table.snapshots()
    assert a.parent_snapshot_id == b.parent_snapshot_id == table.current_snapshot().snapshot_id
    assert (ids(table, snapshot_id=a.snapshot_id), ids(table, snapshot_id=b.snapshot_id)) == ([1, 2], [1, 3])
    table.manage_snapshots().cherry_pick(a.snapshot_id).cherry_pick(b.snapshot_id).commit()
    assert ids(table) == [1, 2, 3]
    summary = table.current_snapshot().summary
    assert (summary["source-snapshot-id"], summary["published-wap-id"]) == (str(b.snapshot_id), "b")
    assert "wap.id" not in summary


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_a_staged_append_is_taken_over_once_main_has_moved(version):
    table = new_table(**{"format-version": version})
    table.append(rows([1]))
    staged = staged_after(table, lambda t: t.append(rows([2]), {"wap.id": "w"}, branch=None))
    table.append(rows([3]))
    publish(table, staged)
    assert ids(table) == [1, 2, 3]
    head = table.current_snapshot()
    assert head.summary["source-snapshot-id"] == str(staged)
    assert head.summary["published-wap-id"] == "w"
    assert orphans(table) == set()


def test_a_retry_takes_the_staged_files_over_where_they_could_be_moved_to_before():
    table = new_table()
    table.append(rows([1]))
    staged = staged_after(table, lambda t: t.append(rows([2]), branch=None))
    holder = meddled(table, lambda other: other.append(rows([3])))
    publish(holder, staged)
    assert ids(holder) == [1, 2, 3]
    assert holder.current_snapshot().summary["source-snapshot-id"] == str(staged)
    assert orphans(table) == set()


@pytest.mark.parametrize("moved", [False, True])
def test_a_wap_id_is_published_once(moved):
    table = new_table()
    table.append(rows([1]))
    one = staged_after(table, lambda t: t.append(rows([2]), {"wap.id": "w"}, branch=None))
    two = staged_after(table, lambda t: t.append(rows([3]), {"wap.id": "w"}, branch=None))
    if moved:
        table.append(rows([4]))
    with pytest.raises(InvalidArgument, match=r"2 snapshots have the wap\.id 'w'"):
        table.manage_snapshots().publish_changes("w").commit()
    publish(table, one)
    before = ids(table)
    for again in (one, two):
        with pytest.raises(InvalidArgument, match=r"published before|already|picked before"):
            publish(table, again)
    assert ids(table.refresh()) == before


def test_changes_are_published_by_their_wap_id():
    table = new_table()
    table.append(rows([1]))
    table.append(rows([2]), {"wap.id": "w"}, branch=None)
    table.manage_snapshots().publish_changes("w").commit()
    assert ids(table) == [1, 2]
    with pytest.raises(NoSuchSnapshot, match=r"no snapshot with the wap\.id 'v'"):
        table.manage_snapshots().publish_changes("v").commit()
    with pytest.raises(InvalidArgument, match=r"wap\.id"):
        table.manage_snapshots().publish_changes("")


def test_a_table_for_audits_stages_what_names_a_wap_id():
    table = new_table(**{"write.wap.enabled": "true"})
    table.append(rows([1]))  # nothing says that this is to be staged
    assert ids(table) == [1]
    staged = staged_after(table, lambda t: t.append(rows([2]), snapshot_properties={"wap.id": "w"}))
    assert table.snapshot_by_id(staged).summary["wap.id"] == "w"
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "dev").commit()
    with pytest.raises(InvalidArgument, match="both"):
        table.append(rows([3]), snapshot_properties={"wap.id": "v"}, branch="dev")
    assert orphans(table) == set()
    publish(table, staged)
    assert ids(table) == [1, 2]


def test_without_the_property_a_wap_id_alone_stages_nothing():
    table = new_table()
    table.append(rows([1]), snapshot_properties={"wap.id": "w"})
    assert ids(table) == [1]
    staged = staged_after(table, lambda t: t.append(rows([2]), {"wap.id": "w"}, branch=None))
    with pytest.raises(InvalidArgument, match="published before"):  # main has it
        publish(table, staged)


def test_a_staged_dynamic_overwrite_is_taken_over_while_its_partitions_are_as_they_were():
    table = new_table("kind")
    table.append(rows([1], "a"))
    table.append(rows([2], "b"))
    staged = staged_after(table, lambda t: t.dynamic_partition_overwrite(rows([3], "a"), {"wap.id": "w"}, branch=None))
    table.append(rows([4], "b"))
    publish(table, staged)
    assert ids(table) == [2, 3, 4]
    head = table.current_snapshot()
    assert head.operation is Operation.OVERWRITE
    assert (head.summary["source-snapshot-id"], head.summary["published-wap-id"]) == (str(staged), "w")
    assert head.summary["replace-partitions"] == "true"
    assert orphans(table) == set()


@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda t: t.append(rows([5], "a")),
        lambda t: t.delete("id = 1"),
        lambda t: t.overwrite(rows([6], "a"), "kind = 'a'"),
    ],
    ids=["added", "removed", "overwritten"],
)
def test_a_staged_dynamic_overwrite_is_refused_once_its_partitions_changed(meanwhile):
    table = new_table("kind")
    table.append(rows([1], "a"))
    table.append(rows([2], "b"))
    staged = staged_after(table, lambda t: t.dynamic_partition_overwrite(rows([3], "a"), branch=None))
    meanwhile(table)
    before = ids(table)
    with pytest.raises(ValidationFailed):
        publish(table, staged)
    assert ids(table.refresh()) == before
    assert orphans(table) == set()


def test_a_staged_dynamic_overwrite_that_met_nothing_does_not_become_an_append():
    table = new_table("kind")
    table.append(rows([1], "a"))
    staged = staged_after(table, lambda t: t.dynamic_partition_overwrite(rows([2], "b"), branch=None))
    assert table.snapshot_by_id(staged).operation is Operation.APPEND
    table.append(rows([3], "b"))
    with pytest.raises(ValidationFailed):
        publish(table, staged)


def test_a_staged_overwrite_of_an_unpartitioned_table_is_refused_once_rows_came():
    table = new_table()
    table.append(rows([1]))
    staged = staged_after(table, lambda t: t.dynamic_partition_overwrite(rows([3]), branch=None))
    table.append(rows([2]))
    with pytest.raises(ValidationFailed):
        publish(table, staged)


@pytest.mark.parametrize("kind", ["overwrite", "delete", "upsert"])
def test_what_depends_on_the_rows_it_met_is_published_only_on_top_of_them(kind):
    change, _ = CHANGES[kind]
    table = new_table()
    table.append(rows([1, 2]))
    staged = staged_after(table, change)
    table.append(rows([5]))
    with pytest.raises(InvalidArgument, match=r"only an append, .* or .* parent"):
        publish(table, staged)
    assert ids(table.refresh()) == [1, 2, 5]


def test_a_pick_goes_to_a_branch():
    table = new_table()
    table.append(rows([1]))
    table.append(rows([2]), branch=None)
    staged = table.snapshots()[-1].snapshot_id
    with pytest.raises(InvalidArgument, match="branch"):
        table.update_snapshot(branch=None).cherry_pick(staged)
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "dev").commit()
    table.update_snapshot(branch="dev").cherry_pick(staged).commit()
    assert (ids(table), ids(table, ref="dev")) == ([1], [1, 2])


def test_steps_before_and_after_a_pick_are_part_of_one_commit():
    table = new_table()
    table.append(rows([1]))
    table.append(rows([2]), branch=None)
    first, staged = (s.snapshot_id for s in table.snapshots())
    version = len(table.metadata.metadata_log)
    table.manage_snapshots().create_tag(first, "before").cherry_pick(staged).create_tag(staged, "after").commit()
    assert len(table.metadata.metadata_log) == version + 1
    assert {name: ref.snapshot_id for name, ref in table.refs().items()} == {
        "main": staged,
        "before": first,
        "after": staged,
    }


# -- branches that are not there --------------------------------------------------------------------------------------


@pytest.mark.parametrize("empty", [True, False])
@pytest.mark.parametrize("kind", ["append", "overwrite", "delete", "dynamic", "upsert", "add_files", "files"])
def test_a_misspelt_branch_takes_no_commit_and_no_data(kind, empty, tmp_path):
    table = new_table()
    path = _parquet_file(tmp_path, 2)
    if empty:
        table.manage_snapshots().create_branch(None, "audit").commit()
    else:
        table.append(rows([1]))
        table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "audit").commit()
    before = table.metadata_location
    change = {
        "append": lambda: table.append(rows([2]), branch="audti"),
        "overwrite": lambda: table.overwrite(rows([2]), branch="audti"),
        "delete": lambda: table.delete("id = 1", branch="audti"),
        "dynamic": lambda: table.dynamic_partition_overwrite(rows([2]), branch="audti"),
        "upsert": lambda: table.upsert(rows([2]), ["id"], branch="audti"),
        "add_files": lambda: table.add_files([path], branch="audti"),
        "files": lambda: table.update_snapshot(branch="audti").fast_append().commit(),
    }[kind]
    with pytest.raises(NoSuchSnapshot, match=r"no branch 'audti'; was 'audit' meant\?"):
        change()
    assert table.refresh().metadata_location == before
    assert orphans(table) == set()


def test_the_first_commit_of_a_table_creates_no_branch():
    table = new_table()
    with pytest.raises(NoSuchSnapshot, match=r"no branch 'dev'.*create_branch\(None, 'dev'\)"):
        table.append(rows([1]), branch="dev")
    assert (table.refresh().refs(), table.snapshots()) == ({}, [])
    assert orphans(table) == set()


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_a_branch_of_an_empty_table_begins_with_an_empty_snapshot(version):
    table = new_table(**{"format-version": version})
    table.manage_snapshots().create_branch(None, "dev", min_snapshots_to_keep=3).commit()
    assert table.current_snapshot() is None
    (empty,) = table.snapshots()
    ref = table.refs()["dev"]
    assert (ref.snapshot_id, ref.min_snapshots_to_keep) == (empty.snapshot_id, 3)
    assert empty.summary["total-data-files"] == empty.summary["total-records"] == "0"
    assert ids(table, ref="dev") == []
    table.append(rows([1]), branch="dev")
    assert (ids(table), ids(table, ref="dev")) == ([], [1])
    assert orphans(table) == set()
    table.manage_snapshots().fast_forward("main", "dev").commit()
    assert ids(table) == [1]


def test_a_branch_without_a_snapshot_named_begins_at_the_current_one():
    table = new_table()
    table.append(rows([1]))
    table.manage_snapshots().create_branch(None, "dev").commit()
    assert table.refs()["dev"].snapshot_id == table.current_snapshot().snapshot_id
    assert len(table.snapshots()) == 1
    with pytest.raises(InvalidArgument, match="already"):
        table.manage_snapshots().create_branch(None, "dev").commit()


def test_a_branch_and_its_first_rows_are_one_transaction():
    table = new_table()
    with table.transaction() as tx:
        tx.manage_snapshots().create_branch(None, "dev").commit()
        tx.append(rows([1]), branch="dev")
    assert (ids(table), ids(table, ref="dev")) == ([], [1])


def test_a_branch_that_somebody_else_created_meanwhile_takes_commits():
    table = new_table()
    table.append(rows([1]))
    stale = table.transaction()
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "dev").commit()
    stale.append(rows([2]), branch="dev")
    stale.commit_transaction()
    assert ids(table.refresh(), ref="dev") == [1, 2]


@pytest.mark.parametrize("name", ["", 5, b"dev", True])
def test_a_branch_is_named_by_a_string(name):
    table = new_table()
    with pytest.raises(InvalidArgument, match="branch"):
        table.append(rows([1]), branch=name)
    assert orphans(table) == set()
