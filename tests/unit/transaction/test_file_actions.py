"""Actions on files that somebody else wrote: delete, overwrite, rewrite, replace partitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.catalog import Table
from icefield.errors import InvalidArgument, ValidationFailed
from icefield.manifest import DataFile, DataFileContent
from icefield.manifest.schemas import FILE_SEQUENCE_NUMBER, SEQUENCE_NUMBER
from icefield.metadata.snapshots import Operation
from icefield.partitioning.spec import normalised_key
from icefield.transaction.head.matching import same_tuples
from icefield.writing.context import WriteContext
from icefield.writing.data_writer import write_batches
from tables import entries, ids, manifests, meddled, new_table, orphans, rows


def write(table: Table, data: pa.Table) -> list[DataFile]:
    return write_batches(WriteContext.from_metadata(table.metadata, table.io), data)


def planned(table: Table, row_filter: str = "id >= 0") -> list[DataFile]:
    return [task.file for task in table.scan(row_filter).plan_files()]


def delete_file(name: str, *, equality: bool = False, partition: tuple = ()) -> DataFile:
    return DataFile(
        file_path=f"memory://deletes/{name}.parquet",
        file_format="parquet",
        record_count=1,
        file_size_in_bytes=1,
        partition=partition,
        content=DataFileContent.EQUALITY_DELETES if equality else DataFileContent.POSITION_DELETES,
        equality_ids=(1,) if equality else None,
    )


def add_deletes(table: Table, *files: DataFile) -> None:
    """Add row-level deletes, as another engine would."""
    from icefield.engine import FileChanges, SnapshotProducer

    class AddDeletes(SnapshotProducer):
        def find(self, head, context):
            return FileChanges(files)

        def operation(self, changes):
            return Operation.DELETE

    AddDeletes(table.stage).commit()


# -- deleting named files --------------------------------------------------------------------------------------------


@pytest.mark.spec("COMMIT-09", "SNAP-09")
def test_named_files_are_removed():
    table = new_table("kind")
    table.append(pa.concat_tables([rows([1], "a"), rows([2], "b"), rows([3], "c")]))
    a, b = planned(table, "kind = 'a'") + planned(table, "kind = 'b'")
    table.update_snapshot().delete().delete_file(a, b.file_path).commit()
    assert ids(table) == [3]
    assert table.current_snapshot().operation is Operation.DELETE


@pytest.mark.spec("COMMIT-09")
def test_of_two_deleters_of_one_file_the_second_fails():
    table = new_table()
    table.append(rows([1]))
    table.append(rows([2]))
    (file,) = planned(table, "id = 1")
    holder = meddled(table, lambda other: other.update_snapshot().delete().delete_file(file).commit())
    with pytest.raises(ValidationFailed, match="not in snapshot") as raised:
        holder.update_snapshot().delete().delete_file(file).commit()
    assert raised.value.files == (file.file_path,)
    assert len(table.refresh().snapshots()) == 3
    assert orphans(table) == set()


def test_a_file_that_never_was_there_cannot_be_deleted():
    with pytest.raises(ValidationFailed, match="nowhere"):
        new_table().update_snapshot().delete().delete_file("memory://nowhere").commit()


@pytest.mark.spec("COMMIT-11")
def test_a_filter_drops_whole_files_and_refuses_those_that_match_in_part():
    table = new_table()
    table.append(rows([1, 2]))
    table.append(rows([10]))
    with pytest.raises(ValidationFailed, match="only some rows"):
        table.update_snapshot().delete().delete_by_filter("id >= 2").commit()
    table.update_snapshot().delete().delete_by_filter("id >= 3").commit()
    assert ids(table) == [1, 2]


@pytest.mark.spec("COMMIT-10")
def test_a_filter_and_names_go_together_and_the_filter_is_evaluated_again():
    table = new_table()
    table.append(rows([1]))
    table.append(rows([20]))
    (file,) = planned(table, "id = 1")
    holder = meddled(table, lambda other: other.append(rows([30])))
    holder.update_snapshot().delete().delete_file(file).delete_by_filter("id >= 10").commit()
    assert ids(holder) == []


def test_only_manifests_that_may_hold_the_partition_are_opened(monkeypatch):
    table = new_table("kind")
    for kind in "abcdef":
        table.append(rows([1], kind))
    (file,) = planned(table, "kind = 'c'")
    opened = set()
    from icefield.engine import Head

    def read(self, manifests, *args, **options):
        opened.update(manifest.manifest_path for manifest in manifests)
        return original(self, manifests, *args, **options)

    original = Head.read
    monkeypatch.setattr(Head, "read", read)
    table.update_snapshot().delete().delete_file(file).commit()
    assert len(opened) == 1
    opened.clear()
    table.update_snapshot().delete().delete_file(planned(table, "kind = 'd'")[0].file_path).commit()
    assert len(opened) == 5


# -- overwriting -----------------------------------------------------------------------------------------------------


@pytest.mark.spec("COMMIT-02", "SNAP-09")
def test_files_come_and_go_in_one_snapshot():
    table = new_table()
    table.append(rows([1]))
    action = table.update_snapshot().overwrite()
    action.delete_file(*planned(table)).add_file(*write(table, rows([2]))).commit()
    assert ids(table) == [2]
    assert table.current_snapshot().operation is Operation.OVERWRITE
    assert len(table.snapshots()) == 2


@pytest.mark.spec("COMMIT-12", "COMMIT-19")
@pytest.mark.parametrize("data", [False, True])
@pytest.mark.parametrize("deletes", [False, True])
@pytest.mark.parametrize("meddle", ["added", "added elsewhere", "removed", "deletes", "nothing"])
def test_the_validations_that_are_asked_for_are_those_that_hold(data, deletes, meddle):
    table = new_table("kind")
    table.append(pa.concat_tables([rows([1, 5], "a"), rows([2], "b")]))
    table.append(rows([3], "a"))
    (rewritten,) = planned(table, "kind = 'b'")
    meddles = {
        "added": lambda other: other.append(rows([9], "a")),
        "added elsewhere": lambda other: other.append(rows([9], "c")),
        "removed": lambda other: other.delete("id = 1"),
        "deletes": lambda other: add_deletes(other, delete_file("p", partition=("a",))),
        "nothing": lambda other: other.set_properties(x="y"),
    }
    since = table.current_snapshot().snapshot_id
    action = meddled(table, meddles[meddle]).update_snapshot().overwrite()
    action.delete_file(rewritten).add_file(*write(table, rows([7], "b")))
    action.validate_from_snapshot(since).conflict_detection_filter("kind = 'a'")
    if data:
        action.validate_no_conflicting_data()
    if deletes:
        action.validate_no_conflicting_deletes()
    # A rewrite of a file that removes rows also counts as added rows.
    conflict = (data and meddle in ("added", "removed")) or (deletes and meddle in ("removed", "deletes"))
    if conflict:
        with pytest.raises(ValidationFailed, match=r"meanwhile.* or leave out validate_no_conflicting_(data|deletes)"):
            action.commit()
    else:
        action.commit()


@pytest.mark.spec("COMMIT-19")
def test_a_validation_needs_the_snapshot_that_was_read():
    table = new_table()
    table.append(rows([1]))
    action = table.update_snapshot().overwrite().add_file(*write(table, rows([2]))).validate_no_conflicting_data()
    with pytest.raises(InvalidArgument, match="validate_from_snapshot"):
        action.commit()


@pytest.mark.spec("COMMIT-19")
def test_a_history_that_cannot_be_stated_is_a_conflict():
    table = new_table()
    table.append(rows([1]))
    first = table.current_snapshot().snapshot_id
    table.append(rows([2]))
    second = table.current_snapshot().snapshot_id
    table.manage_snapshots().rollback_to_snapshot(first).commit()
    action = table.update_snapshot().overwrite().add_file(*write(table, rows([3])))
    with pytest.raises(ValidationFailed, match="cannot know"):
        action.validate_from_snapshot(second).validate_no_conflicting_data().commit()


@pytest.mark.spec("COMMIT-19")
def test_the_history_of_a_table_that_was_empty_when_it_was_read_is_all_of_it():
    table = new_table()
    table.append(rows([1]))
    action = table.update_snapshot().overwrite().add_file(*write(table, rows([3])))
    with pytest.raises(ValidationFailed, match="data was added"):
        action.validate_from_snapshot(None).validate_no_conflicting_data().commit()


@pytest.mark.spec("COMMIT-19")
def test_what_an_append_added_is_found_in_the_manifest_that_a_compaction_put_it_into():
    table = new_table(**{"commit.manifest.min-count-to-merge": "2"})
    table.append(rows([1]))
    since = table.current_snapshot().snapshot_id
    for number in range(2, 5):
        table.append(rows([number]))  # merges the manifests before it
    action = table.update_snapshot().overwrite().add_file(*write(table, rows([9])))
    with pytest.raises(ValidationFailed, match="data was added"):
        action.validate_from_snapshot(since).conflict_detection_filter("id = 2").validate_no_conflicting_data().commit()


def test_an_overwrite_by_filter_drops_whole_files():
    table = new_table("kind")
    table.append(pa.concat_tables([rows([1], "a"), rows([2], "b")]))
    table.update_snapshot().overwrite().overwrite_by_filter("kind = 'a'").add_fresh(write(table, rows([3]))).commit()
    assert ids(table) == [2, 3]


# -- rewriting -------------------------------------------------------------------------------------------------------


@pytest.mark.spec("COMMIT-08", "SNAP-09")
def test_a_compaction_replaces_files_and_says_so():
    table = new_table()
    table.append(rows([1]))
    table.append(rows([2]))
    new = write(table, rows([1, 2]))
    table.update_snapshot().rewrite().delete_file(*planned(table)).add_file(*new).commit()
    assert ids(table) == [1, 2]
    assert len(planned(table)) == 1
    assert table.current_snapshot().operation is Operation.REPLACE


@pytest.mark.spec("COMMIT-08")
def test_a_compaction_fails_when_one_of_its_inputs_was_deleted_meanwhile():
    table = new_table()
    table.append(rows([1]))
    table.append(rows([2]))
    new, old = write(table, rows([1, 2])), planned(table)
    holder = meddled(table, lambda other: other.delete("id = 1"))
    with pytest.raises(ValidationFailed, match="cannot rewrite files"):
        holder.update_snapshot().rewrite().delete_file(*old).add_file(*new).commit()
    assert ids(table.refresh()) == [2]


@pytest.mark.spec("COMMIT-08", "COMMIT-07")
def test_a_compaction_goes_through_when_other_files_were_added_or_deleted():
    table = new_table()
    for number in range(4):
        table.append(rows([number]))
    old = planned(table, "id < 2")
    new = write(table, rows([0, 1]))
    holder = meddled(table, lambda other: other.append(rows([9])), lambda other: other.delete("id = 3"))
    holder.update_snapshot().rewrite().delete_file(*old).add_file(*new).commit()
    assert ids(holder) == [0, 1, 2, 9]


@pytest.mark.spec("COMMIT-20")
@pytest.mark.parametrize(
    ("equality", "number", "fails"), [(False, None, True), (False, 1, True), (True, None, True), (True, 1, False)]
)
def test_deletes_that_came_meanwhile_make_a_compaction_fail_unless_it_stays_older_than_they(equality, number, fails):
    table = new_table()
    table.append(rows([1, 2]))
    read = table.current_snapshot().snapshot_id
    holder = meddled(table, lambda other: add_deletes(other, delete_file("d", equality=equality)))
    action = holder.update_snapshot().rewrite().delete_file(*planned(table)).add_file(*write(table, rows([1, 2])))
    action.validate_from_snapshot(read)
    if number is not None:
        action.data_sequence_number(number)
    if fails:
        with pytest.raises(ValidationFailed, match="row-level deletes"):
            action.commit()
    else:
        action.commit()
        assert holder.current_snapshot().operation is Operation.REPLACE


@pytest.mark.spec("COMMIT-22")
def test_a_compaction_can_keep_the_data_sequence_number_of_its_inputs():
    table = new_table()
    table.append(rows([1]))
    action = table.update_snapshot().rewrite().delete_file(*planned(table)).add_file(*write(table, rows([1])))
    action.data_sequence_number(1).commit()
    (manifest,) = [m for m in manifests(table) if m.added_files_count]
    found = entries(table, manifest)
    assert found.column(SEQUENCE_NUMBER).to_pylist() == [1]
    assert found.column(FILE_SEQUENCE_NUMBER).to_pylist() == [2]
    assert manifest.min_sequence_number == 1


def test_a_rewrite_may_exchange_delete_files_but_not_add_data_for_nothing():
    table = new_table()
    table.append(rows([1]))
    add_deletes(table, delete_file("old"))
    table.update_snapshot().rewrite().delete_file(delete_file("old")).add_file(delete_file("new")).commit()
    assert [
        f.file_path for m in manifests(table) for f in entries(table, m).filter(entries(table, m).live()).data_files()
    ][1:] == ["memory://deletes/new.parquet"]
    with pytest.raises(InvalidArgument, match="would add rows"):
        table.update_snapshot().rewrite().add_file(*write(table, rows([5]))).commit()
    with pytest.raises(InvalidArgument, match="twice"):
        table.update_snapshot().rewrite().add_file(delete_file("x"), delete_file("x"))


# -- replacing partitions --------------------------------------------------------------------------------------------


@pytest.mark.spec("COMMIT-23")
def test_a_dynamic_overwrite_replaces_the_partitions_of_its_rows_and_no_others():
    table = new_table("kind")
    table.append(pa.concat_tables([rows([1], "a"), rows([2], "b"), rows([3], None)]))
    table.append(rows([4], "a"))
    table.dynamic_partition_overwrite(pa.concat_tables([rows([10], "a"), rows([11], None)]))
    assert ids(table) == [2, 10, 11]
    assert table.current_snapshot().operation is Operation.OVERWRITE
    assert table.current_snapshot().summary["replace-partitions"] == "true"


@pytest.mark.spec("COMMIT-23", "COMMIT-10")
def test_a_dynamic_overwrite_is_evaluated_again_on_what_was_committed_meanwhile():
    table = new_table("kind")
    table.append(rows([1], "a"))
    holder = meddled(table, lambda other: other.append(pa.concat_tables([rows([2], "a"), rows([3], "b")])))
    holder.dynamic_partition_overwrite(rows([9], "a"))
    assert ids(holder) == [3, 9]


@pytest.mark.spec("COMMIT-19", "COMMIT-12")
def test_a_dynamic_overwrite_can_be_isolated_from_its_partitions():
    def action(meddle):
        table = new_table("kind")
        table.append(pa.concat_tables([rows([1, 2], "a"), rows([3], "b")]))
        holder = meddled(table, meddle)
        replacing = holder.update_snapshot().replace_partitions().add_file(*write(table, rows([9], "a")))
        replacing.validate_from_snapshot(table.current_snapshot().snapshot_id)
        return replacing.validate_no_conflicting_data().validate_no_conflicting_deletes()

    action(lambda other: other.append(rows([5], "b"))).commit()
    action(lambda other: other.delete("kind = 'b'")).commit()
    for meddle in (lambda other: other.append(rows([5], "a")), lambda other: other.delete("kind = 'a'")):
        with pytest.raises(ValidationFailed, match=r"meanwhile.* or leave out validate_no_conflicting_(data|deletes)"):
            action(meddle).commit()


def test_without_partitions_a_dynamic_overwrite_replaces_the_table():
    table = new_table()
    table.append(rows([1]))
    table.dynamic_partition_overwrite(rows([2]))
    assert ids(table) == [2]
    table.dynamic_partition_overwrite(rows([]))
    assert ids(table) == [2]


@pytest.mark.spec("PART-24", "SCAN-38")
def test_partitions_of_floats_are_equal_when_their_bits_are():
    schema = pa.schema([("id", pa.int64()), ("x", pa.float64())])
    table = new_table("x", schema=schema)

    def on(number, x):
        return pa.table({"id": [number], "x": [x]}, schema=schema)

    for number, x in enumerate([0.0, -0.0, float("nan"), None]):
        table.append(on(number, x))
    table.dynamic_partition_overwrite(on(10, -0.0))
    assert ids(table) == [0, 2, 3, 10]
    table.dynamic_partition_overwrite(on(12, float("nan")))
    assert ids(table) == [0, 3, 10, 12]
    table.dynamic_partition_overwrite(on(13, None))
    assert ids(table) == [0, 10, 12, 13]


values = st.tuples(
    st.sampled_from([None, "a", "b"]), st.sampled_from([None, 0.0, -0.0, 1.0, float("nan")]), st.integers(0, 1)
)


@pytest.mark.spec("PART-24")
@given(st.lists(values, max_size=8), st.lists(values, min_size=1, max_size=4))
def test_membership_of_partitions_agrees_with_a_set_of_normalised_tuples(found, named):
    def array(tuples):
        columns = list(zip(*tuples, strict=True)) or [(), (), ()]
        kinds = [pa.string(), pa.float64(), pa.int64()]
        arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        return pa.StructArray.from_arrays(arrays, names=["s", "f", "i"])

    keys = {normalised_key(one) for one in named}
    expected = [normalised_key(one) in keys for one in found]
    assert same_tuples(array(found), array(named)).tolist() == expected


def test_partition_tuples_without_fields_are_all_the_same():
    empty = pa.StructArray.from_buffers(pa.struct([]), 3, [None], children=[])
    assert same_tuples(empty, empty[:1]).tolist() == [True] * 3
    assert np.asarray(same_tuples(empty, empty[:0])).tolist() == [False] * 3


def test_a_file_of_deletes_is_no_data_to_overwrite_with():
    with pytest.raises(InvalidArgument, match="deletes"):
        new_table().update_snapshot().overwrite().add_file(replace(delete_file("d")))


# -- remaining deletes -----------------------------------------------------------------------------------------------


def test_deletes_of_one_data_file_go_with_it():
    table = new_table(**{"format-version": "3"})
    table.append(rows([1, 2]))
    table.append(rows([3]))
    one, other = sorted(planned(table), key=lambda file: -file.record_count)

    def vector(name: str, target: DataFile) -> DataFile:
        return replace(
            delete_file(name),
            file_format="puffin",
            referenced_data_file=target.file_path,
            content_offset=4,
            content_size_in_bytes=10,
        )

    add_deletes(table, vector("one", one), vector("other", other))
    table.update_snapshot().delete().delete_file(one).commit()
    summary = table.current_snapshot().summary
    assert (summary["deleted-data-files"], summary["removed-dvs"], summary["total-delete-files"]) == ("1", "1", "1")
    assert table.inspect.delete_files()["file_path"].to_pylist() == ["memory://deletes/other.parquet"]


# -- sort orders -----------------------------------------------------------------------------------------------------


@pytest.mark.spec("SORT-10", "SORT-06", "SORT-05")
def test_a_table_in_memory_is_sorted_and_a_stream_is_not_labelled():
    table = new_table("kind")
    table.update_sort_order().desc("id", "identity", "nulls-last").commit()
    table.append(pa.concat_tables([rows([2, 9, 4], "a"), rows([1, 5], "b")]))
    for task in table.scan().plan_files():
        assert task.file.sort_order_id == 1
    found = table.scan().to_arrow()
    assert {kind: [r["id"] for r in found.to_pylist() if r["kind"] == kind] for kind in "ab"} == {
        "a": [9, 4, 2],
        "b": [5, 1],
    }
    table.append(rows([7, 8], "c").to_reader())
    assert [task.file.sort_order_id for task in table.scan("kind = 'c'").plan_files()] == [None]
    table.delete("id = 9")
    assert ids(table) == [1, 2, 4, 5, 7, 8]
