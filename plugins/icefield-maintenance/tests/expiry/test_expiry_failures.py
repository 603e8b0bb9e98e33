"""Expiry that fails or is interrupted deletes nothing that is in use, and the next run finishes it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from expired_tables import ALL, appended
from icefield import MemoryFileSystem
from icefield.errors import CommitStateUnknown, FileMissing, IcefieldError, NoSuchSnapshot, StorageError
from icefield.manifest import clear_caches
from naive_reachability import files_of
from tables import around, ids, manifests, orphans, rows, stored_files


def test_nothing_is_deleted_while_the_outcome_is_unknown() -> None:
    table = appended(3)

    def lost(attempt: int, outcome: Any) -> Any:
        raise CommitStateUnknown("the reply was lost")

    before = stored_files(table)
    with pytest.raises(CommitStateUnknown):
        around(table, after=lost).maintenance.expire_snapshots(ALL)
    assert before <= stored_files(table)
    assert len(table.refresh().snapshots()) == 1
    # It had happened, and the next run finishes it.
    assert table.maintenance.expire_snapshots(ALL).manifest_lists == 2
    assert orphans(table) == set()


def failing(monkeypatch: pytest.MonkeyPatch, fails: Callable[[str], bool], error: IcefieldError) -> None:
    inner = MemoryFileSystem.delete_many

    def failing(self: MemoryFileSystem, locations: Any) -> None:
        doomed = list(locations)
        if any(map(fails, doomed)):
            raise error
        inner(self, doomed)

    monkeypatch.setattr(MemoryFileSystem, "delete_many", failing)


def test_the_next_run_deletes_what_the_store_did_not(monkeypatch: pytest.MonkeyPatch) -> None:
    table = appended(3)
    table.overwrite(rows([9]))
    with monkeypatch.context() as patched:
        failing(patched, lambda name: "/data/" in name, StorageError("the store is down", retryable=True))
        done = table.maintenance.expire_snapshots(ALL)
    assert done.undeleted == done.files == 9
    table.append(rows([10]))
    assert table.maintenance.expire_snapshots(ALL).files == 10
    assert orphans(table) == set()
    assert ids(table) == [9, 10]
    assert table.maintenance.expire_snapshots(ALL).files == 0


def interrupting(patched: pytest.MonkeyPatch, most: int) -> None:
    """Ctrl-C once so many files have been deleted, one by one."""
    inner, left = MemoryFileSystem.delete_many, [most]

    def interrupted(self: MemoryFileSystem, locations: Any) -> None:
        for location in locations:
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            inner(self, [location])

    patched.setattr(MemoryFileSystem, "delete_many", interrupted)


@pytest.mark.slow
def test_two_runs_that_were_interrupted_are_finished_by_the_third() -> None:
    """The first deletes nothing, the second some of the files of both."""
    for number in itertools.count():
        table, ended = appended(2), True
        table.overwrite(rows([9]))
        with pytest.MonkeyPatch.context() as patched:
            interrupting(patched, 0)
            with pytest.raises(KeyboardInterrupt):
                table.maintenance.expire_snapshots(ALL)
        table.refresh().overwrite(rows([10]))
        with pytest.MonkeyPatch.context() as patched:
            interrupting(patched, number)
            try:
                table.maintenance.expire_snapshots(ALL)
            except KeyboardInterrupt:
                ended = False
        table.refresh().maintenance.expire_snapshots(ALL)
        assert orphans(table) == set(), number
        assert ids(table) == [10]
        if ended:
            break
    assert number > 8


def test_one_file_that_cannot_be_deleted_does_not_hold_up_others_of_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    table = appended(3)
    table.overwrite(rows([9]))
    stuck = min(
        name
        for name in stored_files(table)
        if "/data/" in name and name not in files_of(table, [table.current_snapshot()])
    )
    with monkeypatch.context() as patched:
        failing(patched, lambda name: name == stuck, StorageError("it is locked"))
        done = table.maintenance.expire_snapshots(ALL)
    assert (done.data_files, done.undeleted) == (3, 1 + done.manifests + done.manifest_lists)
    assert [name for name in stored_files(table) if "/data/" in name].count(stuck) == 1
    table.maintenance.expire_snapshots(ALL)
    assert orphans(table) == set()


def test_no_file_is_deleted_where_a_kept_snapshot_cannot_be_read() -> None:
    table = appended(3)
    table.overwrite(rows([9]))
    gone = next(each.manifest_path for each in manifests(table) if each.added_files_count)
    kept = MemoryFileSystem.files.pop(gone)
    clear_caches()
    before = stored_files(table)
    with pytest.raises(FileMissing) as caught:
        table.maintenance.expire_snapshots(ALL)
    assert "no file was deleted" in " ".join(caught.value.__notes__)
    assert before < stored_files(table)
    MemoryFileSystem.files[gone] = kept
    assert table.refresh().maintenance.expire_snapshots(ALL).data_files == 3
    assert orphans(table) == set()


def test_what_cannot_be_read_of_an_expired_snapshot_holds_up_nothing(caplog: pytest.LogCaptureFixture) -> None:
    table = appended(4)
    table.overwrite(rows([9]))
    snapshots = table.snapshots()
    MemoryFileSystem.files[snapshots[0].manifest_list] = b"damaged", 0
    del MemoryFileSystem.files[manifests(table, snapshots[2])[0].manifest_path]
    clear_caches()
    done = table.maintenance.expire_snapshots(ALL)
    assert done.data_files == 3
    assert ids(table) == [9]
    assert "cannot list the files of" in caplog.text


def test_an_interrupted_run_by_id_is_finished_under_the_same_id(monkeypatch: pytest.MonkeyPatch) -> None:
    table = appended(3)
    first = table.snapshots()[0].snapshot_id
    with monkeypatch.context() as patched:
        failing(patched, lambda name: True, StorageError("the store is down", retryable=True))
        table.maintenance.expire_snapshots(snapshot_ids=[first])
    assert table.maintenance.expire_snapshots(snapshot_ids=[first]).manifest_lists == 1
    assert orphans(table) == set()
    with pytest.raises(NoSuchSnapshot, match=f"no snapshot {first}"):
        table.maintenance.expire_snapshots(snapshot_ids=[first])


@pytest.mark.parametrize("since", [None, 1, 4, 10, 14])
def test_expiry_reads_few_earlier_versions(since: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest of sixteen, which shows whether a snapshot has expired since, and then a search for that expiry."""
    table = appended(20)
    if since is not None:
        table.maintenance.expire_snapshots(ALL)
        for _ in range(since):
            table.append(rows([7]))
    read: list[str] = []
    inner = MemoryFileSystem.open_input

    def noted(self: MemoryFileSystem, location: str) -> Any:
        if location.endswith(".metadata.json"):
            read.append(location)
        return inner(self, location)

    monkeypatch.setattr(MemoryFileSystem, "open_input", noted)
    before = table.metadata_location
    assert table.maintenance.expire_snapshots(ALL).manifest_lists == (since or 19)
    assert len({*read} - {before, table.metadata_location}) <= (1 if since is None else 6)
    assert orphans(table) == set()


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("commits", [1, 4, 8])
def test_two_interrupted_expiries_are_finished_some_commits_later(
    version: str, commits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = appended(3, **{"format-version": version})
    table.overwrite(rows([9]))
    for each in range(2):
        with monkeypatch.context() as patched:
            failing(patched, lambda name: True, StorageError("the store is down", retryable=True))
            table.maintenance.expire_snapshots(ALL)
        for number in range(commits // (1 + each)):
            table.append(rows([number]))
    table.maintenance.expire_snapshots(ALL)
    assert orphans(table) == set()
