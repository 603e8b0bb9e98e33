"""Work in the background has a result for its page, also when threads are short."""

from __future__ import annotations

from threading import Thread

import pytest
from icefield_explorer.background import BackgroundResults


def test_work_whose_thread_cannot_start_is_done_for_the_next_page(monkeypatch: pytest.MonkeyPatch) -> None:
    results = BackgroundResults()

    def start(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as exhausted:
        exhausted.setattr(Thread, "start", start)
        with pytest.raises(RuntimeError, match="can't start"):
            results.get("table", "key", lambda: "found", 0.0)
    assert results.get("table", "key", lambda: "found", 60.0) == "found"


def test_a_result_arrives_even_if_the_next_work_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    results, starts = BackgroundResults(), Thread.start

    def start(thread: Thread) -> None:
        if begun:
            raise RuntimeError("can't start new thread")
        begun.append(thread)
        starts(thread)

    begun: list[Thread] = []
    monkeypatch.setattr(Thread, "start", start)

    def first() -> str:
        assert results.get("table", "next", lambda: "later", 0.0) is None  # one table after the other
        return "found"

    assert results.get("table", "key", first, 60.0) == "found"
    monkeypatch.undo()
    assert results.get("table", "next", lambda: "later", 60.0) == "later"
