"""A call that is given up leaves no thread behind once it returns."""

from __future__ import annotations

import threading
from queue import SimpleQueue

import pytest
from icefield_hdfs.time_limits import CallTimeout, within


def test_the_thread_of_a_call_that_was_given_up_ends_with_the_call() -> None:
    found, returns = SimpleQueue[threading.Thread](), threading.Event()

    def call() -> None:
        found.put(threading.current_thread())
        assert returns.wait(60)

    with pytest.raises(CallTimeout):
        within(0.01, call)
    thread = found.get(timeout=60)
    returns.set()
    thread.join(60)
    assert not thread.is_alive()


def test_a_call_after_one_that_was_given_up_has_another_thread() -> None:
    returns = threading.Event()
    with pytest.raises(CallTimeout):
        within(0.01, lambda: returns.wait(60))
    assert within(60, lambda: "answer") == "answer"
    returns.set()
