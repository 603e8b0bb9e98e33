"""Expiring snapshots: what goes, what stays, and in which order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pytest
from expired_tables import ALL, appended
from icefield import MemoryFileSystem
from icefield.abc import OperationProgress
from icefield.errors import InvalidArgument, NoSuchSnapshot
from icefield.manifest import clear_caches
from icefield.metadata import StatisticsFile
from naive_reachability import files_of
from tables import (
    Listener,
    again,
    around,
    ids,
    live_files,
    manifests,
    meddled,
    memory_catalog,
    new_table,
    orphans,
    rows,
    stored_files,
)

UNMERGED = {"commit.manifest-merge.enabled": "false"}
MARKED = {f"write.{change}.mode": "merge-on-read" for change in ("delete", "update", "merge")}


def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The locations of the files that are opened from now on."""
    clear_caches()
    opened: list[str] = []
    inner = MemoryFileSystem.open_input

    def noting(self: MemoryFileSystem, location: str) -> Any:
        opened.append(location)
        return inner(self, location)

    monkeypatch.setattr(MemoryFileSystem, "open_input", noting)
    return opened


@pytest.mark.spec("REF-09", "SNAP-18", "META-18")
def test_what_expired_is_gone_from_the_metadata_and_from_the_store() -> None:
    table = appended(3)
    table.maintenance.compute_table_stats()
    table.overwrite(rows([9]))
    table.append(rows([10]))
    first, second, third, fourth, fifth = table.snapshots()
    expected = files_of(table, [first, second, third]) - files_of(table, [fourth, fifth])
    statistics = table.metadata.statistics[0].statistics_path
    before = stored_files(table)
    done = table.maintenance.expire_snapshots(fourth.timestamp_ms, 2)
    assert done.snapshot_ids == (first.snapshot_id, second.snapshot_id, third.snapshot_id)
    assert {entry.snapshot_id for entry in table.history()} == {fourth.snapshot_id, fifth.snapshot_id}
    assert list(table.metadata.statistics) == []
    gone = before - stored_files(table)
    assert gone == expected | {statistics}
    assert (done.data_files, done.manifests, done.manifest_lists, done.statistics_files) == (3, 3, 3, 1)
    assert done.files == len(gone)
    assert done.undeleted == 0
    assert ids(table, snapshot_id=fourth.snapshot_id) == [9]
    assert ids(table) == [9, 10]
    with pytest.raises(NoSuchSnapshot):
        ids(table, snapshot_id=first.snapshot_id)
    assert table.maintenance.expire_snapshots(fourth.timestamp_ms, 2).files == 0


@pytest.mark.spec("META-18")
def test_the_log_begins_after_the_last_snapshot_that_expired() -> None:
    table = appended(4)
    named = [entry.snapshot_id for entry in table.history()]
    table.maintenance.expire_snapshots(snapshot_ids=[named[1]])
    assert [entry.snapshot_id for entry in table.history()] == named[2:]
    assert {snapshot.snapshot_id for snapshot in table.snapshots()} == {named[0], *named[2:]}
    assert ids(table, snapshot_id=named[0]) == [0]


@pytest.mark.spec("SNAP-25")
def test_a_data_file_goes_with_the_last_snapshot_in_which_it_is_live() -> None:
    table = appended(2)
    table.delete("id = 0")
    table.append(rows([7]))
    held = {
        path: number for number, path in enumerate(sorted(name for name in stored_files(table) if "/data/" in name))
    }
    first, second, third, _ = table.snapshots()
    table.manage_snapshots().create_tag(second.snapshot_id, "t").commit()
    assert table.maintenance.expire_snapshots(ALL).data_files == 0
    assert ids(table, ref="t") == [0, 1]
    table.manage_snapshots().remove_tag("t").commit()
    assert table.maintenance.expire_snapshots(ALL).data_files == 1
    assert len([name for name in stored_files(table) if "/data/" in name]) == len(held) - 1
    assert not {first.manifest_list, second.manifest_list, third.manifest_list} & stored_files(table)
    assert ids(table) == [1, 7]
    assert orphans(table) == set()


@pytest.mark.spec("SNAP-25")
def test_a_data_file_stays_while_a_snapshot_older_than_the_deleting_one_is_kept() -> None:
    """The kept one names it in a manifest of its own; the others were merged, and expire with the deleting one."""
    table = appended(2, **{"commit.manifest.min-count-to-merge": "2"})
    table.delete("id = 0")
    table.append(rows([7]))
    first, second, third, fourth = table.snapshots()
    (doomed,) = {name for name in files_of(table, [first]) if "/data/" in name}
    table.manage_snapshots().create_tag(first.snapshot_id, "t").commit()
    done = table.maintenance.expire_snapshots(ALL)
    assert (done.snapshot_ids, done.data_files) == ((second.snapshot_id, third.snapshot_id), 0)
    assert doomed in stored_files(table)
    assert ids(table, ref="t") == [0]
    table.manage_snapshots().remove_tag("t").commit()
    before = stored_files(table)
    assert table.maintenance.expire_snapshots(ALL).data_files == 1
    assert {name for name in before - stored_files(table) if "/data/" in name} == {doomed}
    assert ids(table, snapshot_id=fourth.snapshot_id) == [1, 7]
    assert orphans(table) == set()


@pytest.mark.spec("SNAP-24")
def test_no_manifest_is_read_where_snapshots_only_appended(monkeypatch: pytest.MonkeyPatch) -> None:
    table = appended(5, **UNMERGED)
    opened = reads(monkeypatch)
    done = table.maintenance.expire_snapshots(ALL)
    assert (done.manifest_lists, done.files) == (4, 4)
    assert not [name for name in opened if name.endswith(".avro") and "/snap-" not in name]
    assert ids(table) == [0, 1, 2, 3, 4]


def test_each_manifest_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    table = appended(6, **{"commit.manifest.min-count-to-merge": "2"})
    table.delete("id = 3")
    opened = reads(monkeypatch)
    table.maintenance.expire_snapshots(ALL)
    read = [name for name in opened if name.endswith(".avro")]
    assert read
    assert len(read) == len(set(read))


def test_a_file_of_a_merged_manifest_stays() -> None:
    table = appended(7, **{"commit.manifest.min-count-to-merge": "2"})
    done = table.maintenance.expire_snapshots(ALL)
    assert done.data_files == 0
    assert done.manifests > 0
    assert ids(table) == list(range(7))
    assert orphans(table) == set()


def test_a_file_that_was_added_twice_by_mistake_stays_after_a_rollback() -> None:
    """The manifests of both are in the snapshot that expires, and one of them is in the one that is kept."""
    table = new_table(**UNMERGED)
    table.append(rows([1]))
    (location,) = [name for name in stored_files(table) if "/data/" in name]
    table.add_files([location], check_duplicate_files=False)
    first, second = table.snapshots()
    table.manage_snapshots().rollback_to_snapshot(first.snapshot_id).commit()
    done = table.maintenance.expire_snapshots(ALL)
    assert done.snapshot_ids == (second.snapshot_id,)
    assert (done.manifests, done.data_files) == (1, 0)
    assert ids(table) == [1]


def test_a_published_snapshot_keeps_the_files_of_the_staged_one() -> None:
    table = appended(1)
    table.append(rows([5]), branch=None)
    staged = table.snapshots()[-1]
    table.append(rows([6]))
    table.manage_snapshots().cherry_pick(staged.snapshot_id).commit()
    assert staged.snapshot_id in table.maintenance.expire_snapshots(ALL).snapshot_ids
    assert ids(table) == [0, 5, 6]
    assert orphans(table) == set()


def test_deletion_vectors_keep_their_puffin_file_while_one_of_them_is_live() -> None:
    table = new_table(["kind"], **MARKED, **{"format-version": "3"})
    table.append(pa.concat_tables([rows(range(4), "a"), rows(range(4, 8), "b")]))
    table.delete("id in (1, 5)")
    puffins = {name for name in stored_files(table) if name.endswith(".puffin")}
    table.delete("kind = 'a'")
    done = table.maintenance.expire_snapshots(ALL)
    left = {name for name in stored_files(table) if name.endswith(".puffin")}
    assert left <= puffins
    assert left
    assert done.deletion_vector_files == len(puffins) - len(left)
    assert done.data_files == 1
    assert ids(table) == [4, 6, 7]
    assert orphans(table) == set()
    table.overwrite(rows([0]))
    assert table.maintenance.expire_snapshots(ALL).deletion_vector_files == len(left)


def test_delete_files_are_counted_by_kind() -> None:
    table = new_table(**MARKED)
    table.append(rows(range(4)))
    first = table.current_snapshot()
    assert first is not None
    table.delete("id = 1")
    table.delete_by_equality(pa.table({"id": [2]}), ["id"])
    table.append(rows([9]))
    table.manage_snapshots().rollback_to_snapshot(first.snapshot_id).commit()
    done = table.maintenance.expire_snapshots(ALL)
    assert (done.data_files, done.position_delete_files, done.equality_delete_files) == (1, 1, 1)
    assert ids(table) == [0, 1, 2, 3]
    assert orphans(table) == set()


def test_a_dry_run_names_what_a_run_deletes_and_changes_nothing() -> None:
    table = appended(3)
    table.delete("id = 1")
    table.manage_snapshots().create_tag(table.snapshots()[0].snapshot_id, "t").set_max_ref_age_ms("t", 1).commit()
    before, version = stored_files(table), table.metadata_location
    planned = table.maintenance.expire_snapshots(ALL, dry_run=True)
    found = planned.locations().read_all()
    assert planned.dry_run
    assert planned.locations().read_all().equals(found)
    assert (stored_files(table), table.refresh().metadata_location) == (before, version)
    done = table.maintenance.expire_snapshots(ALL)
    assert set(found["location"].to_pylist()) == before - stored_files(table)
    assert found.num_rows == planned.files == done.files
    assert (planned.snapshot_ids, planned.refs) == (done.snapshot_ids, done.refs)
    assert sorted(set(found["kind"].to_pylist())) == ["data", "manifest", "manifest-list"]
    assert done.locations().read_all().num_rows == 0


def test_without_cleaning_only_the_metadata_changes() -> None:
    table = appended(3)
    before = stored_files(table)
    assert table.maintenance.expire_snapshots(ALL, clean_files=False).files == 0
    assert before < stored_files(table)
    assert len(table.snapshots()) == 1


def test_statistics_that_a_kept_snapshot_shares_stay() -> None:
    table = appended(2)
    first, second = table.snapshots()
    made = table.maintenance.compute_table_stats(snapshot_id=first.snapshot_id)
    assert made is not None
    shared = StatisticsFile(
        second.snapshot_id,
        made.statistics_path,
        made.file_size_in_bytes,
        made.file_footer_size_in_bytes,
        made.blob_metadata,
    )
    table.update_statistics().set_statistics(shared).commit()
    assert table.maintenance.expire_snapshots(ALL).statistics_files == 0
    assert made.statistics_path in stored_files(table)


@pytest.mark.parametrize(
    "spelling", ["{folder}/../data/{name}", "{folder}//{name}", "file:{folder}/{name}", "{link}/{name}"]
)
def test_spellings_of_one_place_are_one_file(tmp_path: Path, spelling: str) -> None:
    table = new_table(catalog=memory_catalog(warehouse=f"file://{tmp_path}/wh"), **UNMERGED)
    table.append(rows([1]))
    (location,) = [name for name in stored_files(table) if "/data/" in name]
    folder, _, name = location.removeprefix("file://").rpartition("/")
    (tmp_path / "link").symlink_to(folder)
    table.delete()
    table.add_files([spelling.format(folder=folder, name=name, link=tmp_path / "link")])
    done = table.maintenance.expire_snapshots(ALL)
    assert (len(done.snapshot_ids), done.manifests, done.data_files) == (2, 1, 0)
    assert ids(table) == [1]


def test_a_table_below_a_map_loses_what_is_there_and_nothing_else() -> None:
    table = appended(3)
    table.overwrite(rows([5]))
    home, moved = table.location(), "memory://elsewhere/t"
    for name in stored_files(table):
        MemoryFileSystem.files[name.replace(home, moved)] = MemoryFileSystem.files[name]
    before = stored_files(table)
    mapped = icefield.load_catalog(
        "mapped", type="directory", warehouse=home.rpartition("/db/")[0], **{f"location.map.{home}": moved}
    ).load_table("db.t")
    done = mapped.maintenance.expire_snapshots(ALL)
    assert done.data_files == 3
    assert stored_files(table) == before
    left = {name for name in MemoryFileSystem.files if name.startswith(moved)}
    assert len(left) == len(before) - done.files + 1
    assert ids(mapped) == [5]


# -- others at the same time ---------------------------------------------------------------------------------------


@pytest.mark.spec("REF-02")
def test_a_tag_that_was_made_meanwhile_keeps_its_snapshot() -> None:
    table = appended(3)
    first = table.snapshots()[0]
    other = meddled(table, lambda each: each.manage_snapshots().create_tag(first.snapshot_id, "kept").commit())
    done = other.maintenance.expire_snapshots(ALL)
    assert first.snapshot_id not in done.snapshot_ids
    assert len(done.snapshot_ids) == 1
    assert ids(other, ref="kept") == [0]
    assert orphans(other) == set()


def test_what_was_appended_meanwhile_stays() -> None:
    table = appended(3)
    other = meddled(table, lambda each: each.append(rows([7])), lambda each: each.delete("id = 1"))
    other.maintenance.expire_snapshots(ALL)
    assert ids(other) == [0, 2, 7]
    assert orphans(other) == set()


def test_a_rollback_meanwhile_keeps_what_it_went_back_to() -> None:
    table = appended(3)
    first = table.snapshots()[0]
    other = meddled(table, lambda each: each.manage_snapshots().rollback_to_snapshot(first.snapshot_id).commit())
    done = other.maintenance.expire_snapshots(ALL)
    assert ids(other) == [0]
    assert len(done.snapshot_ids) == 2
    assert orphans(other) == set()


def test_a_writer_that_was_stalled_loses_nothing() -> None:
    table = appended(3)
    stalled = again(table).transaction()
    stalled.append(rows([8]))
    table.maintenance.expire_snapshots(ALL)
    stalled.commit_transaction()
    assert ids(table.refresh()) == [0, 1, 2, 8]
    assert orphans(table) == set()


def test_every_branch_and_tag_must_be_where_it_was() -> None:
    table = appended(2)
    table.manage_snapshots().create_tag(table.snapshots()[0].snapshot_id, "t").commit()
    table.append(rows([5]))
    seen: list[Any] = []
    watched = around(table)
    inner = watched._handle.strategy.commit
    watched._handle.strategy.commit = lambda base, proposal: seen.append(proposal) or inner(base, proposal)
    watched.maintenance.expire_snapshots(ALL)
    asserted = {(each.ref, each.snapshot_id) for each in seen[0].requirements if each.type == "assert-ref-snapshot-id"}
    assert asserted == {(name, ref.snapshot_id) for name, ref in table.refs().items()}


def test_refusals_change_nothing() -> None:
    table = appended(2, **{"gc.enabled": "false"})
    version = table.metadata_location
    for dry_run in (False, True):
        with pytest.raises(InvalidArgument, match=r"gc\.enabled"):
            table.maintenance.expire_snapshots(ALL, dry_run=dry_run)
    table.set_properties({"gc.enabled": "true"})
    with pytest.raises(InvalidArgument, match="the branch 'main' refers to it"):
        table.maintenance.expire_snapshots(snapshot_ids=[table.current_snapshot().snapshot_id])
    with pytest.raises(NoSuchSnapshot):
        table.maintenance.expire_snapshots(snapshot_ids=[1])
    assert len(table.refresh().snapshots()) == 2
    assert version in stored_files(table)


def test_listeners_hear_how_far_it_has_come() -> None:
    listener = Listener()
    table = new_table(catalog=memory_catalog(listener))
    for number in range(3):
        table.append(rows([number]))
    table.overwrite(rows([9]))
    done = table.maintenance.expire_snapshots(ALL)
    heard = [event for event in listener.of(OperationProgress) if event.operation == "expire-snapshots"]
    assert [event.step for event in heard] == ["data", "manifest", "manifest-list"]
    assert (heard[-1].done, heard[-1].total, heard[-1].table) == (done.files, done.files, ("db", "t"))


def test_an_empty_table_has_nothing_to_expire() -> None:
    table = new_table()
    version = table.metadata_location
    assert table.maintenance.expire_snapshots(ALL).files == 0
    assert table.metadata_location == version
    assert live_files(table)


def test_no_manifest_is_read_when_every_file_of_the_expired_snapshots_lives_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = new_table(**{"commit.manifest.min-count-to-merge": "3"})
    for number in range(7):
        table.append(rows([number]))
    table.maintenance.rewrite_manifests()
    before = stored_files(table)
    opened = reads(monkeypatch)
    done = table.maintenance.expire_snapshots(2**60)
    monkeypatch.undo()
    assert len(done.snapshot_ids) == 7
    assert done.manifests > 5
    assert (done.data_files, len(before - stored_files(table))) == (0, done.files)
    assert not [location for location in opened if location.endswith("-m0.avro")]
    assert ids(table) == [*range(7)]


def test_of_a_step_that_deletes_only_the_manifests_that_it_replaced_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table(**UNMERGED)
    for number in range(7):
        table.append(rows([number]))
    names = [manifest.manifest_path for manifest in manifests(table)]
    table.delete("id = 2")
    table.maintenance.rewrite_manifests()
    gone = table.snapshots()[:-1]
    expected = files_of(table, gone) - files_of(table, table.snapshots()[-1:])
    opened = reads(monkeypatch)
    planned = table.maintenance.expire_snapshots(2**60, dry_run=True)
    monkeypatch.undo()
    assert set(planned.locations().read_all()["location"].to_pylist()) == expected
    assert planned.data_files == 1
    assert len(names) == 7
    assert len(set(names) & set(opened)) == 1
