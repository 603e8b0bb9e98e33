"""Appending files, and the resulting manifests, manifest lists and summaries."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest
from icefield.abc import PutMode
from icefield.builtin.memory import MemoryFileSystem
from icefield.errors import InvalidArgument, InvalidSchema, NoSuchSnapshot, UnsupportedFeature
from icefield.manifest import DataFile, DataFileContent
from icefield.manifest.schemas import FILE_SEQUENCE_NUMBER, SEQUENCE_NUMBER, SNAPSHOT_ID
from icefield.metadata.snapshots import Operation
from tables import (
    again,
    entries,
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


def data_files(table, snapshot=None) -> list[DataFile]:
    return [file for manifest in manifests(table, snapshot) for file in entries(table, manifest).data_files()]


def foreign(name: str = "foreign") -> DataFile:
    return DataFile(
        file_path=f"memory://elsewhere/{name}.parquet", file_format="parquet", record_count=3, file_size_in_bytes=9
    )


@pytest.mark.spec("SNAP-03", "SNAP-05", "SNAP-06", "SNAP-07", "SNAP-08", "SNAP-10", "SNAP-13")
def test_an_append_adds_a_snapshot_on_top_of_the_one_before():
    table = new_table()
    table.append(rows([1]))
    first = table.current_snapshot()
    table.append(rows([2, 3]))
    second = table.current_snapshot()
    assert first.parent_snapshot_id is None
    assert second.parent_snapshot_id == first.snapshot_id
    assert second.operation is Operation.APPEND
    assert second.schema_id == table.schema().schema_id
    assert first.timestamp_ms <= second.timestamp_ms == table.metadata.last_updated_ms
    assert second.manifest_list.startswith(table.location() + "/metadata/snap-")
    assert ids(table) == [1, 2, 3]
    assert ids(table, snapshot_id=first.snapshot_id) == [1]


@pytest.mark.spec("SNAP-01", "SNAP-02")
def test_snapshot_ids_are_positive_and_distinct():
    table = new_table()
    for number in range(5):
        table.append(rows([number]))
    found = [snapshot.snapshot_id for snapshot in table.snapshots()]
    assert len(set(found)) == 5
    assert all(0 < number < 2**63 for number in found)
    assert found != sorted(found) or found[0] > 10**9  # random, not counted


@pytest.mark.spec("SNAP-12", "SNAP-10", "COMMIT-25")
def test_a_fast_append_leaves_every_other_manifest_as_it_is():
    table = new_table(**{"commit.manifest.min-count-to-merge": "2"})
    for number in range(4):
        action = table.update_snapshot().fast_append()
        action.append_file(foreign(str(number))).commit()
    assert len(manifests(table)) == 4
    before = {manifest.manifest_path: MemoryFileSystem.files[manifest.manifest_path] for manifest in manifests(table)}
    table.update_snapshot().fast_append().append_file(foreign("last")).commit()
    assert {manifest.manifest_path for manifest in manifests(table)} > before.keys()
    assert {path: MemoryFileSystem.files[path] for path in before} == before


@pytest.mark.slow
@pytest.mark.spec("COMMIT-25", "SNAP-21")
def test_the_hundredth_manifest_makes_an_append_merge_those_before_it():
    table = new_table()
    counts = []
    for number in range(101):
        table.update_snapshot().merge_append().append_file(foreign(str(number))).commit()
        counts.append(len(manifests(table)))
    assert counts[:99] == list(range(1, 100))
    assert counts[99:] == [2, 3]
    merging = table.snapshots()[99]
    assert merging.summary["manifests-created"] == "2"
    assert merging.summary["manifests-kept"] == "0"
    assert merging.summary["manifests-replaced"] == "99"
    merged = manifests(table)[0]
    assert (merged.added_files_count, merged.existing_files_count, merged.deleted_files_count) == (0, 99, 0)
    # Inherited values are written out, and do not change.
    found = entries(table, merged)
    assert found.column(SEQUENCE_NUMBER).to_pylist() == list(range(1, 100))
    assert found.column(FILE_SEQUENCE_NUMBER).to_pylist() == list(range(1, 100))
    assert found.column(SNAPSHOT_ID).to_pylist() == [snapshot.snapshot_id for snapshot in table.snapshots()[:99]]
    assert {file.file_path for file in data_files(table)} == {foreign(str(n)).file_path for n in range(101)}


@pytest.mark.spec("COMMIT-25")
def test_merging_can_be_turned_off():
    table = new_table(**{"commit.manifest.min-count-to-merge": "2", "commit.manifest-merge.enabled": "false"})
    for number in range(5):
        table.append(rows([number]))
    assert len(manifests(table)) == 5


@pytest.mark.spec("COMMIT-25")
def test_manifests_of_about_the_target_size_are_left_alone():
    table = new_table(**{"commit.manifest.min-count-to-merge": "2", "commit.manifest.target-size-bytes": "1"})
    for number in range(5):
        table.append(rows([number]))
    assert len(manifests(table)) == 5
    assert ids(table) == [0, 1, 2, 3, 4]


@pytest.mark.spec("PART-05")
def test_merging_never_mixes_specs():
    table = new_table("kind", **{"commit.manifest.min-count-to-merge": "2"})
    table.append(rows([1]))
    table.append(rows([2]))
    with table.update_spec() as update:
        update.add_field("id", "bucket[4]")
    for number in range(3, 6):
        table.append(rows([number]))
    found = manifests(table)
    assert {manifest.partition_spec_id for manifest in found} == {0, 1}
    for manifest in found:
        widths = {len(file.partition) for file in entries(table, manifest).data_files()}
        assert widths == {1 if manifest.partition_spec_id == 0 else 2}
    assert ids(table, "kind = 'a'") == [1, 2, 3, 4, 5]


@pytest.mark.spec("COMMIT-14", "COMMIT-13", "SNAP-17", "MAN-13", "ML-02")
def test_a_retry_uses_the_manifest_again_and_takes_a_new_sequence_number():
    table = new_table()
    holder = meddled(table, *[lambda other: other.append(rows([1]))] * 2)
    seen: list[tuple[str, int]] = []
    strategy = strategy_of(holder)
    holder.append(rows([2]))
    for proposed in strategy.proposed:
        snapshot = proposed.current_snapshot()
        seen.append((snapshot.manifest_list, snapshot.sequence_number))
    assert [number for _, number in seen] == [1, 2, 3]
    assert len({location for location, _ in seen}) == 3
    assert len({p.current_snapshot().snapshot_id for p in strategy.proposed}) == 1
    ours = [m for m in manifests(holder) if m.added_snapshot_id == holder.current_snapshot().snapshot_id]
    assert [(m.sequence_number, m.min_sequence_number) for m in ours] == [(3, 3)]
    assert entries(holder, ours[0]).column(SEQUENCE_NUMBER).to_pylist() == [3]
    assert orphans(table) == set()


@pytest.mark.spec("COMMIT-14")
def test_one_manifest_one_list_and_one_metadata_file_are_written_for_each_kind_of_attempt():
    table = new_table()
    written: list[str] = []
    original = MemoryFileSystem._publish

    def publish(self, location, data, *, replace):
        written.append(location)
        return original(self, location, data, replace=replace)

    holder = meddled(table, lambda other: other.append(rows([1])))
    MemoryFileSystem._publish = publish
    try:
        holder.append(rows([2]))
    finally:
        MemoryFileSystem._publish = original
    uuid = holder.current_snapshot().manifest_list.rpartition("-")[0].split("-", 3)[3]
    assert sum("-m" in name and uuid in name for name in written) == 1
    assert sum("snap-" in name and uuid in name for name in written) == 2


@pytest.mark.spec("SNAP-04", "COMMIT-13", "COMMIT-17")
def test_sequence_numbers_go_up_by_one_with_each_commit():
    table = new_table()
    for number in range(4):
        table.append(rows([number]))
    assert [snapshot.sequence_number for snapshot in table.snapshots()] == [1, 2, 3, 4]
    assert table.last_sequence_number == 4


@pytest.mark.spec("SNAP-04", "VER-01")
def test_format_version_1_has_no_sequence_numbers():
    table = new_table(**{"format-version": "1"})
    table.append(rows([1]))
    table.append(rows([2]))
    table.delete("id = 1")
    assert [snapshot.sequence_number for snapshot in table.snapshots()] == [0, 0, 0]
    assert b'"sequence-number"' not in MemoryFileSystem.files[table.metadata_location][0]
    assert ids(table) == [2]


@pytest.mark.spec("MAN-23")
def test_a_path_is_not_added_twice():
    table = new_table()
    with pytest.raises(InvalidArgument, match="twice"):
        table.update_snapshot().fast_append().append_file(foreign(), foreign())
    table.update_snapshot().merge_append().append_file(foreign()).commit()
    with pytest.raises(InvalidArgument, match="in the table already"):
        table.update_snapshot().fast_append().append_file(foreign()).commit()
    assert len(table.snapshots()) == 1
    # A removed file may be added again.
    table.update_snapshot().delete().delete_file(foreign()).commit()
    table.update_snapshot().fast_append().append_file(foreign()).commit()
    assert [task.file.file_path for task in table.scan().plan_files()] == [foreign().file_path]


@pytest.mark.spec("MAN-24")
def test_a_path_that_was_deleted_comes_back_with_a_warning(caplog):
    table = new_table()
    table.update_snapshot().fast_append().append_file(foreign(), foreign("other")).commit()
    table.update_snapshot().delete().delete_file(foreign()).commit()
    assert not caplog.records
    table.update_snapshot().fast_append().append_file(foreign(), foreign("third")).commit()
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert f"{foreign().file_path} was deleted from the table" in record.getMessage()
    caplog.clear()
    table.update_snapshot().delete().delete_file(foreign("third")).commit()
    table.append(rows([1]))  # a name that is drawn is not looked for
    assert not caplog.records


@pytest.mark.spec("MAN-23")
def test_a_path_that_another_commit_added_first_is_refused_on_the_retry():
    table = new_table()
    holder = meddled(table, lambda other: other.update_snapshot().fast_append().append_file(foreign()).commit())
    with pytest.raises(InvalidArgument, match="in the table already"):
        holder.update_snapshot().fast_append().append_file(foreign()).commit()
    assert len(table.refresh().snapshots()) == 1


def test_delete_files_are_not_appended():
    delete = replace(foreign(), content=DataFileContent.POSITION_DELETES)
    with pytest.raises(InvalidArgument, match="deletes"):
        new_table().update_snapshot().fast_append().append_file(delete)


@pytest.mark.spec("COMMIT-28")
def test_an_append_of_nothing_makes_no_version():
    table = new_table()
    before = table.metadata_location
    table.append(rows([]))
    table.update_snapshot().fast_append().commit()
    with table.transaction():
        pass
    assert table.refresh().metadata_location == before
    assert table.snapshots() == []


@pytest.mark.spec("SNAP-19", "SNAP-23")
def test_the_summary_counts_files_rows_bytes_and_partitions_and_carries_totals_on():
    table = new_table("kind")
    table.append(rows([1, 2]))
    table.append(pa.concat_tables([rows([3], "b"), rows([4], "c")]))
    files = data_files(table)
    summary = dict(table.current_snapshot().summary)
    new = [file for file in files if file.partition != ("a",)]
    assert summary["added-data-files"] == "2"
    assert summary["added-records"] == "2"
    assert summary["changed-partition-count"] == "2"
    assert summary["added-files-size"] == str(sum(file.file_size_in_bytes for file in new))
    assert summary["total-data-files"] == "3"
    assert summary["total-records"] == "4"
    assert summary["total-files-size"] == str(sum(file.file_size_in_bytes for file in files))
    assert "deleted-data-files" not in summary


@pytest.mark.spec("SNAP-22")
def test_strings_of_the_caller_go_into_the_summary_and_cannot_pass_for_counters():
    table = new_table()
    table.append(rows([1]), snapshot_properties={"engine-name": "test", "wap.id": "7"})
    assert table.current_snapshot().summary["engine-name"] == "test"
    assert table.current_snapshot().summary["wap.id"] == "7"
    with pytest.raises(InvalidArgument, match="counted"):
        table.append(rows([2]), snapshot_properties={"total-records": "0"})
    assert orphans(table) == set()


def test_the_summary_states_partitions_when_the_table_asks_for_it():
    table = new_table("kind", **{"write.summary.partition-limit": "2"})
    table.append(pa.concat_tables([rows([1, 2], "x"), rows([3], "y")]))
    assert "added-records=2" in table.current_snapshot().summary["partitions.kind=x"]
    table.delete("kind = 'y'")
    assert "deleted-records=1" in table.current_snapshot().summary["partitions.kind=y"]
    table.append(pa.concat_tables([rows([n], str(n)) for n in range(3)]))
    assert "partitions.kind=0" not in table.current_snapshot().summary


@pytest.mark.spec("COMMIT-29", "REF-02")
def test_a_commit_to_a_branch_builds_on_its_head_and_leaves_main_alone():
    table = new_table()
    table.append(rows([1]))
    main = table.current_snapshot().snapshot_id
    table.manage_snapshots().create_branch(main, "audit").commit()
    table.append(rows([2]), branch="audit")
    table.append(rows([3]))
    table.append(rows([4]), branch="audit")
    assert ids(table) == [1, 3]
    assert ids(table, ref="audit") == [1, 2, 4]
    chain = [snapshot.snapshot_id for snapshot in table.metadata.ancestors(table.refs()["audit"].snapshot_id)]
    assert chain[-1] == main
    assert len(chain) == 3
    table.delete("id = 1", branch="audit")
    assert (ids(table), ids(table, ref="audit")) == ([1, 3], [2, 4])
    assert [entry.snapshot_id for entry in table.history()] == [main, table.current_snapshot().snapshot_id]


@pytest.mark.spec("COMMIT-29")
def test_a_branch_that_is_not_there_and_a_tag_take_no_commit():
    table = new_table()
    table.append(rows([1]))
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "v1").commit()
    with pytest.raises(NoSuchSnapshot, match="no branch 'nowhere'"):
        table.append(rows([2]), branch="nowhere")
    with pytest.raises(InvalidArgument, match="is a tag"):
        table.append(rows([2]), branch="v1")
    assert orphans(table) == set()
    assert len(table.snapshots()) == 1


@pytest.mark.spec("COMMIT-29")
def test_the_first_rows_of_a_table_may_go_to_a_branch():
    table = new_table()
    table.manage_snapshots().create_branch(None, "dev").commit()
    table.append(rows([1]), branch="dev")
    assert ids(table, ref="dev") == [1]
    assert table.current_snapshot() is None
    assert ids(table) == []


def test_retention_of_a_branch_stays_when_a_commit_moves_it():
    table = new_table()
    table.append(rows([1]))
    table.manage_snapshots().create_branch(
        table.current_snapshot().snapshot_id, "dev", max_ref_age_ms=5, max_snapshot_age_ms=6, min_snapshots_to_keep=7
    ).commit()
    table.append(rows([2]), branch="dev")
    ref = table.refs()["dev"]
    assert (ref.max_ref_age_ms, ref.max_snapshot_age_ms, ref.min_snapshots_to_keep) == (5, 6, 7)


@pytest.mark.spec("COMMIT-27", "SNAP-14", "ROW-09")
def test_row_ids_of_version_3_are_taken_anew_on_each_attempt():
    table = new_table(**{"format-version": "3"})
    holder = meddled(table, lambda other: other.append(rows([1, 2, 3])))
    holder.append(rows([4, 5]))
    assert [(s.first_row_id, s.added_rows) for s in holder.snapshots()] == [(0, 3), (3, 2)]
    assert [p.current_snapshot().first_row_id for p in strategy_of(holder).proposed] == [0, 3]
    assert holder.metadata.next_row_id == 5
    assert [m.first_row_id for m in manifests(holder)] == [0, 3]
    table.refresh().delete("id = 4")
    assert table.current_snapshot().first_row_id == 5


def test_a_large_append_is_split_into_manifests_of_the_target_size():
    table = new_table(**{"commit.manifest.target-size-bytes": "20000", "commit.manifest-merge.enabled": "false"})
    action = table.update_snapshot().fast_append()
    action.append_fresh(foreign(f"{number:06d}") for number in range(9_000))
    action.commit()
    found = manifests(table)
    assert len(found) > 1
    assert sum(manifest.added_files_count for manifest in found) == 9_000


def test_manifests_written_for_an_older_format_version_are_not_used_after_an_upgrade():
    table = new_table(**{"format-version": "1"})

    def upgrade(other) -> None:
        other.transaction().upgrade_table_version(2).commit_transaction()

    holder = meddled(table, upgrade)
    holder.append(rows([1]))
    (manifest,) = manifests(holder)
    assert entries(holder, manifest).column(SEQUENCE_NUMBER).to_pylist() == [1]
    assert orphans(table) == set()


def test_an_action_is_committed_once():
    table = new_table()
    action = table.update_snapshot().fast_append().append_file(foreign())
    action.commit()
    with pytest.raises(InvalidArgument, match="committed already"):
        action.commit()


@pytest.mark.spec("COMMIT-07")
def test_an_append_goes_through_whatever_was_committed_meanwhile():
    def schema(other):
        other.update_schema().add_column("extra", "int").commit()

    def spec(other):
        other.update_spec().add_field("id", "bucket[2]").commit()

    def replaced(other):
        other.overwrite(rows([7]))

    table = new_table(**{"commit.retry.num-retries": "9"})
    table.append(rows([1]))
    holder = meddled(table, schema, spec, replaced, lambda other: other.delete("id = 7"))
    holder.append(rows([2]))
    assert ids(holder) == [2]
    assert again(table).refresh().schema().has_field("extra")


@pytest.mark.spec("IDF-02")
def test_rows_with_the_same_identifier_are_accepted():
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("kind", pa.string())])
    table = new_table(schema=schema)
    with table.update_schema() as update:
        update.set_identifier_fields("id")
    for _ in range(2):
        table.append(pa.table({"id": [1, 1, 2], "kind": ["a", "b", "a"]}, schema=schema))
    assert table.schema().identifier_field_names() == {"id"}
    assert ids(table) == [1, 1, 1, 1, 2, 2]


def test_a_decimal_with_more_digits_after_the_point_than_it_has_is_read_and_takes_no_rows():
    """No file format holds its values, so its rows are null; another engine may have put it into the metadata."""
    catalog = memory_catalog()
    table = new_table(catalog=catalog, schema=pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    document = json.loads(table.io.read(table.metadata_location))
    document["schemas"][0]["fields"].append({"id": 2, "name": "d", "required": False, "type": "decimal(3, 5)"})
    document["last-column-id"] = 2
    location = table.location() + "/metadata/00009-other.metadata.json"
    table.io.put(location, json.dumps(document).encode(), PutMode.CREATE)
    table = catalog.register_table("db.other", location)
    found = table.scan().to_arrow()
    assert found.to_pylist() == [{"id": 1, "d": None}]
    assert found.schema.field("d").type == pa.decimal128(3, 5)
    assert table.scan("d > 0.001").count() == 0
    assert table.scan("d is null and id = 1").count() == 1
    files = stored_files(table)
    with pytest.raises(UnsupportedFeature, match=r"'d' is of type decimal\(3,5\)"):
        table.append(pa.table({"id": [2]}))
    with pytest.raises(InvalidSchema, match="scale above its precision"):
        table.update_schema().add_column("e", "decimal(3,4)").commit()
    assert stored_files(table) == files
    table.update_schema().delete_column("d").commit()
    table.append(pa.table({"id": [2]}))
    assert ids(table) == [1, 2]


def test_a_commit_merges_a_few_full_manifests_and_later_commits_the_others():
    """A first append to a table of many small manifests takes no longer than one to a table of few."""
    table = new_table(**{"commit.manifest-merge.enabled": "false"})
    for number in range(40):
        table.append(rows([number]))
    size = max(each.manifest_length for each in manifests(table))
    with table.transaction() as tx:
        tx.set_properties({"commit.manifest-merge.enabled": "true"})
        tx.set_properties({"commit.manifest.target-size-bytes": str(2 * size)})
    counts = []
    for number in range(40, 46):
        table.append(rows([number]))
        counts.append(len(manifests(table)))
    # Each commit adds a manifest and merges four pairs, until all pairs are merged.
    assert counts[:4] == [40 + 1 - 4, 40 + 2 - 8, 40 + 3 - 12, 40 + 4 - 16]
    assert counts[5] - counts[4] <= 1
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(46))
