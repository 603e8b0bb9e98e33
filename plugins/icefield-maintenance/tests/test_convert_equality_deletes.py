"""Equality deletes become positions; deletes that apply to no data file are removed."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from delete_files import commit, data_files, deletion_vectors, equality_deletes, position_deletes
from rewritten_deletes import MERGE_ON_READ, deletes, kinds
from tables import ids, new_table, rows


def test_equality_deletes_become_positions_of_the_rows_they_delete() -> None:
    table = new_table(["kind"], properties={"format-version": "2", **MERGE_ON_READ})
    for kind in "ab":
        table.append(rows(range(20), kind))
    table.delete("id = 4")
    table.delete_by_equality(rows([3, 4, 50], "a").select(["id", "kind"]), ["id", "kind"])
    table.append(rows([3], "a"))
    newest = max(number for _, number in deletes(table).values())
    planned = table.maintenance.convert_equality_deletes(dry_run=True)
    made = table.maintenance.convert_equality_deletes()
    assert (planned.converted_equality_delete_files, planned.read_data_files, planned.dry_run) == (1, 1, True)
    assert (made.converted_equality_delete_files, made.read_data_files, made.deleted_rows) == (1, 1, 1)
    sizes = table.inspect.data_files(row_filter="record_count = 20 and partition.kind = 'a'")["file_size_in_bytes"]
    assert [planned.read_bytes] == [made.read_bytes] == sizes.to_pylist()
    assert made.added_position_delete_files == 1
    assert kinds(table) == {"position_deletes": 3}
    assert max(number for _, number in deletes(table).values()) == newest
    assert ids(table) == sorted([*(n for n in range(20) if n not in (3, 4)), 3, *(n for n in range(20) if n != 4)])


def test_a_vector_that_takes_in_equality_deletes_replaces_the_one_before() -> None:
    table = new_table(properties={"format-version": "3", **MERGE_ON_READ})
    table.append(rows(range(20)))
    table.delete("id = 4")
    table.delete_by_equality(pa.table({"id": [5, 6]}), ["id"])
    made = table.maintenance.convert_equality_deletes()
    assert (made.deleted_rows, made.added_deletion_vectors) == (3, 1)
    assert kinds(table) == {"vector": 1}
    assert ids(table) == [n for n in range(20) if n not in (4, 5, 6)]


def test_equality_deletes_of_a_dropped_column_are_converted() -> None:
    table = new_table(properties={"format-version": "2"})
    table.append(rows(range(10), "a"))
    table.append(rows(range(10, 20), "b"))
    commit(table, equality_deletes(table, ["kind"], [{"kind": "b"}]))
    with table.update_schema() as update:
        update.delete_column("kind")
    assert table.maintenance.convert_equality_deletes().deleted_rows == 10
    assert ids(table) == [*range(10)]


def test_deletes_that_apply_to_no_data_file_are_removed() -> None:
    table = new_table(["kind"], properties={"format-version": "2"})
    table.append(rows(range(10), "a"))
    table.append(rows(range(10, 20), "b"))
    one, two = data_files(table)
    commit(table, position_deletes(table, [(one.file_path, 1)], like=one, referenced_data_file=one.file_path))
    commit(table, position_deletes(table, [(two.file_path, 1)], like=two, referenced_data_file=two.file_path))
    commit(table, position_deletes(table, [("elsewhere", 0), ("elsewhere else", 0)], like=two))
    commit(table, equality_deletes(table, ["id"], [{"id": 2}], like=one))
    commit(table, equality_deletes(table, ["id"], [{"id": 12}], like=two))
    table.overwrite(rows([30, 31], "a"), "kind = 'a'")
    assert kinds(table)["equality_deletes"] == 2
    planned = table.maintenance.remove_dangling_deletes(dry_run=True)
    made = table.maintenance.remove_dangling_deletes()
    assert (planned.removed_equality_delete_files, planned.snapshot_id, planned.dry_run) == (1, None, True)
    assert made.removed_equality_delete_files == 1
    assert made.removed_bytes > 0
    # Without bounds nothing but its age says to what a file of several data files applies.
    assert kinds(table) == {"equality_deletes": 1, "position_deletes": 2}
    assert ids(table) == [10, *range(13, 20), 30, 31]


def test_vectors_of_files_that_are_gone_are_removed() -> None:
    table = new_table(properties={"format-version": "3", **MERGE_ON_READ})
    table.append(rows(range(10)))
    (file,) = data_files(table)
    gone = replace(file, file_path="memory://elsewhere/gone.parquet")
    commit(table, *deletion_vectors(table, {file: [3], gone: [1, 2]}))
    assert kinds(table) == {"vector": 2}
    made = table.maintenance.remove_dangling_deletes()
    assert (made.removed_deletion_vectors, made.removed_position_delete_files) == (1, 0)
    assert [one.referenced_data_file for one, _ in deletes(table).values()] == [file.file_path]
    assert ids(table) == [n for n in range(10) if n != 3]
