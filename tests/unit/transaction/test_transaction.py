"""Several changes in one commit; properties, location and format version."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from icefield.builtin.memory import MemoryFileSystem
from icefield.errors import InvalidArgument, UnsupportedFeature, ValidationFailed
from icefield.transaction import UpdateProperties
from tables import (
    EAGER,
    again,
    around,
    ids,
    manifests,
    meddled,
    memory_catalog,
    new_table,
    orphans,
    rows,
    stored_files,
    strategy_of,
)


@pytest.mark.spec("COMMIT-24", "COMMIT-02")
def test_a_transaction_is_one_new_metadata_version():
    table = new_table()
    table.append(rows([1, 2]))
    versions = {name for name in stored_files(table) if name.endswith(".metadata.json")}
    with table.transaction() as tx:
        tx.append(rows([3]))
        tx.delete("id = 1")
        tx.set_properties(a=1)
        with tx.update_schema() as update:
            update.add_column("extra", "int")
        tx.append(pa.table({"id": [4], "extra": pa.array([7], pa.int32())}))
        assert ids(again(table).refresh()) == [1, 2]
    assert len({name for name in stored_files(table) if name.endswith(".metadata.json")} - versions) == 1
    assert ids(table) == [2, 3, 4]
    assert table.properties["a"] == "1"
    assert len(table.snapshots()) == 4
    assert [snapshot.sequence_number for snapshot in table.snapshots()] == [1, 2, 3, 4]
    # A snapshot that was current only inside the transaction is not in the history.
    assert [entry.snapshot_id for entry in table.history()] == [
        table.snapshots()[0].snapshot_id,
        table.current_snapshot().snapshot_id,
    ]
    assert orphans(table) == set()


@pytest.mark.spec("COMMIT-24", "COMMIT-03")
def test_a_transaction_is_applied_again_as_a_whole():
    table = new_table()
    table.append(rows([1]))
    holder = meddled(table, lambda other: other.append(rows([1, 5])))
    with holder.transaction() as tx:
        tx.append(rows([2]))
        tx.delete("id = 1")
        tx.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "before").commit()
    assert ids(holder) == [2, 5]
    assert ids(holder, ref="before") == [1]
    assert orphans(table) == set()


@pytest.mark.spec("COMMIT-24", "FS-13")
def test_a_transaction_that_is_left_by_an_exception_leaves_nothing():
    table = new_table()
    table.append(rows([1]))
    before, files = table.metadata_location, stored_files(table)
    tx = table.transaction()

    def change_and_fail():
        with tx:
            tx.append(rows([2]))
            tx.delete("id = 1")
            tx.preview()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        change_and_fail()
    assert table.refresh().metadata_location == before
    assert stored_files(table) == files
    with pytest.raises(InvalidArgument, match="ended"):
        tx.append(rows([3]))


def test_a_preview_shows_what_a_commit_would_make_and_its_manifests_are_used():
    table = new_table()
    table.append(rows([1]))
    tx = table.transaction()
    tx.append(rows([2]))
    shown = tx.preview()
    assert len(shown.snapshots) == 2
    before = {name for name in stored_files(table) if "-m" in name}
    tx.commit_transaction()
    assert {name for name in stored_files(table) if "-m" in name} == before
    assert ids(table) == [1, 2]
    assert orphans(table) == set()
    empty = new_table()
    assert empty.transaction().preview() is empty.metadata


def test_a_table_and_its_rows_are_created_together():
    catalog = memory_catalog()
    with catalog.create_table_transaction("db.t", rows([]).schema, partition_spec="kind", properties=EAGER) as tx:
        tx.append(rows([1], "a"))
        tx.append(rows([2], "b"))
        tx.update_spec().add_field("id", "bucket[2]").commit()
        assert not catalog.table_exists("db.t")
    table = catalog.load_table("db.t")
    assert ids(table) == [1, 2]
    assert len({name for name in stored_files(table) if name.endswith(".metadata.json")}) == 1
    assert table.spec().spec_id == 1


def test_shapes_are_seen_by_what_follows_and_checked_at_once():
    table = new_table()
    with table.transaction() as tx:
        tx.update_schema().rename_column("kind", "sort").commit()
        tx.update_spec().add_field("sort", "identity").commit()
        tx.update_sort_order().asc("sort").commit()
        with pytest.raises(InvalidArgument):
            tx.append(rows([1]))  # has no column of the new name
        tx.append(rows([1]).rename_columns(["id", "sort", "value"]))
    assert [m.partition_spec_id for m in manifests(table)] == [1]
    assert ids(table, "sort = 'a'") == [1]


@pytest.mark.spec("COMMIT-16")
def test_a_schema_change_in_a_transaction_fails_with_all_of_it_when_the_schema_changed():
    table = new_table()
    holder = meddled(table, lambda other: other.update_schema().add_column("theirs", "int").commit())
    tx = holder.transaction()
    tx.append(rows([1]))
    tx.update_schema().add_column("ours", "int").commit()
    with pytest.raises(ValidationFailed):
        tx.commit_transaction()
    assert ids(table.refresh()) == []
    assert orphans(table) == set()


def test_two_schema_changes_in_a_transaction_build_on_each_other():
    table = new_table()
    holder = meddled(table, lambda other: other.append(rows([1])))
    with holder.transaction() as tx:
        tx.update_schema().add_column("a", "int").commit()
        tx.update_schema().add_column("b", "int").rename_column("a", "c").commit()
    assert [field.name for field in holder.schema().fields][3:] == ["c", "b"]


@pytest.mark.spec("META-13")
def test_properties_are_set_and_removed_as_strings():
    table = new_table()
    table.set_properties({"a": 1, "b": True, "c.d": "x"}, e=0.5)
    assert {"a": "1", "b": "true", "c.d": "x", "e": "0.5"}.items() <= table.properties.items()
    table.remove_properties("a", "nowhere")
    assert "a" not in table.properties
    stored = json.loads(MemoryFileSystem.files[table.metadata_location][0])
    assert stored["properties"]["b"] == "true"
    for wrong in ({"x": None}, {"x": [1]}, {"current-schema": "{}"}, {"s3.secret-access-key": "k"}):
        with pytest.raises(InvalidArgument):
            table.set_properties(wrong)
    with pytest.raises(InvalidArgument, match="both"):
        UpdateProperties(lambda action: None).set(x=1).remove("x")


@pytest.mark.spec("COMMIT-28")
def test_properties_that_are_set_already_make_no_version():
    table = new_table()
    table.set_properties(a=1)
    before = table.metadata_location
    table.set_properties(a="1")
    table.remove_properties("b")
    table.transaction().update_location(table.location() + "/").commit_transaction()
    table.transaction().upgrade_table_version(2).commit_transaction()
    assert table.refresh().metadata_location == before


def test_properties_that_others_set_meanwhile_stay():
    table = new_table()
    holder = meddled(table, lambda other: other.set_properties(theirs=1, both=1))
    holder.set_properties(ours=1, both=2)
    assert (holder.properties["theirs"], holder.properties["ours"], holder.properties["both"]) == ("1", "1", "2")


@pytest.mark.spec("META-38", "META-39", "VER-07")
def test_a_format_version_given_as_a_property_upgrades_and_is_not_stored():
    table = new_table()
    table.set_properties({"format-version": "3"})
    assert table.format_version == 3
    assert "format-version" not in table.properties
    for lower in (2, 1):
        with pytest.raises(InvalidArgument, match="cannot be lowered"):
            table.transaction().upgrade_table_version(lower)
    with pytest.raises(InvalidArgument, match="cannot be lowered"):
        table.set_properties({"format-version": "2"})
    with pytest.raises(UnsupportedFeature):
        table.transaction().upgrade_table_version(4)


@pytest.mark.spec("META-04")
def test_another_location_is_for_new_files():
    # A catalog that finds tables by their path keeps the metadata at the path of the name.
    table = new_table()
    table.append(rows([1]))
    moved = table.location() + "-moved"
    with table.transaction() as tx:
        tx.update_location(moved)
        tx.append(rows([2]))
    assert table.location() == moved
    assert ids(table) == [1, 2]
    paths = [task.file.file_path for task in table.scan().plan_files()]
    assert sorted(path.startswith(moved + "/data/") for path in paths) == [False, True]
    assert table.current_snapshot().manifest_list.startswith(moved + "/metadata/")
    with pytest.raises(InvalidArgument):
        table.transaction().update_location("/")


def test_rows_are_taken_in_every_arrow_form():
    table = new_table()
    data = rows([1])
    table.append(data)
    table.append(data.to_batches()[0])
    table.append(data.to_reader())
    table.append(batch for batch in data.to_batches())
    table.append([data])
    table.append(data.to_pandas() if hasattr(data.to_pandas(), "__arrow_c_stream__") else data)
    assert ids(table) == [1] * 6
    for wrong in ("rows", {"id": "1"}, 7, [1, 2]):
        with pytest.raises(InvalidArgument):
            table.append(wrong)
    assert orphans(table) == set()


def test_rows_that_do_not_fit_leave_nothing():
    table = new_table(schema=pa.schema([pa.field("id", pa.int64(), nullable=False)]))
    files = stored_files(table)
    for wrong in (pa.table({"other": [1]}), pa.table({"id": ["x"]}), pa.table({"id": pa.array([None], pa.int64())})):
        with pytest.raises(InvalidArgument):
            table.append(wrong)
    assert stored_files(table) == files
    assert table.snapshots() == []


def test_an_ended_transaction_takes_nothing_more():
    table = new_table()
    tx = table.transaction()
    tx.set_properties(a=1)
    assert tx.commit_transaction() is table
    with pytest.raises(InvalidArgument, match="ended"):
        tx.commit_transaction()
    tx.abort()
    assert table.refresh().properties["a"] == "1"


def test_a_commit_starts_from_the_version_that_is_current_then():
    table = new_table(**{"commit.retry.num-retries": "0"})
    holder = around(again(table))
    table.append(rows([1]))
    holder.append(rows([2]))  # loaded before the other commit, and yet without a conflict
    assert ids(holder) == [1, 2]
    assert len(strategy_of(holder).proposed) == 1
