"""Appends of threads that share commits: own results and own errors, and nothing lost or twice."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.catalog import Table
from icefield.errors import CommitFailed, CommitStateUnknown, IcefieldError, InvalidArgument, NoSuchSnapshot
from icefield.transaction import AppendFiles, AppendQueue, WriteResult
from tables import Around, again, around, ids, new_table, orphans, rows, strategy_of


def waiting(queue: AppendQueue, count: int) -> None:
    """Wait until so many appends are in the queue."""
    for _ in range(3_000):
        if len(queue._waiting) == count:
            return
        time.sleep(0.01)
    raise AssertionError(f"{len(queue._waiting)} appends wait, not {count}")


def grouped(
    table: Table, frames: list[Any], *, before: Callable[[int], Any] = lambda attempt: None
) -> tuple[Table, list[Future[WriteResult]]]:
    """Append rows with id 0, and meanwhile the frames, which wait and share the next commit."""
    release = threading.Event()

    def held(attempt: int) -> None:
        if attempt == 1:
            assert release.wait(60)
        before(attempt)

    holder = around(table, before=held)
    queue = holder.append_queue()
    with ThreadPoolExecutor(len(frames) + 1) as pool:
        first = pool.submit(queue.append, rows([0]))
        while not strategy_of(holder).proposed:
            time.sleep(0.01)
        others = [pool.submit(queue.append, frame) for frame in frames]
        waiting(queue, sum(hasattr(frame, "schema") for frame in frames))
        release.set()
        first.result()
    return holder, others


def test_appends_that_wait_share_one_commit_and_have_results_of_their_own():
    table = new_table()
    _, made = grouped(table, [rows([1]), rows([2, 3]), rows([4, 5, 6])])
    results = [each.result() for each in made]
    assert [result.rows_inserted for result in results] == [1, 2, 3]
    assert [result.files_added for result in results] == [1, 1, 1]
    table.refresh()
    assert {result.snapshot_id for result in results} == {table.current_snapshot().snapshot_id}
    assert len(table.snapshots()) == 2
    assert ids(table) == [0, 1, 2, 3, 4, 5, 6]
    assert orphans(table) == set()


def test_rows_that_do_not_fit_fail_their_own_append_only():
    table = new_table()
    _, made = grouped(table, [rows([1]), {"nothing": ["x"]}, rows([2])])
    with pytest.raises(InvalidArgument, match="nothing"):
        made[1].result()
    assert [made[0].result().rows_inserted, made[2].result().rows_inserted] == [1, 1]
    assert ids(table.refresh()) == [0, 1, 2]
    assert orphans(table) == set()


def test_a_commit_that_is_refused_is_made_again_for_each_append_alone():
    table = new_table()

    def refuse(attempt: int) -> None:
        if attempt in (2, 4):  # the shared commit, and then that of the second append
            raise InvalidArgument("refused")

    _, made = grouped(table, [rows([1]), rows([2]), rows([3])], before=refuse)
    errors = [each.exception() for each in made]
    assert sorted(error is None for error in errors) == [False, True, True]
    assert isinstance(next(filter(None, errors)), InvalidArgument)
    kept = [number for number, error in enumerate(errors, 1) if error is None]
    assert ids(table.refresh()) == [0, *kept]
    assert orphans(table) == set()


def test_appends_that_lose_to_other_commits_all_fail_and_leave_no_file():
    table = new_table(**{"commit.retry.num-retries": "0"})
    other = again(table)

    def overtake(attempt: int) -> None:
        if attempt == 2:
            other.refresh().append(rows([9]))

    _, made = grouped(table, [rows([1]), rows([2])], before=overtake)
    assert [type(each.exception()) for each in made] == [CommitFailed, CommitFailed]
    assert ids(table.refresh()) == [0, 9]
    assert orphans(table) == set()


def test_a_lost_reply_is_unknown_to_all_appends_of_the_commit_and_their_files_stay(monkeypatch: pytest.MonkeyPatch):
    table = new_table(**{"commit.status-check.num-retries": "0"})

    def lose(self: Around, base: Any, proposal: Any) -> Any:
        outcome = commit(self, base, proposal)
        if len(self.proposed) == 2:
            monkeypatch.setattr(Around, "load", down)
            raise CommitStateUnknown("no reply")
        return outcome

    def down(self: Around) -> Any:
        raise OSError("down")

    commit = Around.commit
    monkeypatch.setattr(Around, "commit", lose)
    _, made = grouped(table, [rows([1]), rows([2])])
    assert [type(each.exception()) for each in made] == [CommitStateUnknown, CommitStateUnknown]
    assert ids(table.refresh()) == [0, 1, 2]
    assert orphans(table) == set()


class Stopped(BaseException):
    """An interrupt."""


def test_an_interrupt_before_a_commit_fails_the_append_of_its_own_thread_only(monkeypatch: pytest.MonkeyPatch):
    table = new_table()
    heads: list[Any] = []

    def stop(self: AppendFiles, head: Any, context: Any) -> Any:
        heads.append(head)
        if len(heads) == 2:
            raise Stopped
        return find(self, head, context)

    find = AppendFiles.find
    monkeypatch.setattr(AppendFiles, "find", stop)
    _, made = grouped(table, [rows([1]), rows([2]), rows([3])])
    stopped = [isinstance(each.exception(), Stopped) for each in made]
    assert sorted(stopped) == [False, False, True]
    assert ids(table.refresh()) == [0, *(number for number, was in enumerate(stopped, 1) if not was)]
    assert orphans(table) == set()


def test_after_an_interrupt_in_a_commit_its_appends_are_unknown_and_their_files_stay(monkeypatch: pytest.MonkeyPatch):
    table = new_table()

    def stop(self: Around, base: Any, proposal: Any) -> Any:
        outcome = commit(self, base, proposal)
        if len(self.proposed) == 2:
            raise Stopped
        return outcome

    commit = Around.commit
    monkeypatch.setattr(Around, "commit", stop)
    _, made = grouped(table, [rows([1]), rows([2])])
    assert {type(each.exception()) for each in made} == {Stopped, CommitStateUnknown}
    assert ids(table.refresh()) == [0, 1, 2]
    assert orphans(table) == set()


def test_a_delay_lets_appends_gather():
    table = new_table()
    queue = table.append_queue(max_delay=0.5)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: queue.append(rows([number])), range(4)))
    assert ids(table.refresh()) == [0, 1, 2, 3]
    assert len(table.snapshots()) < 4


def test_a_queue_appends_to_its_branch_with_its_properties_and_the_table_stays_until_it_is_refreshed():
    table = new_table()
    table.append(rows([1]))
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "b").commit()
    queue = table.append_queue(branch="b", snapshot_properties={"who": "me"})
    queue.append(rows([2]))
    assert len(table.snapshots()) == 1
    table.refresh()
    assert (ids(table), ids(table, snapshot_id=table.refs()["b"].snapshot_id)) == ([1], [1, 2])
    assert table.snapshot_by_name("b").summary["who"] == "me"
    with pytest.raises(NoSuchSnapshot):
        table.append_queue(branch="missing").append(rows([3]))


def test_no_rows_make_no_snapshot():
    table = new_table()
    assert table.append_queue().append(rows([])) == WriteResult()
    assert table.refresh().snapshots() == []


@pytest.mark.parametrize("delay", [-1, float("nan"), 10**9, "1"])
def test_a_delay_that_is_no_number_of_seconds_is_refused(delay: Any):
    with pytest.raises(InvalidArgument, match="max_delay"):
        new_table().append_queue(max_delay=delay)


def test_a_queue_follows_a_schema_that_another_writer_changed():
    table = new_table()
    queue = table.append_queue()
    queue.append(rows([1]))
    with again(table).refresh().update_schema() as update:
        update.add_column("more", "long")
    queue.append(rows([2]))
    queue.append({"id": [3], "kind": ["a"], "value": [1.0], "more": [7]})
    assert ids(table.refresh()) == [1, 2, 3]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_that_is_forked_during_a_commit_has_an_empty_queue():
    table = new_table()
    queue = table.append_queue()
    with queue._turn:
        queue._waiting.append(None)  # type: ignore[arg-type]
        child = os.fork()
        if child == 0:
            os._exit(0 if not queue._waiting and queue._turn.acquire(timeout=1) else 1)
        queue._waiting.clear()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.integers(-1, 3), max_size=4), min_size=1, max_size=4))
def test_a_table_holds_every_acknowledged_append_once_and_no_other(threads: list[list[int]]):
    """Each thread appends so many rows at a time; -1 stands for rows that do not fit."""
    table = new_table()
    queue = table.append_queue()
    acknowledged: list[int] = []

    def work(number: int) -> None:
        for step, count in enumerate(threads[number]):
            first = 1_000 * number + 10 * step
            if count < 0:
                with pytest.raises(IcefieldError):
                    queue.append({"nothing": [1]})
                continue
            result = queue.append(rows(range(first, first + count)))
            assert result.rows_inserted == count
            assert (result.snapshot_id is None) == (count == 0)
            acknowledged.extend(range(first, first + count))

    with ThreadPoolExecutor(len(threads)) as pool:
        list(pool.map(work, range(len(threads))))
    table.refresh()
    assert ids(table) == sorted(acknowledged)
    assert len(table.snapshots()) <= sum(count > 0 for steps in threads for count in steps)
    assert orphans(table) == set()


def test_appends_whose_commit_may_be_visible_are_not_made_again_and_their_files_stay(monkeypatch: pytest.MonkeyPatch):
    """A strategy breaks its contract: it commits and says that it refused, and then the table cannot be loaded."""
    table = new_table()

    def refuse(self: Around, base: Any, proposal: Any) -> Any:
        outcome = commit(self, base, proposal)
        if len(self.proposed) == 2:
            monkeypatch.setattr(Around, "load", down)
            raise InvalidArgument("refused")
        return outcome

    def down(self: Around) -> Any:
        raise OSError("down")

    commit = Around.commit
    monkeypatch.setattr(Around, "commit", refuse)
    _, made = grouped(table, [rows([1]), rows([2])])
    assert [type(each.exception()) for each in made] == [InvalidArgument, InvalidArgument]
    assert ids(table.refresh()) == [0, 1, 2]
    assert orphans(table) == set()


def test_an_interrupt_between_commits_of_single_appends_fails_the_append_of_its_own_thread_only(
    monkeypatch: pytest.MonkeyPatch,
):
    table = new_table()
    heads: list[Any] = []

    def stop(self: AppendFiles, head: Any, context: Any) -> Any:
        heads.append(head)
        if len(heads) == 2:
            raise InvalidArgument("refused")
        if len(heads) == 3:
            raise Stopped
        return find(self, head, context)

    find = AppendFiles.find
    monkeypatch.setattr(AppendFiles, "find", stop)
    _, made = grouped(table, [rows([1]), rows([2]), rows([3])])
    stopped = [isinstance(each.exception(), Stopped) for each in made]
    assert sorted(stopped) == [False, False, True]
    assert all(each.exception() is None for each, was in zip(made, stopped, strict=True) if not was)
    assert ids(table.refresh()) == [0, *(number for number, was in enumerate(stopped, 1) if not was)]
    assert orphans(table) == set()


def test_an_error_of_all_appends_is_an_object_of_its_own_for_each():
    table = new_table(**{"commit.retry.num-retries": "0"})
    other = again(table)

    def overtake(attempt: int) -> None:
        if attempt == 2:
            other.refresh().append(rows([9]))

    _, made = grouped(table, [rows([1]), rows([2]), rows([3])], before=overtake)
    errors = [each.exception() for each in made]
    assert len({id(error) for error in errors}) == 3
    assert len({str(error) for error in errors}) == 1
    assert {error.attempts for error in errors if isinstance(error, CommitFailed)} == {1}
