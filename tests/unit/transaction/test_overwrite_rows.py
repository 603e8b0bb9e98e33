"""Deleting and overwriting rows by a filter: whole files are dropped, others rewritten."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.errors import InvalidExpression, ValidationFailed
from icefield.manifest.schemas import FILE_SEQUENCE_NUMBER, SEQUENCE_NUMBER, SNAPSHOT_ID, STATUS
from icefield.metadata.snapshots import Operation
from tables import SCHEMA, entries, ids, manifests, meddled, memory_catalog, new_table, orphans, rows, stored_files


def paths(table) -> list[str]:
    return sorted(task.file.file_path for task in table.scan().plan_files())


@pytest.mark.spec("SNAP-08", "SNAP-09", "COMMIT-10", "COMMIT-11")
def test_files_all_of_whose_rows_match_are_dropped_and_no_file_is_written():
    table = new_table("kind")
    table.append(pa.concat_tables([rows([1, 2], "a"), rows([3], "b")]))
    kept = [path for path in paths(table) if "kind=b" in path]
    table.delete("kind = 'a'")
    assert paths(table) == kept
    assert table.current_snapshot().operation is Operation.DELETE
    assert table.current_snapshot().summary["deleted-records"] == "2"
    # Statistics can prove that all rows match, as partitions can, and so can both together.
    table.append(rows([10, 11], "c"))
    table.append(rows([20, 21], "c"))
    table.delete("kind = 'c' and id < 15")
    assert table.current_snapshot().operation is Operation.DELETE
    assert ids(table) == [3, 20, 21]


@pytest.mark.spec("COMMIT-11", "SNAP-09")
def test_files_of_which_some_rows_match_are_written_anew_without_them():
    table = new_table()
    table.append(rows([1, 2, 3]))
    table.append(rows([10, 11]))
    untouched = paths(table)
    table.delete("id = 2")
    assert ids(table) == [1, 3, 10, 11]
    assert len(set(paths(table)) & set(untouched)) == 1
    summary = table.current_snapshot().summary
    assert table.current_snapshot().operation is Operation.OVERWRITE
    assert (summary["added-records"], summary["deleted-records"], summary["total-records"]) == ("2", "3", "4")


def test_a_row_for_which_the_filter_is_unknown_stays():
    table = new_table()
    table.append(pa.concat_tables([rows([1], "a"), rows([2], None), rows([3], "b")]))
    table.delete("kind != 'a'")
    assert ids(table) == [1, 2]
    table.delete("kind is null")
    assert ids(table) == [1]


@pytest.mark.spec("COMMIT-28")
def test_a_delete_that_matches_nothing_makes_no_version():
    table = new_table()
    table.append(rows([1, 3]))
    before, files = table.metadata_location, stored_files(table)
    table.delete("id = 2")  # within the bounds of the file, so the file is looked into
    table.delete("id > 100")
    table.delete("kind = 'nowhere'")
    assert table.refresh().metadata_location == before
    assert stored_files(table) == files


@pytest.mark.spec("MAN-17", "MAN-14", "MAN-15")
def test_a_removed_file_is_marked_once_and_disappears_from_the_next_rewrite():
    table = new_table()
    table.append(pa.concat_tables([rows([1])]))
    table.append(rows([2]))
    added = [snapshot.snapshot_id for snapshot in table.snapshots()]
    table.delete("id = 1")
    (deleted,) = [m for m in manifests(table) if m.deleted_files_count]
    found = entries(table, deleted)
    assert found.column(STATUS).to_pylist() == [2]
    assert found.column(SNAPSHOT_ID).to_pylist() == [table.current_snapshot().snapshot_id]
    assert found.column(SEQUENCE_NUMBER).to_pylist() == [1]
    assert found.column(FILE_SEQUENCE_NUMBER).to_pylist() == [1]
    table.overwrite(rows([3]), "id = 2")
    assert deleted.manifest_path not in {m.manifest_path for m in manifests(table)}
    assert added[0] != added[1]


def test_existing_entries_of_a_rewritten_manifest_keep_their_numbers():
    table = new_table("kind")
    table.append(rows([0], "z"))
    table.append(pa.concat_tables([rows([1], "a"), rows([2], "b")]))
    by = table.current_snapshot().snapshot_id
    table.delete("kind = 'a'")
    (rewritten,) = [m for m in manifests(table) if m.deleted_files_count]
    found = entries(table, rewritten)
    assert found.column(STATUS).to_pylist() == [0, 2]
    assert found.column(SEQUENCE_NUMBER).to_pylist() == [2, 2]
    assert found.column(SNAPSHOT_ID).to_pylist() == [by, table.current_snapshot().snapshot_id]
    assert (rewritten.sequence_number, rewritten.min_sequence_number) == (3, 2)


def test_an_overwrite_replaces_all_rows_unless_stated_which():
    table = new_table()
    table.append(rows([1, 2]))
    table.overwrite(rows([3]))
    assert ids(table) == [3]
    table.append(rows([4, 5]))
    table.overwrite(rows([50]), "id >= 4")
    assert ids(table) == [3, 50]
    assert table.current_snapshot().operation is Operation.OVERWRITE
    assert len(table.snapshots()) == 4  # one snapshot each, not a delete and an append


@pytest.mark.spec("SNAP-08")
def test_an_overwrite_that_removes_nothing_is_an_append():
    table = new_table()
    table.overwrite(rows([1]))
    assert table.current_snapshot().operation is Operation.APPEND


@pytest.mark.spec("COMMIT-10")
@pytest.mark.parametrize("partition_spec", [None, "kind"])
def test_a_delete_by_filter_is_evaluated_again_on_what_was_committed_meanwhile(partition_spec):
    table = new_table(partition_spec)
    table.append(pa.concat_tables([rows([1, 2]), rows([3], "b")]))
    holder = meddled(table, lambda other: other.append(rows([2, 4])), lambda other: other.delete("id = 1"))
    holder.delete("id = 2")
    assert ids(holder) == [3, 4]
    assert orphans(table) == set()


@pytest.mark.spec("COMMIT-10", "COMMIT-14")
def test_a_retry_rewrites_only_files_that_it_has_not_rewritten_yet():
    table = new_table()
    table.append(rows([1, 2]))
    before = stored_files(table)
    seen: list[set[str]] = []

    def other_commits(other):
        seen.append({name for name in stored_files(table) - before if name.endswith(".parquet")})
        other.append(rows([2, 9]))

    holder = meddled(table, other_commits)
    holder.delete("id = 2")
    assert ids(holder) == [1, 9]
    first = seen[0]
    assert len(first) == 1
    assert first < set(paths(holder))


@pytest.mark.spec("COMMIT-10")
def test_rewritten_files_that_the_last_attempt_does_not_need_are_deleted():
    table = new_table()
    table.append(rows([1, 2]))
    holder = meddled(table, lambda other: other.overwrite(rows([2, 7])))
    holder.delete("id = 2")
    assert ids(holder) == [7]
    assert orphans(table) == set()


@pytest.mark.spec("COMMIT-12")
def test_serializable_isolation_refuses_rows_that_were_added_meanwhile_and_snapshot_isolation_does_not():
    def overwrite(level, meddle):
        table = new_table("kind")
        table.append(pa.concat_tables([rows([1], "a"), rows([2], "b")]))
        holder = meddled(table, meddle)
        try:
            holder.overwrite(rows([100]), "kind = 'a'", isolation_level=level)
        except ValidationFailed as error:
            return f"{error} {len(error.files)} file(s), {len(orphans(table))} orphans"
        return ids(holder)

    def matching(other):
        other.append(rows([5], "a"))

    def elsewhere(other):
        other.append(rows([6], "b"))

    assert overwrite(None, matching) == [2, 100]
    assert overwrite("snapshot", matching) == [2, 100]
    refused = overwrite("serializable", matching)
    assert "data was added meanwhile" in refused
    assert refused.endswith("1 file(s), 0 orphans")
    assert overwrite("serializable", elsewhere) == [2, 6, 100]


@pytest.mark.spec("COMMIT-12")
@pytest.mark.parametrize("level", ["snapshot", "serializable"])
def test_either_level_refuses_rows_that_were_removed_meanwhile(level):
    table = new_table("kind")
    table.append(pa.concat_tables([rows([1, 2], "a"), rows([3], "b")]))
    with pytest.raises(ValidationFailed, match=r"(removed|added) meanwhile"):
        meddled(table, lambda other: other.delete("id = 1")).delete("kind = 'a'", isolation_level=level)
    holder = meddled(table.refresh(), lambda other: other.delete("id = 3"))
    holder.delete("kind = 'a'", isolation_level=level)
    assert ids(holder) == []


@pytest.mark.spec("COMMIT-12")
def test_a_conflict_names_the_commit_and_the_files():
    table = new_table()
    table.append(rows([1]))
    holder = meddled(table, lambda other: other.append(rows([2])))
    with pytest.raises(ValidationFailed) as raised:
        holder.delete("id < 9", isolation_level="serializable")
    winner = table.refresh().current_snapshot()
    assert raised.value.snapshot_id == winner.snapshot_id
    assert raised.value.operation == "append"
    assert not raised.value.retryable
    assert set(raised.value.files) < set(paths(table))


def test_a_compaction_meanwhile_is_no_conflict_for_serializable_isolation():
    table = new_table()
    table.append(rows([1]))
    files = [task.file for task in table.scan().plan_files()]

    def compact(other):
        from icefield.writing.context import WriteContext
        from icefield.writing.data_writer import write_batches

        new = write_batches(WriteContext.from_metadata(other.metadata, other.io), rows([1]))
        other.update_snapshot().rewrite().delete_file(*files).add_file(*new).commit()

    holder = meddled(table, compact)
    holder.delete("id = 1", isolation_level="serializable")
    assert ids(holder) == []


def test_a_wrong_level_and_a_wrong_filter_are_refused_before_anything_is_committed():
    table = new_table()
    table.append(rows([1]))
    with pytest.raises(ValueError, match="isolation level"):
        table.delete("id = 1", isolation_level="chaos")
    with pytest.raises(InvalidExpression):
        table.delete("nowhere = 1")
    assert len(table.refresh().snapshots()) == 1
    assert orphans(table) == set()


@pytest.mark.spec("PRJ-19", "COMMIT-26")
def test_a_rewritten_file_has_every_column_of_the_current_schema():
    table = new_table()
    table.append(rows([1, 2]))
    with table.update_schema() as update:
        update.add_column("extra", "string")
        update.rename_column("value", "amount")
    table.append(pa.table({"id": [3], "kind": ["a"], "amount": [2.0], "extra": ["x"]}))
    table.delete("id = 1")
    assert table.scan().to_arrow().sort_by("id").to_pylist() == [
        {"id": 2, "kind": "a", "amount": 1.0, "extra": None},
        {"id": 3, "kind": "a", "amount": 2.0, "extra": "x"},
    ]
    table.delete("extra is null")
    assert ids(table) == [3]


@pytest.mark.spec("PART-07")
def test_rows_of_files_under_an_older_spec_are_deleted_too():
    schema = pa.schema([*SCHEMA, ("ts", pa.timestamp("us"))])
    table = new_table([("ts", "month")], schema=schema)

    def on(day, number):
        return rows([number]).append_column("ts", pa.array([dt.datetime(2024, 1, day)], pa.timestamp("us")))

    table.append(on(1, 1))
    table.append(on(20, 2))
    with table.update_spec() as update:
        update.remove_field("ts_month").add_field("ts", "day")
    table.append(on(20, 3))
    table.append(on(21, 4))
    table.delete("ts >= '2024-01-20' and ts < '2024-01-21'")
    assert ids(table) == [1, 4]
    table.delete("ts < '2024-02-01'")
    assert ids(table) == []
    assert table.current_snapshot().operation is Operation.DELETE


def test_case_of_names_matters_unless_stated():
    table = new_table()
    table.append(rows([1]))
    with pytest.raises(InvalidExpression):
        table.delete("ID = 1")
    table.delete("ID = 1", case_sensitive=False)
    assert ids(table) == []


numbers = st.integers(0, 12)
operation = st.one_of(
    st.tuples(st.just("append"), st.lists(numbers, max_size=5)),
    st.tuples(st.just("delete"), numbers, numbers),
    st.tuples(st.just("overwrite"), numbers, numbers, st.lists(numbers, max_size=4)),
    st.tuples(st.just("keep"), numbers),
)


@pytest.mark.slow
@pytest.mark.spec("SCAN-60", "SNAP-10", "COMMIT-02")
@given(st.lists(operation, max_size=7), st.sampled_from([None, "kind", ["bucket[3](id)"]]))
@settings(max_examples=25, deadline=None)
def test_every_snapshot_shows_what_a_list_of_rows_shows(operations, partition_spec):
    """After any operations, each snapshot equals the state of the oracle at its time."""
    table = new_table(partition_spec, catalog=memory_catalog(), **{"commit.manifest.min-count-to-merge": "3"})
    oracle: list[int] = []
    states: dict[int, list[int]] = {}
    for step in operations:
        if step[0] == "append":
            table.append(rows(step[1], "ab"[len(step[1]) % 2]))
            oracle = [*oracle, *step[1]]
        elif step[0] == "keep":
            table.delete(f"id != {step[1]}")
            oracle = [number for number in oracle if number == step[1]]
        else:
            low, high = sorted(step[1:3])
            oracle = [number for number in oracle if not low <= number <= high]
            if step[0] == "delete":
                table.delete(f"id >= {low} and id <= {high}")
            else:
                table.overwrite(rows(step[3]), f"id >= {low} and id <= {high}")
                oracle += step[3]
        snapshot = table.current_snapshot()
        if snapshot is not None:
            states.setdefault(snapshot.snapshot_id, sorted(oracle))
    assert ids(table) == sorted(oracle)
    for snapshot_id, expected in states.items():
        assert ids(table, snapshot_id=snapshot_id) == expected
    assert orphans(table) == set()
