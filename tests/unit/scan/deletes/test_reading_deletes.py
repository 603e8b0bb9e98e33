"""Rows that delete files delete are left out, or marked; their neighbours stay where they are."""

from __future__ import annotations

import math
import pickle
import struct
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from delete_files import commit, data_files, deletion_vectors, equality_deletes, position_deletes, write_file
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.abc import PutMode
from icefield.catalog import Table
from icefield.errors import FileMissing, InvalidFile, InvalidMetadata, UnsupportedFeature
from icefield.manifest import DataFileContent
from icefield.scan import FileScanTask, read_deletes, read_tasks
from icefield.scan.deletes import store
from icefield.schema import Schema
from outcomes import Outcomes
from tables import ids, new_table, rows
from vectors import VECTORS

FORMATS = ("parquet", "avro", "orc")
each_format = pytest.mark.parametrize("file_format", FORMATS)


def table_of(*files: Any, partition: Any = None, version: int = 2, file_format: str = "parquet", **given: Any) -> Table:
    """A table with a data file for each of the rows given."""
    table = new_table(partition, **{"format-version": str(version), "write.format.default": file_format, **given})
    for part in files:
        table.append(part)
    return table


def path_of(table: Table, at: int = 0) -> str:
    return data_files(table)[at].file_path


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
    from icefield.types.reserved import DELETE_FILE_PATH, DELETE_FILE_POS, delete_row_field

    schema = Schema(DELETE_FILE_PATH, DELETE_FILE_POS, delete_row_field(table.schema().select("id").as_struct()))
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


@each_format
@pytest.mark.spec("DEL-20", "DEL-22", "SCAN-42", "SCAN-41")
def test_equality_deletes_by_columns_that_are_not_selected(file_format: str) -> None:
    table = table_of(rows(range(5), "a"), rows(range(5), "b"), file_format=file_format)
    commit(
        table, equality_deletes(table, ["id", "kind"], [{"id": 1, "kind": "a"}, {"id": 2, "kind": "b"}], file_format)
    )
    found = table.scan(selected_fields=("value",)).to_arrow()
    assert (found.num_rows, found.column_names) == (8, ["value"])
    assert ids(table, "kind = 'a'") == [0, 2, 3, 4]
    assert ids(table, "kind = 'b'") == [0, 1, 3, 4]
    assert table.scan("id = 1").count() == 1
    table.append(rows([1], "a"))  # newer than the delete
    assert ids(table, "kind = 'a'") == [0, 1, 2, 3, 4]


@pytest.mark.spec("DEL-20", "DEL-21")
@pytest.mark.parametrize("case", VECTORS["equality_delete_example"]["deletes"], ids=lambda case: str(case["rows"]))
def test_the_example_of_the_specification(case: dict[str, Any]) -> None:
    names = list(VECTORS["equality_delete_example"]["columns"])
    schema = pa.schema([("id", pa.int64()), ("category", pa.string()), ("name", pa.string())])
    table = new_table(schema=schema, **{"format-version": "2"})
    held = [dict(zip(names, row, strict=True)) for row in VECTORS["equality_delete_example"]["table"]]
    table.append(pa.Table.from_pylist(held, schema))
    deleted = [dict(zip(case["columns"], row, strict=True)) for row in case["rows"]]
    commit(table, equality_deletes(table, case["columns"], deleted, equality_ids=tuple(case["equality_ids"])))
    assert ids(table) == case["remaining_ids"]


def bits_of(value: float | None) -> Any:
    return None if value is None else "nan" if math.isnan(value) else struct.pack("<d", value)


FLOATS = [0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 1.5, None]


@each_format
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.spec("DEL-21")
def test_floats_are_equal_when_their_bits_are_with_one_nan(file_format: str, kind: pa.DataType) -> None:
    held = pa.table({"id": list(range(len(FLOATS))), "x": pa.array(FLOATS, kind)})
    for value in FLOATS:
        table = new_table(schema=held.schema, **{"format-version": "2", "write.format.default": file_format})
        table.append(held)
        commit(table, equality_deletes(table, ["x"], pa.table({"x": pa.array([value], kind)}), file_format))
        kept = [place for place, other in enumerate(FLOATS) if bits_of(other) != bits_of(value)]
        assert ids(table) == kept, value


TYPES = {
    "bool": (pa.bool_(), [True, False]),
    "int": (pa.int32(), [1, -1, 2**31 - 1]),
    "long": (pa.int64(), [1, -1, 2**63 - 1, 0]),
    "decimal": (pa.decimal128(20, 2), ["1.00", "-1.00", "123456789012345678.99"]),
    "date": (pa.date32(), [0, 1, -1]),
    "time": (pa.time64("us"), [0, 1]),
    "timestamp": (pa.timestamp("us"), [0, 1, -1]),
    "timestamptz": (pa.timestamp("us", "UTC"), [0, 1, -1]),
    "string": (pa.string(), ["", "a", "aa", "b" * 100, "é"]),
    "binary": (pa.binary(), [b"", b"a", b"\0", b"\0\0"]),
    "fixed": (pa.binary(3), [b"abc", b"abd"]),
}


@pytest.mark.parametrize("name", TYPES)
@each_format
@pytest.mark.spec("DEL-20", "DEL-21", "DEL-23")
def test_equality_of_every_type(name: str, file_format: str) -> None:
    kind, values = TYPES[name]
    column = pa.array([*values, None]) if name == "decimal" else pa.array([*values, None], kind)
    column = column.cast(kind)
    held = pa.table({"id": list(range(len(column))), "x": column})
    for place in range(len(column)):
        table = new_table(schema=held.schema, **{"format-version": "2", "write.format.default": file_format})
        table.append(held)
        commit(table, equality_deletes(table, ["x"], pa.table({"x": column.slice(place, 1)}), file_format))
        assert ids(table) == [other for other in range(len(column)) if other != place]


NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("s", pa.struct([("a", pa.struct([("x", pa.int32()), ("y", pa.string())])), ("b", pa.int64())])),
    ]
)


@each_format
@pytest.mark.spec("DEL-23", "DEL-21")
def test_nested_columns_where_a_null_struct_makes_a_null_value(file_format: str) -> None:
    held = [
        {"id": 0, "s": {"a": {"x": 1, "y": "p"}, "b": 1}},
        {"id": 1, "s": {"a": {"x": None, "y": "q"}, "b": 2}},
        {"id": 2, "s": {"a": None, "b": 3}},
        {"id": 3, "s": None},
        {"id": 4, "s": {"a": {"x": 2, "y": "r"}, "b": 4}},
    ]
    table = new_table(schema=NESTED, **{"format-version": "2", "write.format.default": file_format})
    table.append(pa.Table.from_pylist(held, NESTED))
    one = equality_deletes(table, ["s.a.x"], [{"s": {"a": {"x": 2}}}], file_format)
    commit(table, one)
    assert ids(table) == [0, 1, 2, 3]
    assert table.scan(selected_fields=("s.b",)).to_arrow()["s"].to_pylist() == [{"b": 1}, {"b": 2}, {"b": 3}, None]
    commit(table, equality_deletes(table, ["s.a.x"], [{"s": {"a": None}}], file_format))
    assert ids(table) == [0]
    assert table.scan("s.a.y = 'p'", selected_fields=("s.b",)).to_arrow()["s"].to_pylist() == [{"b": 1}]


@each_format
@pytest.mark.spec("DEL-24")
def test_a_column_that_was_dropped_still_counts(file_format: str) -> None:
    table = table_of(rows(range(3), "a"), rows(range(3, 6), "b"), file_format=file_format)
    commit(table, equality_deletes(table, ["kind"], [{"kind": "b"}], file_format))
    with table.update_schema() as update:
        update.delete_column("kind")
    assert ids(table) == [0, 1, 2]
    with table.update_schema() as update:
        update.add_column("kind", "string")
    assert ids(table) == [0, 1, 2]
    assert table.scan("id > 0").count() == 2
    assert table.scan(selected_fields=("kind",)).to_arrow()["kind"].to_pylist() == [None] * 3


@pytest.mark.spec("DEL-24")
def test_a_nested_column_that_was_dropped_still_counts() -> None:
    table = new_table(schema=NESTED, **{"format-version": "2"})
    held = [{"id": n, "s": {"a": {"x": n, "y": "p"}, "b": n}} for n in range(4)]
    table.append(pa.Table.from_pylist(held, NESTED))
    commit(table, equality_deletes(table, ["s.a.x"], [{"s": {"a": {"x": 2}}}]))
    with table.update_schema() as update:
        update.delete_column("s.a.x")
    assert ids(table) == [0, 1, 3]
    assert table.scan().to_arrow()["s"].to_pylist() == [{"a": {"y": "p"}, "b": n} for n in (0, 1, 3)]
    with table.update_schema() as update:
        update.delete_column("s")
    assert ids(table) == [0, 1, 3]


@pytest.mark.spec("DEL-25", "DEL-26")
def test_columns_that_were_added_renamed_and_promoted() -> None:
    schema = pa.schema([("id", pa.int64()), ("n", pa.int32())])
    table = new_table(schema=schema, **{"format-version": "2"})
    table.append(pa.table({"id": [0, 1, 2], "n": [7, 8, 9]}, schema))
    commit(table, equality_deletes(table, ["n"], [{"n": 8}]))
    with table.update_schema() as update:
        update.update_column("n", "long")
        update.rename_column("n", "m")
        update.add_column("late", "string")
    table.append(pa.table({"id": [3, 4], "m": [8, 9], "late": ["x", None]}))
    assert ids(table) == [0, 2, 3, 4]
    commit(table, equality_deletes(table, ["m"], [{"m": 9}]))
    assert ids(table) == [0, 3]
    commit(table, equality_deletes(table, ["late"], [{"late": None}]))
    assert ids(table) == [3]


@pytest.mark.spec("DEL-27", "SCAN-32")
def test_equality_deletes_of_one_partition_and_of_all() -> None:
    table = table_of(rows([1, 2, 3], "a"), rows([1, 2, 3], "b"), partition="kind")
    a = data_files(table, "kind = 'a'")[0]
    commit(table, equality_deletes(table, ["id"], [{"id": 1}], like=a))
    assert ids(table) == [1, 2, 2, 3, 3]
    with table.update_spec() as update:
        update.remove_field("kind")
    commit(table, equality_deletes(table, ["id"], [{"id": 2}], spec_id=table.spec().spec_id))
    assert ids(table) == [1, 3, 3]


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

    def noted(self: Any, location: str) -> Any:
        opened.append(location)
        return plain(self, location)

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
    made = store.DeleteStore.__init__
    monkeypatch.setattr(store.DeleteStore, "__init__", lambda self, context: made(self, context, most))
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


class TestDamage:
    @pytest.mark.spec("DEL-43")
    def test_vectors_that_are_not_those_of_the_file(self) -> None:
        table = table_of(rows(range(10)), version=3)
        (file,) = data_files(table)
        (good,) = deletion_vectors(table, {file: [1, 3]})
        for wrong in (
            {"record_count": 3}, {"content_offset": 5}, {"content_size_in_bytes": 30}, {"content_offset": 10**9},
            {"content_size_in_bytes": 2**40}, {"content_offset": 0},
        ):  # fmt: skip
            branch = table_of(rows(range(10)), version=3)
            (other,) = data_files(branch)
            (vector,) = deletion_vectors(branch, {other: [1, 3]})
            commit(branch, replace(vector, **wrong))
            with pytest.raises(InvalidFile) as caught:
                branch.scan().to_arrow()
            assert caught.value.data["location"] == vector.file_path
        (beyond,) = deletion_vectors(table, {file: [1, 10]})
        commit(table, beyond)
        with pytest.raises(InvalidFile, match="position 10 in a file of 10 rows"):
            table.scan().to_arrow()
        assert good.is_deletion_vector

    def test_a_vector_whose_place_is_not_stated(self) -> None:
        table = table_of(rows(range(4)), version=3)
        task = next(iter(table.scan().plan_files()))
        (vector,) = deletion_vectors(table, {task.file: [1]})
        for wrong in ({"content_offset": None}, {"content_size_in_bytes": None}, {"content_offset": -1}):
            broken = FileScanTask(task.file, delete_files=(replace(vector, **wrong),))
            with pytest.raises(InvalidMetadata, match="where a deletion vector is"):
                list(read_tasks([broken], table.scan().context))

    def test_equality_deletes_without_columns(self) -> None:
        table = table_of(rows(range(4)))
        keys = equality_deletes(table, ["id"], [{"id": 1}])
        task = next(iter(table.scan().plan_files()))
        for ids_, error in (
            (None, InvalidMetadata),
            ((), InvalidMetadata),
            ((2,), InvalidFile),
            ((99,), InvalidMetadata),
        ):
            broken = FileScanTask(task.file, delete_files=(replace(keys, equality_ids=ids_),))
            with pytest.raises(error):
                list(read_tasks([broken], table.scan().context))

    @each_format
    def test_positions_that_cannot_be(self, file_format: str) -> None:
        table = table_of(rows(range(4)))
        commit(table, position_deletes(table, [(path_of(table), -1)], file_format))
        with pytest.raises(InvalidFile, match="deletes a row at -1"):
            table.scan().to_arrow()

    @each_format
    def test_another_number_of_deletes_than_the_manifest_says(self, file_format: str) -> None:
        table = table_of(rows(range(4)))
        commit(table, position_deletes(table, [(path_of(table), 1)], file_format, record_count=2))
        with pytest.raises(InvalidFile, match="holds 1 rows"):
            table.scan().to_arrow()

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", ["position", "equality", "vector"])
    @each_format
    def test_damaged_bytes_are_one_typed_error_or_rows(self, kind: str, file_format: str) -> None:
        table = table_of(rows(range(50)), version=3 if kind == "vector" else 2, file_format=file_format)
        (file,) = data_files(table)
        if kind == "position":
            delete = position_deletes(table, [(file.file_path, n) for n in range(0, 50, 3)], file_format)
        elif kind == "equality":
            delete = equality_deletes(table, ["id"], [{"id": n} for n in range(0, 50, 3)], file_format)
        else:
            (delete,) = deletion_vectors(table, {file: range(0, 50, 3)})
        context = table.scan().context
        whole = table.io.read(delete.file_path)

        outcomes = Outcomes()

        @given(st.data())
        @settings(max_examples=60, deadline=None)
        def check(data: st.DataObject) -> None:
            damaged = bytearray(whole)
            for _ in range(data.draw(st.integers(0, 4))):
                damaged[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
            cut = data.draw(st.one_of(st.just(len(whole)), st.integers(0, len(whole))))
            table.io.put(delete.file_path, bytes(damaged[:cut]), PutMode.OVERWRITE)
            with outcomes.of("damaged", InvalidFile, UnsupportedFeature):
                batches = read_tasks([FileScanTask(file, delete_files=(delete,))], context)
                assert sum(batch.num_rows for batch in batches) <= 50

        check()
        outcomes.check()


KEYS = st.tuples(st.one_of(st.none(), st.integers(0, 6)), st.one_of(st.none(), st.sampled_from("ab")))


@given(st.data())
@settings(max_examples=25, deadline=None)
@pytest.mark.slow
@pytest.mark.spec("SCAN-43", "DEL-20", "DEL-01")
def test_any_mix_of_deletes_gives_what_a_list_of_rows_gives(data: st.DataObject) -> None:
    schema = pa.schema([("id", pa.int64()), ("kind", pa.string()), ("n", pa.int32())])
    version = data.draw(st.sampled_from([2, 3]))
    table = new_table(schema=schema, **{"format-version": str(version)})
    model: list[tuple[dict[str, Any], int, str, int]] = []
    vectors: dict[str, set[int]] = {}
    formats = st.sampled_from(FORMATS)
    for step in range(data.draw(st.integers(2, 6))):
        kind = data.draw(st.sampled_from(["data", "data", "position", "equality", "vector"]))
        files = data_files(table) if step else []
        if kind == "data" or not files:
            keys = data.draw(st.lists(KEYS, min_size=1, max_size=8))
            held = [{"id": id_, "kind": name, "n": step * 100 + at} for at, (id_, name) in enumerate(keys)]
            file = write_file(table, table.schema(), pa.Table.from_pylist(held, schema), data.draw(formats))
            commit(table, file)
            model += [(row, step, file.file_path, place) for place, row in enumerate(held)]
        elif kind == "equality":
            names = data.draw(st.sampled_from([["id"], ["kind"], ["id", "kind"]]))
            keys = [
                dict(zip(("id", "kind"), key, strict=True)) for key in data.draw(st.lists(KEYS, min_size=1, max_size=4))
            ]
            keys = [{name: key[name] for name in names} for key in keys]
            commit(table, equality_deletes(table, names, keys, data.draw(formats)))
            model = [each for each in model if {name: each[0][name] for name in names} not in keys]
        else:
            chosen = data.draw(st.lists(st.tuples(st.sampled_from(files), st.integers(0, 7)), min_size=1, max_size=6))
            if kind == "vector" and version == 3:
                file = chosen[0][0]
                if file.file_path in vectors:
                    continue
                gone = {place for _, place in chosen if place < file.record_count} or {0}
                gone |= {p for p in range(file.record_count) if not any(e[2:] == (file.file_path, p) for e in model)}
                vectors[file.file_path] = gone
                commit(table, *deletion_vectors(table, {file: gone}))
                model = [each for each in model if each[2] != file.file_path or each[3] not in gone]
            else:
                pairs = [(file.file_path, place) for file, place in chosen if file.file_path not in vectors]
                if not pairs or version == 3:
                    continue
                commit(table, position_deletes(table, pairs, data.draw(formats)))
                model = [each for each in model if (each[2], each[3]) not in pairs]
    expected = sorted(row["n"] for row, *_ in model)
    assert sorted(table.scan().to_arrow()["n"].to_pylist()) == expected
    assert table.scan().count() == len(expected)
    some = [row["n"] for row, *_ in model if row["id"] is not None and row["id"] > 2]
    assert sorted(table.scan("id > 2", selected_fields=("n",)).to_arrow()["n"].to_pylist()) == sorted(some)
    found = table.scan(selected_fields=("n", "_pos", "_file")).to_arrow().to_pylist()
    assert {(row["n"], row["_file"], row["_pos"]) for row in found} == {(row["n"], *where) for row, _, *where in model}


def test_columns_that_find_no_rows() -> None:
    table = new_table(schema=pa.schema([("id", pa.int64()), ("l", pa.list_(pa.int32()))]), **{"format-version": "2"})
    table.append(pa.table({"id": [1], "l": [[1]]}))
    task = next(iter(table.scan().plan_files()))
    keys = equality_deletes(table, ["l"], [{"l": [1]}])
    with pytest.raises(UnsupportedFeature, match="of type list"):
        list(read_tasks([FileScanTask(task.file, delete_files=(keys,))], table.scan().context))


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
