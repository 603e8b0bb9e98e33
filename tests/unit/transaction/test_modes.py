"""How changes of rows change files: rewritten by copy-on-write, marked in delete files by merge-on-read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from icefield.engine import read_vector
from icefield.errors import UnsupportedFeature
from icefield.manifest import DataFile, DataFileContent
from icefield.metadata.snapshots import Operation
from tables import entries, ids, manifests, meddled, new_table, orphans, rows, stored_files

MODES = ("delete", "update", "merge")
ON_READ = {f"write.{change}.mode": "merge-on-read" for change in MODES}
CHANGES = {
    "delete": (lambda table: table.delete("id = 2"), [1, 3]),
    "overwrite": (lambda table: table.overwrite(rows([9]), "id = 2"), [1, 3, 9]),
    "update": (lambda table: table.update("id = 2", {"id": 9}), [1, 3, 9]),
    "upsert": (lambda table: table.upsert(rows([2, 4], value=9.0), ["id"]), [1, 2, 3, 4]),
}
MODE_OF = {"overwrite": "write.delete.mode", "upsert": "write.merge.mode"}


def marking(*args: Any, version: int = 2, **properties: Any) -> Any:
    given = {**ON_READ, "format-version": str(version), **properties.pop("properties", {})}
    return new_table(*args, properties=given, **properties)


def live(table: Any, *contents: DataFileContent) -> list[DataFile]:
    """The live files of the given contents (data or deletes)."""
    found = [file for one in manifests(table) for file in _live(table, one)]
    return [file for file in found if file.content in contents]


def _live(table: Any, manifest: Any) -> list[DataFile]:
    read = entries(table, manifest)
    return list(read.filter(read.live()).data_files())


def delete_files(table: Any) -> list[DataFile]:
    return live(table, DataFileContent.POSITION_DELETES)


def data_paths(table: Any) -> set[str]:
    return {file.file_path for file in live(table, DataFileContent.DATA)}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("mode", ["Copy-On-Write", "Merge-On-Read"])
@pytest.mark.spec("DEL-01")
def test_each_change_is_made_in_the_mode_that_the_table_asks_for(version: int, mode: str, change: str) -> None:
    own = MODE_OF.get(change, f"write.{change}.mode")
    others = {name: value for name, value in ON_READ.items() if mode == "Copy-On-Write"}
    table = new_table(properties={**others, own: mode, "format-version": str(version)})
    table.append(rows([1, 2, 3]))
    before = data_paths(table)
    make, expected = CHANGES[change]
    make(table)
    assert ids(table) == expected
    operation = table.current_snapshot().operation
    assert operation is (Operation.DELETE if (mode, change) == ("Merge-On-Read", "delete") else Operation.OVERWRITE)
    if mode == "Copy-On-Write":
        assert delete_files(table) == []
        assert not before & data_paths(table)
    else:
        (delete,) = delete_files(table)
        assert delete.is_deletion_vector is (version == 3)
        assert delete.record_count == 1
        assert before < data_paths(table) or change == "delete"
    assert orphans(table) == set()


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.spec("DEL-03")
def test_a_table_of_version_1_cannot_mark_rows_and_says_what_to_do(change: str) -> None:
    mode = MODE_OF.get(change, f"write.{change}.mode")
    table = marking(version=1)
    table.append(rows([1, 2, 3]))
    before = stored_files(table)
    make, expected = CHANGES[change]
    with pytest.raises(UnsupportedFeature, match=rf"{mode}.*merge-on-read.*set it to 'copy-on-write'") as caught:
        make(table)
    assert caught.value.property == mode
    assert (ids(table.refresh()), stored_files(table)) == ([1, 2, 3], before)
    table.set_properties({mode: "Copy-On-Write"})
    make(table)
    assert ids(table) == expected


@pytest.mark.parametrize("version", [1, 2, 3])
def test_what_concerns_whole_files_marks_no_row(version: int) -> None:
    table = marking("kind", version=version)
    table.append(rows([1, 2], "a"))
    table.append(rows([3], "b"))
    table.delete("kind = 'a'")
    table.delete("kind = 'b' and id = 99")
    table.upsert(rows([3, 4], "b"), ["id"])
    table.overwrite(rows([5], "c"), "kind = 'c'")
    assert ids(table) == [3, 4, 5]
    table.dynamic_partition_overwrite(rows([6], "b"))
    assert ids(table) == [5, 6]
    table.delete()
    assert ids(table) == []
    assert delete_files(table) == []


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.spec("DEL-35")
def test_a_file_of_which_the_last_row_goes_is_dropped_with_its_deletes(version: int) -> None:
    table = marking(version=version, properties={"write.delete.granularity": "file"})
    table.append(rows([1, 2, 3]))
    table.append(rows([11, 12, 13]))
    table.delete("id in (1, 12)")
    assert len(delete_files(table)) == 2
    table.delete("id in (2, 3)")
    assert ids(table) == [11, 13]
    (left,) = data_paths(table)
    assert [file.referenced_data_file for file in delete_files(table)] == [left]


@pytest.mark.parametrize("granularity", ["partition", "file"])
@pytest.mark.spec("DEL-05")
def test_position_deletes_of_one_commit_cover_a_partition_or_a_file_each(granularity: str) -> None:
    table = marking("kind", properties={"write.delete.granularity": granularity})
    for first in (0, 10, 20):
        table.append(pa.concat_tables([rows([first, first + 1, first + 2], "a"), rows([first + 3, first + 4], "b")]))
    table.delete("id in (0, 11, 22, 3, 13)")
    partitions = sorted(file.partition[0] for file in delete_files(table))
    assert partitions == (["a", "b"] if granularity == "partition" else ["a", "a", "a", "b", "b"])
    assert ids(table) == [1, 2, 4, 10, 12, 14, 20, 21, 23, 24]


@pytest.mark.spec("DEL-32")
def test_a_file_has_one_vector_however_often_rows_of_it_are_deleted() -> None:
    table = marking(version=3)
    table.append(rows(range(10)))
    table.append(rows(range(10, 20)))
    for number in (3, 13, 5, 14):
        table.delete(f"id = {number}")
    found = delete_files(table)
    assert len(found) == 2
    assert {file.referenced_data_file for file in found} == data_paths(table)
    assert sorted(file.record_count for file in found) == [2, 2]
    assert ids(table) == [0, 1, 2, 4, 6, 7, 8, 9, 10, 11, 12, 15, 16, 17, 18, 19]
    summary = table.current_snapshot().summary
    assert (summary["added-dvs"], summary["removed-dvs"], summary["total-position-deletes"]) == ("1", "1", "4")


@pytest.mark.spec("DEL-37")
def test_the_vectors_of_one_commit_share_a_file_and_one_leaves_without_the_others() -> None:
    table = marking(version=3)
    for first in (0, 10, 20):
        table.append(rows(range(first, first + 5)))
    table.delete("id in (0, 10, 20)")
    assert len({file.file_path for file in delete_files(table)}) == 1
    table.delete("id = 11")
    found = delete_files(table)
    assert (len(found), len({file.file_path for file in found})) == (3, 2)
    assert ids(table) == [1, 2, 3, 4, 12, 13, 14, 21, 22, 23, 24]


@pytest.mark.parametrize("granularity", ["partition", "file"])
@pytest.mark.spec("DEL-33", "DEL-34")
def test_a_vector_takes_over_the_position_deletes_of_version_2(granularity: str) -> None:
    table = marking(properties={"write.delete.granularity": granularity})
    table.append(rows(range(5)))
    table.append(rows(range(10, 15)))
    table.delete("id in (0, 10, 11)")
    table.transaction().upgrade_table_version(3).commit_transaction()
    table.delete("id = 2")
    found = delete_files(table)
    (vector,) = (file for file in found if file.is_deletion_vector)
    (file,) = (one for one in live(table, DataFileContent.DATA) if one.file_path == vector.referenced_data_file)
    assert read_vector(table.io, vector, file).tolist() == [0, 2]
    assert len(found) == 2  # the file of both data files stays for the other one; that of this one alone is gone
    assert ids(table) == [1, 3, 4, 12, 13, 14]
    table.delete("id = 13")
    vectors = [file for file in delete_files(table) if file.is_deletion_vector]
    assert sorted(file.record_count for file in vectors) == [2, 3]
    assert ids(table) == [1, 3, 4, 12, 14]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.spec("COMMIT-10")
def test_marks_that_lost_a_race_are_made_again_where_the_file_or_its_deletes_changed(version: int) -> None:
    table = marking(version=version)
    table.append(rows(range(5)))
    table.append(rows(range(10, 15)))
    holder = meddled(table, lambda other: other.delete("id = 1"), lambda other: other.append(rows([20, 21])))
    result = holder.update("id in (2, 12, 20)", {"value": 7.0})
    assert result.rows_updated == 3
    assert ids(holder) == [0, 2, 3, 4, 10, 11, 12, 13, 14, 20, 21]
    assert ids(holder, "value = 7.0") == [2, 12, 20]
    if version == 3:
        assert len(delete_files(holder)) == 3
    assert orphans(table) == set()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.spec("COMMIT-24")
def test_changes_of_one_transaction_mark_rows_of_the_same_file(version: int) -> None:
    table = marking(version=version)
    table.append(rows(range(5)))
    with table.transaction() as tx:
        tx.delete("id = 1")
        tx.append(rows([10, 11]))
        tx.update("id in (2, 10)", {"kind": "u"})
        tx.delete("id in (3, 11)")
        tx.upsert(rows([4, 12], "n"), ["id"])
    assert ids(table) == [0, 2, 4, 10, 12]
    assert ids(table, "kind = 'u'") == [2, 10]
    if version == 3:
        found = delete_files(table)
        assert len({file.referenced_data_file for file in found}) == len(found)
    assert orphans(table) == set()


@pytest.mark.parametrize("file_format", ["parquet", "avro", "orc"])
def test_delete_files_have_the_format_that_the_table_asks_for(file_format: str) -> None:
    table = marking(properties={"write.delete.format.default": file_format})
    table.append(rows([1, 2, 3]))
    table.delete("id = 2")
    assert [file.file_format for file in delete_files(table)] == [file_format]
    assert ids(table) == [1, 3]


@pytest.mark.spec("ROW-06")
def test_marked_rows_leave_the_lineage_of_all_others_as_it_is() -> None:
    table = marking(version=3)
    table.append(rows([1, 2, 3, 4]))
    before = lineage(table)
    table.delete("id = 1")
    table.upsert(rows([2, 5], value=5.0), ["id"])
    sequence = table.current_snapshot().sequence_number
    after = lineage(table)
    assert after == {2: (before[2][0], sequence), 3: before[3], 4: before[4], 5: after[5]}
    assert after[5][1] == sequence
    assert after[5][0] not in {row_id for row_id, _ in before.values()}


@pytest.mark.parametrize("version", [2, 3])
def test_a_column_with_the_name_of_the_positions_is_in_the_way(version: int) -> None:
    table = marking(version=version, schema=pa.schema([("id", pa.int64()), ("_pos", pa.int64())]))
    table.append(pa.table({"id": [1, 2, 3], "_pos": [30, 20, 10]}))
    with pytest.raises(UnsupportedFeature, match=r"rename it, or set the table property 'write.delete.mode'"):
        table.delete("id = 2")
    table.set_properties({"write.delete.mode": "copy-on-write"})
    table.delete("id = 2")
    assert sorted(table.scan().to_arrow()["_pos"].to_pylist()) == [10, 30]


def lineage(table: Any) -> dict[int, tuple[int, int]]:
    columns = ("id", "_row_id", "_last_updated_sequence_number")
    found = table.scan(selected_fields=columns).to_arrow().to_pylist()
    return {row["id"]: (row["_row_id"], row["_last_updated_sequence_number"]) for row in found}
