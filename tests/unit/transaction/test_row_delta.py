"""Row-level changes by files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from delete_files import data_files, equality_deletes
from icefield.catalog import Table
from icefield.errors import InvalidArgument, UnsupportedFeature, ValidationFailed
from icefield.manifest import DataFile, DataFileContent
from icefield.metadata.snapshots import Operation
from icefield.transaction import RowDelta
from icefield.writing import (
    DeleteContext,
    DeletedRows,
    WriteContext,
    write_batches,
    write_deletion_vectors,
    write_position_deletes,
)
from tables import again, ids, meddled, new_table, rows


def table_of(version: int = 3, files: int = 2, **properties: str) -> Table:
    table = new_table(properties={"format-version": str(version), **properties})
    for number in range(files):
        table.append(rows(range(number * 10, number * 10 + 10)))
    return table


def deletes_of(table: Table, positions: dict[DataFile, list[int]]) -> list[DataFile]:
    context = DeleteContext.from_metadata(table.metadata, table.io)
    given = [DeletedRows(file, np.array(some, np.int64)) for file, some in positions.items()]
    write = write_position_deletes if table.metadata.format_version < 3 else write_deletion_vectors
    return write(context, given)


def new_rows(table: Table, *numbers: int) -> list[DataFile]:
    return write_batches(WriteContext.from_metadata(table.metadata, table.io), rows(numbers))


def delta(table: Table) -> RowDelta:
    return table.update_snapshot().row_delta()


def vectors(table: Table) -> dict[str, DataFile]:
    tasks = table.scan().plan_files()
    return {task.file.file_path: task.delete_files[0] for task in tasks if task.delete_files}


def summary(table: Table, *prefixes: str) -> dict[str, str]:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return {name: value for name, value in snapshot.summary.items() if name.startswith(prefixes)}


# -- what is added -----------------------------------------------------------------------------------------------


@pytest.mark.spec("DEL-01")
@pytest.mark.parametrize("version", [2, 3])
def test_rows_and_deletes_become_visible_together(version: int) -> None:
    table = table_of(version)
    first, second = data_files(table)
    action = delta(table).add_rows(*new_rows(table, 100, 101))
    action.add_deletes(*deletes_of(table, {first: [0, 1], second: [9]})).commit()
    assert ids(table) == [*range(2, 19), 100, 101]
    assert [file.file_path for file in data_files(table)][:2] == [first.file_path, second.file_path]


@pytest.mark.parametrize("version", [2, 3])
def test_the_operation_says_what_was_added(version: int) -> None:
    table = table_of(version)
    first, second = data_files(table)

    def operation() -> Operation:
        snapshot = table.current_snapshot()
        assert snapshot is not None
        return snapshot.operation

    delta(table).add_rows(*new_rows(table, 50)).commit()
    assert operation() is Operation.APPEND
    delta(table).add_deletes(*deletes_of(table, {first: [0]})).commit()
    assert operation() is Operation.DELETE
    delta(table).add_rows(*new_rows(table, 51)).add_deletes(*deletes_of(table, {second: [0]})).commit()
    assert operation() is Operation.OVERWRITE
    delta(table).remove_rows(first.file_path).commit()
    assert operation() is Operation.DELETE
    delta(table).add_rows(*new_rows(table, 52)).remove_rows(second.file_path).commit()
    assert operation() is Operation.OVERWRITE


@pytest.mark.parametrize("version", [2, 3])
def test_position_deletes_apply_to_rows_of_the_same_commit_and_equality_deletes_do_not(version: int) -> None:
    table = table_of(version)
    (made,) = new_rows(table, 3, 4, 5)
    action = delta(table).add_fresh_rows([made])
    action.add_deletes(
        *deletes_of(table, {made: [2]}), equality_deletes(table, ["id"], [{"id": 3}, {"id": 4}])
    ).commit()
    assert ids(table) == list(range(5)) + list(range(5, 20))
    assert made.file_path in {file.file_path for file in data_files(table, "id = 4")}


def test_the_summary_counts_delete_files_by_kind() -> None:
    table = table_of(2)
    first, second = data_files(table)
    positions = deletes_of(table, {first: [0, 1], second: [9]})
    equality = equality_deletes(table, ["id"], [{"id": 3}, {"id": 4}, {"id": 5}, {"id": 100}])
    delta(table).add_deletes(*positions, equality).commit()
    size = sum(file.file_size_in_bytes for file in (*positions, equality))
    assert summary(table, "added-") == {
        "added-delete-files": "2",
        "added-position-delete-files": "1",
        "added-equality-delete-files": "1",
        "added-position-deletes": "3",
        "added-equality-deletes": "4",
        "added-files-size": str(size),
    }
    delta(table).remove_deletes(equality.file_path, *positions).commit()
    assert summary(table, "removed-", "total-d", "total-p", "total-e") == {
        "removed-delete-files": "2",
        "removed-position-delete-files": "1",
        "removed-equality-delete-files": "1",
        "removed-position-deletes": "3",
        "removed-equality-deletes": "4",
        "removed-files-size": str(size),
        "total-data-files": "2",
        "total-delete-files": "0",
        "total-position-deletes": "0",
        "total-equality-deletes": "0",
    }
    assert ids(table) == list(range(20))


def test_the_summary_counts_vectors_with_their_own_size() -> None:
    table = table_of(3)
    first, second = data_files(table)
    made = deletes_of(table, {first: [0, 1], second: [9]})
    delta(table).add_deletes(*made).commit()
    size = sum(file.content_size_in_bytes or 0 for file in made)
    assert summary(table, "added-") == {
        "added-delete-files": "2",
        "added-dvs": "2",
        "added-position-deletes": "3",
        "added-files-size": str(size),
    }
    delta(table).remove_deletes(*made).commit()
    assert summary(table, "removed-") == {
        "removed-delete-files": "2",
        "removed-dvs": "2",
        "removed-position-deletes": "3",
        "removed-files-size": str(size),
    }


# -- format versions ---------------------------------------------------------------------------------------------


@pytest.mark.spec("DEL-03", "DEL-16", "DEL-31")
@pytest.mark.parametrize(
    ("version", "written_as", "reason"),
    [(1, 2, "no row-level deletes"), (2, 3, "no deletion vectors"), (3, 2, "no new position delete file")],
)
def test_deletes_of_another_version_are_refused(version: int, written_as: int, reason: str) -> None:
    table = table_of(version)
    context = replace(DeleteContext.from_metadata(table.metadata, table.io), format_version=written_as)
    write = write_position_deletes if written_as < 3 else write_deletion_vectors
    made = write(context, [DeletedRows(data_files(table)[0], np.array([1]))])
    with pytest.raises(UnsupportedFeature, match=reason):
        delta(table).add_deletes(*made).commit()
    assert ids(table) == list(range(20))


# -- one vector a data file --------------------------------------------------------------------------------------


@pytest.mark.spec("DEL-32", "COMMIT-21")
def test_a_data_file_has_one_vector_which_a_new_one_replaces() -> None:
    table = table_of()
    first, second = data_files(table)
    delta(table).add_deletes(*deletes_of(table, {first: [0], second: [0]})).commit()
    more = deletes_of(table, {first: [0, 1]})
    with pytest.raises(ValidationFailed, match="have deletion vectors already") as raised:
        delta(table).add_deletes(*more).commit()
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert (raised.value.snapshot_id, raised.value.operation) == (snapshot.snapshot_id, "delete")
    assert raised.value.files == (first.file_path,)
    assert "remove the vectors that are there" in str(raised.value)

    kept = vectors(table)[second.file_path]
    delta(table).remove_deletes(vectors(table)[first.file_path]).add_deletes(*more).commit()
    assert ids(table) == [*range(2, 10), *range(11, 20)]
    assert vectors(table)[first.file_path].record_count == 2
    # The Puffin file of the removed vector also holds the other vector, which stays.
    assert vectors(table)[second.file_path].file_path == kept.file_path
    assert summary(table, "added-dvs", "removed-dvs") == {"added-dvs": "1", "removed-dvs": "1"}


@pytest.mark.spec("COMMIT-21")
@pytest.mark.parametrize("was_there", [False, True])
def test_a_vector_that_was_added_meanwhile_is_a_conflict(was_there: bool) -> None:
    table = table_of()
    first, _ = data_files(table)
    if was_there:
        delta(table).add_deletes(*deletes_of(table, {first: [5]})).commit()

    def change(table: Table, *positions: int) -> None:
        action = delta(table).add_deletes(*deletes_of(table, {first: [5, *positions] if was_there else [*positions]}))
        if was_there:
            action.remove_deletes(vectors(table)[first.file_path])
        snapshot = table.current_snapshot()
        assert snapshot is not None
        action.validate_from_snapshot(snapshot.snapshot_id).commit()

    holder = meddled(table, lambda other: change(other, 7))
    with pytest.raises(ValidationFailed, match="meanwhile by snapshot") as raised:
        change(holder, 8)
    assert raised.value.files == (first.file_path,)
    assert set(ids(table.refresh())) == set(range(20)) - ({5, 7} if was_there else {7})


def test_vectors_of_different_files_are_no_conflict() -> None:
    table = table_of()
    first, second = data_files(table)
    made = deletes_of(table, {first: [1]})
    holder = meddled(table, lambda other: delta(other).add_deletes(*deletes_of(other, {second: [1]})).commit())
    since = table.current_snapshot()
    assert since is not None
    delta(holder).add_deletes(*made).validate_from_snapshot(since.snapshot_id).commit()
    assert ids(holder) == sorted(set(range(20)) - {1, 11})


def test_a_second_vector_in_one_action_is_refused() -> None:
    table = table_of()
    first, _ = data_files(table)
    action = delta(table).add_deletes(*deletes_of(table, {first: [1]}))
    with pytest.raises(InvalidArgument, match="two deletion vectors"):
        action.add_deletes(*deletes_of(table, {first: [2]}))


# -- removed data files ------------------------------------------------------------------------------------------


@pytest.mark.spec("DEL-35")
@pytest.mark.parametrize("version", [2, 3])
def test_a_removed_data_file_takes_the_deletes_of_it_alone_with_it(version: int) -> None:
    table = table_of(version, **{"write.delete.granularity": "file"})
    first, second = data_files(table)
    delta(table).add_deletes(*deletes_of(table, {first: [0], second: [0]})).commit()
    delta(table).remove_rows(first).add_rows(*new_rows(table, 50)).commit()
    assert ids(table) == [*range(11, 20), 50]
    left = table.inspect.delete_files().to_pydict()["record_count"]
    assert left == [1]
    assert summary(table, "removed-delete-files") == {"removed-delete-files": "1"}


@pytest.mark.spec("COMMIT-21")
@pytest.mark.parametrize("version", [2, 3])
def test_deletes_of_a_data_file_that_goes_with_them_are_refused(version: int) -> None:
    table = table_of(version)
    first, _ = data_files(table)
    with pytest.raises(InvalidArgument, match="is removed, and deletes of it are added"):
        delta(table).remove_rows(first).add_deletes(*deletes_of(table, {first: [1]})).commit()


@pytest.mark.spec("COMMIT-21")
@pytest.mark.parametrize("version", [2, 3])
def test_deletes_of_a_data_file_that_was_rewritten_are_a_conflict(version: int) -> None:
    table = table_of(version)
    first, second = data_files(table)
    made = deletes_of(table, {first: [1], second: [1]})
    since = table.current_snapshot()
    assert since is not None

    def compact(other: Table) -> None:
        context = WriteContext.from_metadata(other.metadata, other.io)
        merged = write_batches(context, other.scan().to_arrow())
        other.update_snapshot().rewrite().delete_file(first, second).add_file(*merged).commit()

    holder = meddled(table, compact)
    action = delta(holder).add_deletes(*made).validate_from_snapshot(since.snapshot_id)
    with pytest.raises(ValidationFailed, match=r"were removed meanwhile by snapshot \d+ \(replace\)") as raised:
        action.validate_data_files_exist([first, second.file_path]).commit()
    assert set(raised.value.files) == {first.file_path, second.file_path}
    assert ids(table) == list(range(20))


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_of_a_data_file_that_was_dropped_are_needless(version: int) -> None:
    table = table_of(version, **{"write.delete.granularity": "file"})
    first, second = data_files(table)
    made = deletes_of(table, {first: [1], second: [1]})
    since = table.current_snapshot()
    assert since is not None
    holder = meddled(table, lambda other: other.delete("id < 10"))
    delta(holder).add_deletes(*made).validate_from_snapshot(since.snapshot_id).commit()
    assert ids(holder) == [10, *range(12, 20)]
    assert len(holder.inspect.delete_files()) == 1


@pytest.mark.parametrize("version", [2, 3])
def test_a_change_that_puts_rows_in_place_of_others_can_refuse_that_these_were_dropped(version: int) -> None:
    table = table_of(version)
    first, _ = data_files(table)
    since = table.current_snapshot()
    assert since is not None
    action = delta(meddled(table, lambda other: other.delete("id < 10")))
    action.add_rows(*new_rows(table, 50)).add_deletes(*deletes_of(table, {first: [1]}))
    with pytest.raises(ValidationFailed, match=r"\(delete\).*leave out validate_deleted_files"):
        action.validate_from_snapshot(since.snapshot_id).validate_deleted_files().commit()


@pytest.mark.parametrize("version", [2, 3])
def test_without_the_snapshot_that_was_read_the_data_files_must_be_live(version: int) -> None:
    table = table_of(version)
    first, _ = data_files(table)
    made = deletes_of(table, {first: [1]})
    table.delete("id < 10")
    with pytest.raises(ValidationFailed, match="cannot delete rows of data files"):
        delta(table).add_deletes(*made).commit()


@pytest.mark.parametrize("removes_rows", [True, False])
def test_what_is_removed_must_be_live(removes_rows: bool) -> None:
    table = table_of()
    first, second = data_files(table)
    delta(table).add_deletes(*deletes_of(table, {first: [1], second: [1]})).commit()
    gone = vectors(table)[first.file_path]
    table.update_snapshot().delete().delete_file(first).commit()
    action = delta(table)
    action = action.remove_rows(first) if removes_rows else action.remove_deletes(gone)
    with pytest.raises(ValidationFailed, match="not in snapshot"):
        action.commit()


# -- isolation ---------------------------------------------------------------------------------------------------


def append_matching(table: Table) -> None:
    table.append(rows([5], "a"))


def append_others(table: Table) -> None:
    table.append(rows([500], "a"))


def delete_matching(table: Table) -> None:
    delta(table).add_deletes(equality_deletes(table, ["id"], [{"id": 5}])).commit()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    ("meddle", "validation", "remedy"),
    [
        (append_matching, RowDelta.validate_no_conflicting_data_files, "leave out validate_no_conflicting_data_files"),
        (append_matching, RowDelta.validate_no_conflicting_delete_files, None),
        (append_others, RowDelta.validate_no_conflicting_data_files, None),
        (delete_matching, RowDelta.validate_no_conflicting_data_files, None),
        (
            delete_matching,
            RowDelta.validate_no_conflicting_delete_files,
            "leave out validate_no_conflicting_delete_files",
        ),
    ],
)
def test_validations_take_interleavings_away(
    version: int, meddle: Callable[[Table], None], validation: Callable[[RowDelta], Any], remedy: str | None
) -> None:
    table = table_of(version)
    first, _ = data_files(table)
    since = table.current_snapshot()
    assert since is not None
    action = delta(meddled(table, meddle)).add_deletes(*deletes_of(table, {first: [1]}))
    action.validate_from_snapshot(since.snapshot_id).conflict_detection_filter("id < 10")
    validation(action)
    if remedy is None:
        action.commit()
        assert 1 not in ids(table.refresh())
    else:
        with pytest.raises(ValidationFailed, match=remedy):
            action.commit()
        assert 1 in ids(table.refresh())


def test_deletes_of_a_removed_data_file_that_came_meanwhile_are_a_conflict() -> None:
    table = table_of(2)
    first, _ = data_files(table)
    since = table.current_snapshot()
    assert since is not None
    holder = meddled(table, lambda other: delta(other).add_deletes(*deletes_of(other, {first: [1]})).commit())
    action = delta(holder).remove_rows(first).add_rows(*new_rows(table, *range(10)))
    action.conflict_detection_filter("false").validate_from_snapshot(since.snapshot_id)
    with pytest.raises(ValidationFailed, match="row-level deletes of"):
        action.validate_no_conflicting_delete_files().commit()


def test_validations_need_the_snapshot_that_was_read() -> None:
    table = table_of()
    with pytest.raises(InvalidArgument, match="validate_from_snapshot"):
        delta(table).add_rows(*new_rows(table, 50)).validate_no_conflicting_data_files().commit()


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"content": DataFileContent.DATA}, "holds data"),
        ({"record_count": -1}, "count them first"),
        ({"content": DataFileContent.EQUALITY_DELETES, "equality_ids": None}, "names no column"),
        ({"content_offset": None}, "lacks referenced_data_file, content_offset"),
        ({"referenced_data_file": None}, "lacks referenced_data_file, content_offset"),
    ],
)
def test_what_is_no_whole_delete_file_is_refused(wrong: dict[str, Any], reason: str) -> None:
    table = table_of()
    (made,) = deletes_of(table, {data_files(table)[0]: [1]})
    with pytest.raises(InvalidArgument, match=reason):
        delta(table).add_deletes(replace(made, **wrong))
    with pytest.raises(InvalidArgument, match="added twice"):
        delta(table).add_deletes(made, made)


def test_a_puffin_file_of_several_vectors_does_not_stand_for_a_file_that_is_not_there() -> None:
    table = table_of()
    delta(table).add_deletes(*deletes_of(table, {file: [1] for file in data_files(table)})).commit()
    (shared,) = {file.file_path for file in vectors(table).values()}
    assert len(vectors(table)) == 2
    with pytest.raises(ValidationFailed, match=r"1 of 2 files are not in snapshot .*memory://absent"):
        delta(table).remove_deletes(shared, "memory://absent").commit()
    delta(table).remove_deletes(shared).commit()
    assert not vectors(table)


@pytest.mark.parametrize("version", [2, 3])
def test_a_conflict_names_the_snapshot_that_removed_what_is_to_be_removed(version: int) -> None:
    for kind in ("rows", "deletes", "overwritten"):
        table = table_of(version)
        files = data_files(table)
        delta(table).add_deletes(*deletes_of(table, {files[0]: [1]})).commit()
        (task,) = [task for task in table.scan().plan_files() if task.delete_files]
        read, other = table.current_snapshot(), again(table)
        assert read is not None
        match kind:
            case "rows":
                change = delta(table).validate_from_snapshot(read.snapshot_id).remove_rows(files[0])
                gone = files[0].file_path
            case "deletes":
                change = delta(table).validate_from_snapshot(read.snapshot_id).remove_deletes(*task.delete_files)
                gone = task.delete_files[0].file_path
            case _:
                change = table.update_snapshot().overwrite().validate_from_snapshot(read.snapshot_id)
                change.delete_file(files[0])
                gone = files[0].file_path
        delta(other).remove_rows(files[0]).commit()
        winner = other.current_snapshot()
        assert winner is not None
        with pytest.raises(ValidationFailed, match=r"that this change removes were removed meanwhile by") as raised:
            change.commit()
        assert (raised.value.snapshot_id, raised.value.operation) == (winner.snapshot_id, winner.operation)
        assert raised.value.files == (gone,)


@pytest.mark.parametrize("version", [2, 3])
def test_a_conflict_over_deletes_of_removed_rows_names_the_snapshot_that_added_them(version: int) -> None:
    table = table_of(version)
    read, other, files = table.current_snapshot(), again(table), data_files(table)
    assert read is not None
    delta(other).add_deletes(*deletes_of(other, {files[0]: [1]})).commit()
    winner = other.current_snapshot()
    assert winner is not None
    change = delta(table).validate_from_snapshot(read.snapshot_id).remove_rows(files[0])
    with pytest.raises(ValidationFailed, match=r"were added meanwhile by snapshot \d+ \(delete\)") as raised:
        change.validate_no_conflicting_delete_files().commit()
    assert (raised.value.snapshot_id, raised.value.operation) == (winner.snapshot_id, "delete")
