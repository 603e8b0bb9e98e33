"""Deleted rows are left out or marked, and the other rows keep their positions."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from delete_files import commit, data_files, deletion_vectors, equality_deletes, position_deletes, write_file
from deleted_tables import each_format, path_of, table_of
from icefield.errors import FileMissing, InvalidFile
from icefield.manifest import DataFileContent
from icefield.scan import read_deletes, read_tasks
from icefield.scan.deletes import store
from icefield.schema import Schema
from tables import ids, rows


@each_format
@pytest.mark.spec("DEL-01", "DEL-04", "DEL-10", "DEL-11", "SCAN-33", "SCAN-39", "SCAN-43")
def test_position_deletes_of_several_files_and_formats(file_format: str) -> None:
    table = table_of(rows(range(10)), rows(range(10, 20)), file_format=file_format)
    first, second = path_of(table), path_of(table, 1)
    deleted = [(first, 0), (first, 9), (second, 3), (second, 4)]
    commit(table, position_deletes(table, deleted, file_format))
    expected = [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 15, 16, 17, 18, 19]
    assert ids(table) == expected
    assert table.scan().count() == 16
    assert ids(table, "id >= 4 and id < 14") == [4, 5, 6, 7, 8, 10, 11, 12]
    assert table.scan("id >= 4 and id < 14").count() == 8


@each_format
@pytest.mark.spec("DEL-13", "DEL-17")
def test_position_deletes_may_be_unsorted_repeated_and_beyond_the_end(file_format: str) -> None:
    table = table_of(rows(range(10)), rows(range(10, 20)), file_format=file_format)
    first, second = path_of(table), path_of(table, 1)
    deleted = [(second, 5), (first, 7), (second, 1), (first, 99), (first, 7), (first, 2), ("nowhere", 1), (second, 5)]
    commit(table, position_deletes(table, deleted, file_format), position_deletes(table, [(first, 7)], file_format))
    assert ids(table) == [0, 1, 3, 4, 5, 6, 8, 9, 10, 12, 13, 14, 16, 17, 18, 19]
    assert table.scan().count() == 16


@each_format
@pytest.mark.spec("DEL-12")
def test_the_column_of_deleted_rows_is_left_alone(file_format: str) -> None:
    table = table_of(rows(range(4)), file_format=file_format)
    from icefield.types.reserved import DELETE_FILE_PATH, DELETE_FILE_POS, DELETE_FILE_ROW

    row = replace(DELETE_FILE_ROW, field_type=table.schema().select("id").as_struct(), required=True)
    schema = Schema(DELETE_FILE_PATH, DELETE_FILE_POS, row)
    held = pa.table({"file_path": [path_of(table)] * 2, "pos": [1, 3], "row": [{"id": 1}, {"id": 3}]})
    commit(table, write_file(table, schema, held, file_format, content=DataFileContent.POSITION_DELETES))
    assert ids(table) == [0, 2]


@pytest.mark.spec("DEL-15", "SCAN-33")
def test_position_deletes_of_one_named_file() -> None:
    table = table_of(rows(range(3)), rows(range(3)))
    first, second = path_of(table), path_of(table, 1)
    deleted = [(first, 0), (second, 1)]  # of which those of the second file are not looked at
    commit(table, position_deletes(table, deleted, referenced_data_file=first))
    assert ids(table) == [0, 1, 1, 2, 2]


@pytest.mark.spec("DEL-30", "DEL-37", "SCAN-34", "DEL-33")
def test_deletion_vectors_take_the_place_of_position_deletes() -> None:
    table = table_of(rows(range(10)), rows(range(10, 20)), version=2)
    first, second = data_files(table)
    commit(table, position_deletes(table, [(first.file_path, 5), (second.file_path, 6)]))
    with table.transaction() as transaction:
        transaction.upgrade_table_version(3)
    vector, other = deletion_vectors(table, {first: [0, 1, 9], second: [0]})
    commit(table, vector)
    assert ids(table) == [2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 17, 18, 19]
    commit(table, other)
    assert ids(table) == [2, 3, 4, 5, 6, 7, 8, *range(11, 20)]
    assert table.scan().count() == 16


def test_the_rows_that_vectors_leave_are_counted_from_metadata_alone() -> None:
    table = table_of(rows(range(10)), rows(range(10, 20)), version=3)
    first, _ = data_files(table)
    commit(table, *deletion_vectors(table, {first: [0, 1, 9]}))
    for file in data_files(table):
        table.io.delete_many([file.file_path])
    assert table.scan().count() == 17


def test_a_vector_that_states_no_row_is_opened_to_count_them() -> None:
    table = table_of(rows(range(10)), version=3)
    (file,) = data_files(table)
    (vector,) = deletion_vectors(table, {file: [0, 1, 9]})
    object.__setattr__(vector, "record_count", 0)  # as a writer states it that is wrong
    commit(table, vector)
    with pytest.raises(InvalidFile, match="3 positions where 0 are stated"):
        table.scan().count()


@pytest.mark.spec("RSV-02", "RSV-03", "RSV-04")
@each_format
def test_metadata_columns_stay_right(file_format: str) -> None:
    table = table_of(rows(range(6)), file_format=file_format)
    file = path_of(table)
    commit(table, position_deletes(table, [(file, 0), (file, 4)]), equality_deletes(table, ["id"], [{"id": 5}]))
    commit(table, equality_deletes(table, ["id"], [{"id": 2}]))
    found = table.scan(selected_fields=("id", "_pos", "_file")).to_arrow().to_pylist()
    assert found == [{"id": n, "_pos": n, "_file": file} for n in (1, 3)]
    marked = table.scan(selected_fields=("id", "_deleted", "_pos")).to_arrow().to_pylist()
    assert marked == [{"id": n, "_deleted": n in (0, 2, 4, 5), "_pos": n} for n in range(6)]
    assert table.scan("id > 3", selected_fields=("_deleted",)).to_arrow()["_deleted"].to_pylist() == [True, True]


@pytest.mark.spec("ROW-03", "ROW-05", "ROW-07")
def test_row_ids_stay_with_their_rows() -> None:
    table = table_of(rows(range(5)), rows(range(5, 9)), version=3)
    first, _ = data_files(table)
    commit(table, *deletion_vectors(table, {first: [0, 3]}))
    found = table.scan(selected_fields=("id", "_row_id")).to_arrow().to_pylist()
    assert sorted(row["id"] for row in found) == [1, 2, 4, 5, 6, 7, 8]
    assert all(row["id"] == row["_row_id"] for row in found)


@pytest.mark.spec("SCAN-36", "SCAN-32")
def test_deletes_apply_by_the_sequence_of_commits() -> None:
    table = table_of(rows([1, 2, 3]))
    extra = write_file(table, table.schema(), rows([1, 2, 3]), "parquet")
    by_value = equality_deletes(table, ["id"], [{"id": 1}])
    commit(table, extra, by_value, position_deletes(table, [(extra.file_path, 1)]))
    assert ids(table) == [1, 2, 3, 3]


def test_each_delete_file_is_read_once_a_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(*(rows([n, n + 100]) for n in range(6)))
    deleted = [(file.file_path, 0) for file in data_files(table)]
    commit(table, position_deletes(table, deleted))
    commit(table, equality_deletes(table, ["id"], [{"id": 103}, {"id": 104}]))
    commit(table, equality_deletes(table, ["id"], [{"id": 105}]))
    opened: list[str] = []
    plain = type(table.io).open_input

    def noted(self: Any, location: str, *key: Any, **given: Any) -> Any:
        opened.append(location)
        return plain(self, location, *key, **given)

    deletes = {file.file_path for task in table.scan().plan_files() for file in task.delete_files}
    monkeypatch.setattr(type(table.io), "open_input", noted)
    assert ids(table) == [100, 101, 102]
    assert sorted(path for path in opened if path in deletes) == sorted(deletes)


def test_calls_with_the_id_of_one_scan_share_what_was_read() -> None:
    table = table_of(rows(range(5)), rows(range(5, 9)))
    commit(table, equality_deletes(table, ["id"], [{"id": 1}, {"id": 6}]))
    tasks = list(table.scan().plan_files())
    deletes = tasks[0].delete_files[0].file_path
    shared, alone = replace(table.scan().context, scan_id="one"), table.scan().context
    first = sum(batch.num_rows for batch in read_tasks(tasks[:1], pickle.loads(pickle.dumps(shared))))
    table.io.delete_many([deletes])
    assert first + sum(batch.num_rows for batch in read_tasks(tasks[1:], pickle.loads(pickle.dumps(shared)))) == 7
    with pytest.raises(FileMissing):
        list(read_tasks(tasks[1:], alone))
    for other in ("two", "three"):
        with pytest.raises(FileMissing):
            list(read_tasks(tasks[1:], replace(alone, scan_id=other)))
    with pytest.raises(FileMissing):
        list(read_tasks(tasks[1:], shared))


@pytest.mark.parametrize("most", [1, 100, 500, 2000])
@each_format
def test_keys_that_do_not_fit_into_memory_are_applied_in_passes(
    most: int, file_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(rows(range(60)), rows(range(60, 100)), file_format=file_format)
    for start in range(0, 50, 10):
        keys = [{"id": n, "kind": "a"} for n in range(start, 100, 50)]
        commit(table, equality_deletes(table, ["kind", "id"], keys, file_format))
        commit(table, equality_deletes(table, ["id"], [{"id": start + 1}], file_format))
    monkeypatch.setattr(store, "HELD_BYTES", most)
    gone = {n for start in range(0, 50, 10) for n in (start, start + 50, start + 1)}
    assert ids(table) == [n for n in range(100) if n not in gone]
    assert table.scan("id < 30").count() == 24
    marked = table.scan(selected_fields=("id", "_deleted")).to_arrow().to_pylist()
    assert {row["id"] for row in marked if row["_deleted"]} == gone


def test_large_position_delete_files_are_read_for_one_data_file_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(rows(range(10)), rows(range(10, 20)))
    deleted = [(file.file_path, place) for file in data_files(table) for place in (1, 5)]
    commit(table, position_deletes(table, deleted))
    monkeypatch.setattr(store, "_WHOLE_ROWS", 3)
    assert ids(table) == [n for n in range(20) if n % 10 not in (1, 5)]


def test_tasks_with_deletes_travel_and_are_divided() -> None:
    table = table_of(rows(range(1000)), **{"write.parquet.row-group-limit": "100"})
    file = data_files(table)[0]
    commit(table, position_deletes(table, [(file.file_path, n) for n in range(0, 1000, 7)]))
    scan = replace(table.scan(), options={"split-size": "1"})
    tasks = pickle.loads(pickle.dumps([task for group in scan.plan_tasks() for task in group]))
    found = pa.Table.from_batches(read_tasks(tasks, scan.context))
    assert found["id"].to_pylist() == [n for n in range(1000) if n % 7]


def test_a_file_of_deleted_rows_only_is_not_opened() -> None:
    table = table_of(rows(range(3)), rows(range(3, 6)), version=3)
    first, _ = data_files(table)
    commit(table, *deletion_vectors(table, {first: range(3)}))
    table.io.delete_many([first.file_path])
    assert ids(table) == [3, 4, 5]


def test_deleted_positions_of_each_file_are_read_whatever_deletes_them() -> None:
    table = table_of(rows(range(4)), rows(range(4, 8)))
    first, second = data_files(table)
    commit(table, position_deletes(table, [(first.file_path, 1), (first.file_path, 3), (second.file_path, 0)]))
    commit(table, equality_deletes(table, ["id"], [{"id": 0}, {"id": 1}, {"id": 7}]))
    scan = table.scan()
    tasks = sorted(scan.plan_files(), key=lambda task: task.file.file_path != first.file_path)
    found = [positions.tolist() for positions in read_deletes(tasks, scan.context)]
    assert found == [[0, 1, 3], [0, 3]]
    assert [positions.tolist() for positions in read_deletes(tasks[:1], scan.context)] == [[0, 1, 3]]
    assert read_deletes([], scan.context) == []
