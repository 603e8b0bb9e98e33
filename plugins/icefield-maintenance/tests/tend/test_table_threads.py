"""Threads with a limit of time give one result for each item."""

from __future__ import annotations

from threading import Event

from icefield_maintenance.tend.table_threads import results_in_time


def test_the_result_of_work_that_ends_at_its_limit_is_kept() -> None:
    ended, asked = Event(), []

    def overdue(item: str) -> str | None:
        asked.append(item)
        ended.set()
        return None

    def work(item: str) -> str:
        assert ended.wait(60)
        return f"result of {item}"

    assert [*results_in_time(["a"], work, 1, 0.01, overdue)] == ["result of a"]
    assert asked[0] == "a"


def test_work_beyond_its_limit_has_one_result_and_its_thread_is_replaced() -> None:
    ended = Event()

    def work(item: str) -> str:
        assert item != "hangs" or ended.wait(60)
        return f"result of {item}"

    def overdue(item: str) -> str | None:
        return "overdue" if item == "hangs" else None

    found = results_in_time(["hangs", "b", "c"], work, 1, 0.01, overdue)
    assert next(found) == "overdue"
    ended.set()
    assert [*found] == ["result of b", "result of c"]
