"""Scans of metadata tables: filters, columns, snapshots and streams, compared with the whole tables."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from delete_files import commit, data_files, deletion_vectors, position_deletes, write_file
from icefield.builtin.memory import MemoryFileSystem
from icefield.catalog import Table
from icefield.catalog.inspection import pieces
from icefield.errors import IcefieldError, InvalidArgument, InvalidExpression, InvalidFile, NoSuchSnapshot
from icefield.manifest import DataFileContent, ManifestContent, ManifestWriter, clear_caches, read_manifest_list
from icefield.schema import Schema
from icefield.types.reserved import DELETE_FILE_PATH, DELETE_FILE_POS, DELETE_FILE_ROW
from metadata_tables import NAMES
from tables import new_table, rows

Row = dict[str, Any]
MERGE_ON_READ = {"write.delete.mode": "merge-on-read", "format-version": "3"}


@pytest.fixture(scope="module")
def table() -> Table:
    """Files of two specs, a deletion vector, and entries of every status."""
    made = new_table("kind", properties=MERGE_ON_READ)
    made.append(rows(range(4), "a", 0.5))
    made.append(rows(range(4, 8), "b", float("nan")))
    made.append(rows(range(8, 10), None))
    made.delete("id = 1")
    made.delete("kind = 'b'")
    made.update_spec().remove_field("kind").add_field("id", "bucket[4]", "hashed").commit()
    made.append(rows(range(20, 30), "c"))
    made.manage_snapshots().create_tag(made.snapshots()[1].snapshot_id, "two").commit()
    return made


CASES: list[tuple[str, str, Callable[[Row], bool]]] = [
    ("files", "partition.kind = 'a'", lambda row: row["partition"]["kind"] == "a"),
    ("files", "partition.kind is null", lambda row: row["partition"]["kind"] is None),
    ("files", "partition.hashed in (0, 1)", lambda row: row["partition"]["hashed"] in (0, 1)),
    ("files", "not (partition.hashed = 0)", lambda row: row["partition"]["hashed"] not in (0, None)),
    ("files", "content = 1", lambda row: row["content"] == 1),
    ("files", "content != 0 and spec_id = 0", lambda row: row["content"] != 0 and row["spec_id"] == 0),
    ("files", "record_count > 2 or content = 1", lambda row: row["record_count"] > 2 or row["content"] == 1),
    ("files", "file_format = 'PUFFIN'", lambda row: row["file_format"] == "PUFFIN"),
    (
        "files",
        "readable_metrics.id.lower_bound >= 8",
        lambda row: (row["readable_metrics"]["id"]["lower_bound"] or 0) >= 8,
    ),
    (
        "data_files",
        "partition.kind = 'a' or spec_id = 1",
        lambda row: row["partition"]["kind"] == "a" or row["spec_id"],
    ),
    ("delete_files", "referenced_data_file is not null", lambda row: row["referenced_data_file"] is not None),
    ("all_files", "partition.kind = 'b'", lambda row: row["partition"]["kind"] == "b"),
    ("entries", "status = 2", lambda row: row["status"] == 2),
    ("all_entries", "data_file.partition.kind = 'b'", lambda row: row["data_file"]["partition"]["kind"] == "b"),
    (
        "all_entries",
        "sequence_number > 2 and status != 2",
        lambda row: row["sequence_number"] > 2 and row["status"] != 2,
    ),
    ("manifests", "content = 1", lambda row: row["content"] == 1),
    ("all_manifests", "added_data_files_count >= 1", lambda row: row["added_data_files_count"] >= 1),
    ("partitions", "partition.kind = 'a' and file_count = 1", lambda row: row["partition"]["kind"] == "a"),
    ("partitions", "spec_id = 1 or record_count > 3", lambda row: row["spec_id"] == 1 or row["record_count"] > 3),
    ("position_deletes", "partition.kind = 'a'", lambda row: row["partition"]["kind"] == "a"),
    ("position_deletes", "pos > 1", lambda row: row["pos"] > 1),
    ("snapshots", "operation = 'append'", lambda row: row["operation"] == "append"),
    ("history", "is_current_ancestor = true", lambda row: row["is_current_ancestor"]),
    ("refs", "type = 'TAG'", lambda row: row["type"] == "TAG"),
]


@pytest.mark.parametrize(("name", "row_filter", "matches"), CASES, ids=[f"{name}: {text}" for name, text, _ in CASES])
def test_a_filter_keeps_the_rows_that_match(table, name, row_filter, matches):
    scan = table.inspect.scan(name, row_filter=row_filter)
    whole = [row for row in table.inspect.scan(name).to_arrow().to_pylist() if matches(row)]
    assert whole or name == "position_deletes"
    assert sorted(scan.to_arrow().to_pylist(), key=repr) == sorted(whole, key=repr)
    assert scan.count() == len(whole)


@pytest.mark.parametrize("name", NAMES)
def test_each_column_alone_is_as_in_the_whole_table(table, name):
    whole = table.inspect.scan(name).to_arrow()
    for column in whole.column_names:
        part = getattr(table.inspect, name)(selected_fields=(column,))
        assert part.schema.names == [column]
        assert part[column].to_pylist() == whole[column].to_pylist()
    pair = getattr(table.inspect, name)(selected_fields=(whole.column_names[-1], whole.column_names[0]))
    assert pair.equals(whole.select([whole.column_names[0], whole.column_names[-1]]))


def test_fields_of_structs_are_selected_alone(table):
    whole = table.inspect.entries().to_pylist()
    names = ("data_file.partition.hashed", "readable_metrics.value.nan_value_count", "data_file.file_path")
    found = table.inspect.entries(selected_fields=names, row_filter="data_file.content = 0").to_pylist()
    assert found == [
        {
            "data_file": {
                "file_path": row["data_file"]["file_path"],
                "partition": {"hashed": row["data_file"]["partition"]["hashed"]},
            },
            "readable_metrics": {"value": {"nan_value_count": row["readable_metrics"]["value"]["nan_value_count"]}},
        }
        for row in whole
        if row["data_file"]["content"] == 0
    ]
    folded = table.inspect.files(selected_fields="RECORD_COUNT", case_sensitive=False, row_filter="Content = 0")
    assert folded.schema.names == ["record_count"]


def test_columns_that_are_decided_by_the_schema_alone_leave_everything_or_nothing(table):
    assert table.inspect.files(row_filter="file_path is not null").equals(table.inspect.files())
    assert table.inspect.files(row_filter="file_path is null").num_rows == 0
    assert table.inspect.scan("snapshots", row_filter="snapshot_id is null").count() == 0


@pytest.mark.parametrize("name", ["files", "entries", "manifests", "partitions", "position_deletes", "delete_files"])
def test_a_snapshot_is_named_by_id_by_ref_and_by_time(table, name):
    second = table.snapshots()[1]
    by_id = getattr(table.inspect, name)(second.snapshot_id)
    assert getattr(table.inspect, name)(ref="two").equals(by_id)
    assert getattr(table.inspect, name)(as_of=second.timestamp_ms).num_rows <= by_id.num_rows + 1
    assert getattr(table.inspect, name)(ref="main").equals(getattr(table.inspect, name)())
    for wrong in ({"snapshot_id": 7}, {"ref": "no"}, {"as_of": 1}):
        with pytest.raises(NoSuchSnapshot):
            getattr(table.inspect, name)(**wrong)
    with pytest.raises(InvalidArgument, match="not several"):
        getattr(table.inspect, name)(second.snapshot_id, ref="two")


@pytest.mark.parametrize("name", ["files", "partitions"])
def test_a_time_takes_the_forms_that_scans_take(table, name):
    second = table.snapshots()[1]
    read = getattr(table.inspect, name)
    expected = read(as_of=second.timestamp_ms)
    instant = dt.datetime.fromtimestamp(second.timestamp_ms / 1000, dt.UTC)
    for form in (instant, instant.replace(tzinfo=None), instant.isoformat()):
        assert read(as_of=form).equals(expected)
    for wrong in (1.5, True, "yesterday", second):
        with pytest.raises(InvalidArgument, match="time"):
            read(as_of=wrong)


def test_a_wrong_request_says_what_is_wrong(table):
    with pytest.raises(InvalidArgument, match=r"no metadata table 'file'; there are all_data_files, .*snapshots"):
        table.inspect.scan("file")
    with pytest.raises(InvalidArgument, match="'all_files' is about all snapshots"):
        table.inspect.scan("all_files", ref="two")
    with pytest.raises(InvalidArgument, match="names no column"):
        table.inspect.files(selected_fields=())
    with pytest.raises(InvalidArgument, match="colour"):
        table.inspect.files(selected_fields=("colour",))
    with pytest.raises(InvalidExpression, match="colour"):
        table.inspect.files(row_filter="colour = 'red'")


# -- what is read ------------------------------------------------------------------------------------------------------


def lose_manifests(table: Table, keep: Callable[[Any], bool]) -> None:
    """Remove the files of the current snapshot's manifests, except the manifests that ``keep`` accepts."""
    listed = read_manifest_list(table.io, table.current_snapshot(), table.metadata).manifests
    for manifest in listed:
        if not keep(manifest):
            del MemoryFileSystem.files[manifest.manifest_path]
    clear_caches()


@pytest.mark.spec("SCAN-64")
def test_metadata_tables_read_no_data_file():
    table = new_table("kind", properties=MERGE_ON_READ)
    table.append(rows(range(4)))
    table.delete("id = 1")
    expected = {name: getattr(table.inspect, name)() for name in NAMES if name != "position_deletes"}
    for path in table.inspect.files()["file_path"].to_pylist():
        del MemoryFileSystem.files[path]
    clear_caches()
    for name, found in expected.items():
        assert getattr(table.inspect, name)().equals(found)
    assert table.inspect.position_deletes(row_filter="partition.kind = 'z'").num_rows == 0


@pytest.mark.parametrize(
    ("row_filter", "keep"),
    [
        ("content = 1", lambda manifest: manifest.content is ManifestContent.DELETES),
        ("content = 0 and spec_id = 1", lambda manifest: manifest.partition_spec_id == 1),
        ("partition.hashed = 3", lambda manifest: manifest.partition_spec_id == 1),
        ("partition.kind = 'a'", lambda manifest: manifest.partition_spec_id == 0),
    ],
)
def test_manifests_that_cannot_match_are_not_opened(row_filter, keep):
    made = new_table("kind", properties=MERGE_ON_READ)
    made.append(rows(range(4), "a"))
    made.delete("id = 1")
    made.update_spec().remove_field("kind").add_field("id", "bucket[4]", "hashed").commit()
    made.append(rows(range(4), "z"))
    expected = made.inspect.files(row_filter=row_filter)
    assert expected.num_rows
    lose_manifests(made, keep)
    assert made.inspect.files(row_filter=row_filter).equals(expected)
    with pytest.raises(IcefieldError):
        made.inspect.files()


def test_a_partition_that_is_filtered_opens_its_manifests_only():
    made = new_table("kind")
    for kind in "abc":
        made.append(rows(range(2), kind))
    listed = read_manifest_list(made.io, made.current_snapshot(), made.metadata).manifests
    of_b = {manifest.manifest_path for manifest in listed if manifest.partitions[0].lower_bound == b"b"}
    lose_manifests(made, lambda manifest: manifest.manifest_path in of_b)
    for name, row_filter in (
        ("files", "partition.kind = 'b'"),
        ("entries", "data_file.partition.kind = 'b'"),
        ("all_entries", "data_file.partition.kind = 'b' and status = 1"),
        ("partitions", "partition.kind = 'b' and file_count < 9"),
    ):
        assert made.inspect.scan(name, row_filter=row_filter).count() == 1


def test_a_stream_comes_in_pieces_of_bounded_size(monkeypatch):
    made = new_table("kind")
    for number in range(6):
        made.append(rows([number], f"k{number}"))
    whole = made.inspect.files()
    monkeypatch.setattr(pieces, "PIECE_BYTES", 1)
    monkeypatch.setattr(pieces, "_WIDE_ROWS", 1)
    monkeypatch.setattr(pieces, "_LEAST_ROWS", 1)
    with made.inspect.scan("files").to_arrow_batch_reader() as stream:
        batches = list(stream)
    assert [batch.num_rows for batch in batches] == [1] * 6
    assert pa.Table.from_batches(batches).equals(whole.combine_chunks())


def test_a_large_manifest_comes_in_several_batches(monkeypatch):
    made = new_table("id")
    made.append(rows(range(9)))
    whole = made.inspect.entries().combine_chunks()
    monkeypatch.setattr(pieces, "PIECE_BYTES", 1)
    monkeypatch.setattr(pieces, "_WIDE_ROWS", 1)
    monkeypatch.setattr(pieces, "_LEAST_ROWS", 4)
    batches = list(made.inspect.scan("entries").to_arrow_batch_reader())
    assert [batch.num_rows for batch in batches] == [4, 4, 1]
    assert pa.Table.from_batches(batches).equals(whole)


def test_an_empty_table_has_empty_metadata_tables_of_all_columns():
    empty = new_table("kind")
    for name in NAMES:
        found = empty.inspect.scan(name)
        assert found.to_arrow().schema == found.schema
        assert found.count() == (1 if name == "metadata_log_entries" else 0)


def test_other_libraries_take_a_scan_as_a_stream(table):
    scan = table.inspect.scan("files", selected_fields=("file_path", "record_count"))
    assert pa.table(scan).equals(scan.to_arrow())
    assert pa.RecordBatchReader.from_stream(scan).schema == scan.schema


def test_a_manifest_of_several_snapshots_counts_once(table):
    entries = table.inspect.all_entries(selected_fields=("status", "data_file.file_path")).to_pylist()
    listed = set(table.inspect.all_manifests()["path"].to_pylist())
    assert len(table.inspect.all_manifests()) > len(listed)
    assert sum(row["status"] == 2 for row in entries) == 1
    assert len(entries) == table.inspect.scan("all_entries").count()


def test_manifests_of_one_snapshot_are_chosen_by_a_filter():
    made = new_table()
    made.append(rows(range(4)))
    made.append(rows(range(4)))
    first, second = made.snapshots()
    del MemoryFileSystem.files[second.manifest_list]
    clear_caches()
    found = made.inspect.all_manifests(row_filter=f"reference_snapshot_id = {first.snapshot_id}")
    assert found["added_snapshot_id"].to_pylist() == [first.snapshot_id]


# -- deleted positions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_position_deletes_state_what_their_files_hold(file_format):
    made = new_table()
    made.append(rows(range(4)))
    made.append(rows(range(4, 8)))
    first, second = (file.file_path for file in data_files(made))
    row = replace(DELETE_FILE_ROW, field_type=made.schema().select("id").as_struct(), required=True)
    schema = Schema(DELETE_FILE_PATH, DELETE_FILE_POS, row)
    held = pa.table({"file_path": [first] * 2, "pos": [1, 3], "row": [{"id": 1}, {"id": 3}]})
    commit(made, write_file(made, schema, held, file_format, content=DataFileContent.POSITION_DELETES))
    commit(made, position_deletes(made, [(first, 0), (second, 2)]))
    found = made.inspect.position_deletes().to_pylist()
    paths = [row.pop("delete_file_path") for row in found]
    assert sorted(set(paths)) == sorted(made.inspect.delete_files()["file_path"].to_pylist())
    assert sorted(found, key=lambda row: (row["file_path"] != first, row["pos"])) == [
        {"file_path": first, "pos": 0, "row": None, "spec_id": 0},
        {"file_path": first, "pos": 1, "row": {"id": 1, "kind": None, "value": None}, "spec_id": 0},
        {"file_path": first, "pos": 3, "row": {"id": 3, "kind": None, "value": None}, "spec_id": 0},
        {"file_path": second, "pos": 2, "row": None, "spec_id": 0},
    ]
    of_second = made.inspect.position_deletes(row_filter=f"file_path = '{second}'", selected_fields=("pos",))
    assert of_second.to_pydict() == {"pos": [2]}
    of_row = made.inspect.position_deletes(row_filter="row.id = 3", selected_fields=("pos", "row.id"))
    assert of_row.to_pylist() == [{"pos": 3, "row": {"id": 3}}]


def test_a_delete_file_that_cannot_match_is_not_opened():
    made = new_table("kind", properties=MERGE_ON_READ)
    made.append(rows(range(4), "a"))
    made.append(rows(range(4), "b"))
    made.delete("id = 1 and kind = 'a'")
    made.delete("id = 2 and kind = 'b'")
    (of_b,) = made.inspect.position_deletes(row_filter="partition.kind = 'b'").to_pylist()
    for path in made.inspect.delete_files()["file_path"].to_pylist():
        if path != of_b["delete_file_path"]:
            del MemoryFileSystem.files[path]
    assert (of_b["pos"], of_b["row"], of_b["content_offset"]) == (2, None, 4)
    for row_filter in (
        "partition.kind = 'b'",
        f"file_path = '{of_b['file_path']}'",
        f"delete_file_path = '{of_b['delete_file_path']}' and spec_id = 0",
    ):
        assert made.inspect.position_deletes(row_filter=row_filter).to_pylist() == [of_b]
    with pytest.raises(IcefieldError):
        made.inspect.position_deletes()


def test_a_vector_that_names_no_data_file_is_refused(monkeypatch):
    monkeypatch.setattr(ManifestWriter, "_check_file", lambda writer, file: None)  # as a careless engine would
    made = new_table(properties=MERGE_ON_READ)
    made.append(rows(range(4)))
    commit(made, *deletion_vectors(made, {data_files(made)[0]: [1]}, referenced_data_file=None))
    with pytest.raises(InvalidFile, match="which data file"):
        made.inspect.position_deletes()
