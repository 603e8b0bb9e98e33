"""Changes through the catalog are visible to everybody: rows, columns, layouts, properties, branches."""

from __future__ import annotations

import pytest
from icefield import Catalog
from icefield.errors import CommitFailed, IcefieldError, InvalidArgument, NoSuchSnapshot, ValidationFailed

from icefield_testing.behaviour.base import BehaviourChecks, ids, interrupted, rows


class ChangeChecks(BehaviourChecks):
    """Checks of commits."""

    # -- rows

    def test_appended_rows_are_read_by_another_process(self, catalog: Catalog) -> None:
        """If this fails, the pointer moves where others do not look, or a cache hides the new version."""
        table = self.create(catalog)
        other = self.held_again(catalog, table)
        table.append(rows([1, 2]))
        assert ids(other) == []
        assert ids(other.refresh()) == [1, 2]
        other.append(rows([3]))
        assert ids(table.refresh()) == [1, 2, 3]

    def test_each_append_is_one_snapshot_on_the_one_before(self, catalog: Catalog) -> None:
        """If this fails, a commit is applied twice, or to another base than it was made on."""
        table = self.create(catalog)
        for number in range(5):
            table.append(rows([number]), {"step": str(number)})
        found = self.held_again(catalog, table)
        snapshots = found.snapshots()
        assert [snapshot.summary["step"] for snapshot in snapshots] == list("01234")
        assert [snapshot.parent_snapshot_id for snapshot in snapshots] == [
            None,
            *(snapshot.snapshot_id for snapshot in snapshots[:-1]),
        ]
        assert [snapshot.sequence_number for snapshot in snapshots] == [1, 2, 3, 4, 5]
        assert found.scan().count() == 5

    def test_overwriting_replaces_every_row(self, catalog: Catalog) -> None:
        """If this fails, old files stay live."""
        table = self.create(catalog)
        table.append(rows([1, 2]))
        table.overwrite(rows([3]))
        assert ids(self.held_again(catalog, table)) == [3]

    def test_overwriting_by_a_filter_replaces_what_matches(self, catalog: Catalog) -> None:
        """If this fails, a file that matches in part is dropped or kept whole."""
        table = self.create(catalog)
        table.append(rows([1, 2, 3]))
        table.overwrite(rows([20]), "id = 2")
        assert ids(self.held_again(catalog, table)) == [1, 3, 20]

    def test_replacing_partitions_leaves_the_others(self, catalog: Catalog) -> None:
        """If this fails, ``dynamic_partition_overwrite`` touches partitions without new rows."""
        table = self.create(catalog, partition_spec=["kind"])
        table.append(rows([1], "a"))
        table.append(rows([2], "b"))
        table.dynamic_partition_overwrite(rows([10], "a"))
        assert ids(self.held_again(catalog, table)) == [2, 10]

    def test_deleting_by_a_filter_leaves_the_rest(self, catalog: Catalog) -> None:
        """If this fails, a file that matches in part is dropped or kept whole."""
        table = self.create(catalog, partition_spec=["kind"])
        table.append(rows(range(10), "a"))
        table.append(rows(range(10, 20), "b"))
        table.delete("kind = 'a' and id >= 5 or id = 17")
        assert ids(self.held_again(catalog, table)) == [0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 15, 16, 18, 19]

    def test_deleting_everything_leaves_an_empty_table_and_its_past(self, catalog: Catalog) -> None:
        """If this fails, deleting all rows deletes files that earlier snapshots read."""
        table = self.create(catalog)
        table.append(rows([1]))
        before = table.current_snapshot()
        assert before is not None
        table.delete()
        found = self.held_again(catalog, table)
        assert ids(found) == []
        assert ids(found, snapshot_id=before.snapshot_id) == [1]

    def test_upserting_changes_and_adds(self, catalog: Catalog) -> None:
        """If this fails, a row is there twice, or its old form stays."""
        table = self.create(catalog)
        table.append(rows([1, 2]))
        result = table.upsert(rows([2, 3], value=9.0), ["id"])
        assert (result.rows_updated, result.rows_inserted) == (1, 1)
        found = self.held_again(catalog, table).scan().to_arrow().sort_by("id").to_pydict()
        assert (found["id"], found["value"]) == ([1, 2, 3], [1.0, 9.0, 9.0])

    def test_a_filter_finds_rows_in_every_partition_layout(self, catalog: Catalog) -> None:
        """If this fails, planning with the new partition spec leaves out files of the old one."""
        table = self.create(catalog, partition_spec=["kind"])
        table.append(rows([1], "a"))
        with table.update_spec() as update:
            update.remove_field("kind")
            update.add_field("id", "bucket[4]")
        table.append(rows([2], "a"))
        table.append(rows([3], "b"))
        found = self.held_again(catalog, table)
        assert len(found.specs()) == 2
        assert ids(found, "kind = 'a'") == [1, 2]
        assert ids(found, "id = 2") == [2]

    # -- columns, order, properties

    def test_columns_change_and_old_files_still_read(self, catalog: Catalog) -> None:
        """If this fails, files are read by name and not by field id."""
        table = self.create(catalog)
        table.append(rows([1], "a"))
        with table.update_schema() as update:
            update.rename_column("kind", "sort")
            update.add_column("kind", "string")
            update.delete_column("value")
        table.append(rows([2], "new").drop_columns(["value"]))
        found = self.held_again(catalog, table).scan().to_arrow().sort_by("id").to_pydict()
        assert found == {"id": [1, 2], "sort": ["a", None], "kind": [None, "new"]}

    def test_a_sort_order_is_kept(self, catalog: Catalog) -> None:
        """If this fails, the default sort order does not reach the metadata."""
        table = self.create(catalog)
        with table.update_sort_order() as update:
            update.desc("value").asc("id")
        assert [field.source_id for field in self.held_again(catalog, table).sort_order().fields] == [3, 1]

    def test_table_properties_are_set_and_removed(self, catalog: Catalog) -> None:
        """If this fails, properties go into the catalog's record and not into the metadata."""
        table = self.create(catalog)
        table.set_properties({"a": "1", "owner": "ü"})
        table.remove_properties("a")
        found = self.held_again(catalog, table).properties
        assert found["owner"] == "ü"
        assert "a" not in found

    def test_the_format_version_is_raised(self, catalog: Catalog) -> None:
        """If this fails, the upgrade is lost, or old files no longer read."""
        table = self.create(catalog, format_version="1")
        table.append(rows([1]))
        table.transaction().upgrade_table_version(2).commit_transaction()
        table.append(rows([2]))
        found = self.held_again(catalog, table)
        assert found.format_version == 2
        assert ids(found) == [1, 2]

    # -- several changes

    def test_a_transaction_is_one_version(self, catalog: Catalog) -> None:
        """If this fails, others see a transaction half done."""
        table = self.create(catalog)
        table.append(rows([1]))
        before = self.held_again(catalog, table)
        with table.transaction() as tx:
            tx.set_properties(color="blue")
            tx.update_schema().add_column("more", "int").commit()
            tx.append(rows([2]))
            tx.delete("id = 1")
            assert self.held_again(catalog, table).metadata == before.metadata
        found = self.held_again(catalog, table)
        assert ids(found) == [2]
        assert found.properties["color"] == "blue"
        assert found.metadata.metadata_log[-1].metadata_file == before.metadata_location

    def test_a_transaction_that_fails_changes_nothing(self, catalog: Catalog) -> None:
        """If this fails, a part of a transaction is published, or its files stay."""
        table = self.create(catalog)
        table.append(rows([1]))
        before = self.files(catalog, table.location())
        tx = table.transaction()
        tx.append(rows([2]))
        tx.set_properties(color="blue")
        tx.__exit__(KeyError, KeyError("the caller failed"), None)
        assert self.held_again(catalog, table).metadata == table.metadata
        assert self.files(catalog, table.location()) == before

    def test_a_change_that_is_wrong_is_refused_and_leaves_nothing(self, catalog: Catalog) -> None:
        """If this fails, a version is published before its content is known to be sound."""
        table = self.create(catalog)
        table.append(rows([1]))
        before = self.files(catalog, table.location())
        for change in (
            lambda: table.append(rows([2]).drop_columns(["id"])),
            lambda: table.delete("nowhere = 1"),
            lambda: table.update_schema().add_column("id", "int").commit(),
            lambda: table.update_spec().add_field("kind", "day").commit(),
            lambda: table.manage_snapshots().rollback_to_snapshot(1).commit(),
            lambda: table.transaction().upgrade_table_version(1).commit_transaction(),
        ):
            with pytest.raises(IcefieldError):
                change()
        assert self.held_again(catalog, table).metadata == table.metadata
        assert self.files(catalog, table.location()) == before

    # -- history

    def test_earlier_snapshots_are_read_and_rolled_back_to(self, catalog: Catalog) -> None:
        """If this fails, a commit deletes what an earlier snapshot needs."""
        table = self.create(catalog)
        table.append(rows([1]))
        first = table.snapshots()[0].snapshot_id
        table.overwrite(rows([2]))
        found = self.held_again(catalog, table)
        assert ids(found, snapshot_id=first) == [1]
        found.manage_snapshots().rollback_to_snapshot(first).commit()
        assert ids(self.held_again(catalog, table)) == [1]

    def test_branches_and_tags_are_apart_from_main(self, catalog: Catalog) -> None:
        """If this fails, a commit to a branch moves ``main``, or a tag moves at all."""
        table = self.create(catalog)
        table.append(rows([1]))
        first = table.snapshots()[0].snapshot_id
        table.manage_snapshots().create_branch(first, "work").create_tag(first, "release").commit()
        table.append(rows([2]), branch="work")
        table.append(rows([3]))
        found = self.held_again(catalog, table)
        assert ids(found) == [1, 3]
        assert ids(found, ref="work") == [1, 2]
        assert ids(found, ref="release") == [1]
        with pytest.raises((NoSuchSnapshot, InvalidArgument)):
            ids(found, ref="nowhere")

    # -- conflicts

    def test_a_commit_that_lost_is_repeated_on_the_new_version(self, catalog: Catalog) -> None:
        """If this fails, an append that met another commit is lost, or takes the other's rows away."""
        table = self.create(catalog)
        other = self.held_again(catalog, table)
        pending = [10, 11]
        interrupted(catalog, table, lambda: other.append(rows([pending.pop()])) if pending else None).append(rows([1]))
        assert ids(self.held_again(catalog, table)) == [1, 10, 11]

    def test_a_conflict_reports_what_it_lost_to(self, catalog: Catalog) -> None:
        """If this fails, ``CommitFailed`` does not name the version that came first, or the loser's files stay."""
        table = self.create(catalog, **{"commit.retry.num-retries": "0"})
        table.append(rows([0]))
        other = self.held_again(catalog, table)
        with pytest.raises(CommitFailed) as caught:
            interrupted(catalog, table, lambda: other.append(rows([1]))).append(rows([2]))
        winner = other.current_snapshot()
        assert winner is not None
        assert caught.value.retryable
        assert caught.value.data["location"] == other.metadata_location
        assert caught.value.data["snapshot_id"] == winner.snapshot_id
        assert str(winner.snapshot_id) in str(caught.value)
        assert "append" in str(caught.value)
        assert ids(self.held_again(catalog, table)) == [0, 1]
        live = set(other.inspect.all_files().column("file_path").to_pylist())
        assert {at for at in self.files(catalog, table.location()) if "/data/" in at} == live

    def test_a_change_that_rests_on_changed_rows_is_refused(self, catalog: Catalog) -> None:
        """If this fails, ``ValidationFailed`` does not name the snapshot, its operation and the files it lost to."""
        table = self.create(catalog)
        table.append(rows([1, 2]))
        other = self.held_again(catalog, table)
        other.append(rows([1], "added meanwhile"))
        added = other.current_snapshot()
        assert added is not None
        with pytest.raises(ValidationFailed) as caught:
            table.overwrite(rows([9]), "id = 1", isolation_level="serializable")
        assert caught.value.data["snapshot_id"] == added.snapshot_id
        assert caught.value.data["operation"] == "append"
        assert caught.value.data["files"][0] in set(other.inspect.files().column("file_path").to_pylist())
        assert not caught.value.retryable
        assert ids(self.held_again(catalog, table)) == [1, 1, 2]

    def test_two_changes_of_the_columns_do_not_mix(self, catalog: Catalog) -> None:
        """If this fails, the second of two schema changes takes the first one's columns away, or shares their ids."""
        table = self.create(catalog)
        other = self.held_again(catalog, table)
        update = table.update_schema().add_column("mine", "int")
        other.update_schema().add_column("theirs", "string").commit()
        with pytest.raises(CommitFailed):
            update.commit()
        found = self.held_again(catalog, table)
        assert found.schema().find_field("theirs").field_id == 4
        assert [field.name for field in found.schema().fields] == ["id", "kind", "value", "theirs"]
