"""Streams that are read in parallel and returned in order."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pytest
from icefield.base.concurrency import map_ahead, read_ahead


def batch(number, rows=1):
    return pa.RecordBatch.from_arrays([pa.array(np.full(rows, number, np.int64))], names=["n"])


def numbers(batches):
    return [each["n"][0].as_py() for each in batches]


def threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("icefield-read")]


@pytest.mark.parametrize("workers", [1, 2, 7])
@pytest.mark.parametrize("items", [0, 1, 2, 30])
def test_the_order_is_that_of_the_items_however_long_each_takes(workers, items):
    def read(item):
        time.sleep(0.002 * (items - item) / max(1, items))
        for part in range(3):
            yield batch(item * 3 + part)

    assert numbers(read_ahead(range(items), read, workers)) == list(range(items * 3))
    assert threads() == []


def test_items_are_read_at_once():
    together = threading.Barrier(2, timeout=5)

    def read(item):
        together.wait()
        yield batch(item)

    assert numbers(read_ahead(range(4), read, 2)) == [0, 1, 2, 3]


def test_items_are_drawn_only_as_far_as_is_read_ahead():
    drawn = []

    def items():
        for number in range(100):
            drawn.append(number)
            yield number

    stream = read_ahead(items(), lambda item: iter([batch(item)]), 2)
    next(stream)
    assert len(drawn) <= 2 + 2 + 2
    stream.close()
    assert threads() == []


def test_what_is_read_ahead_is_bounded_in_bytes():
    size = batch(0, 1000).nbytes
    made = []

    def read(item):
        for part in range(50):
            made.append((item, part))
            yield batch(item, 1000)

    stream = read_ahead(range(6), read, 3, max_bytes=10 * size)
    consumed = 0
    for _ in stream:
        consumed += 1
        time.sleep(0.001)
        # Each worker may be producing one more batch.
        assert len(made) - consumed <= 10 + 3 + 3
    assert consumed == 300


def test_an_error_comes_where_the_items_rows_would_have_and_stops_the_rest():
    started = []

    def read(item):
        started.append(item)
        if item == 2:
            raise KeyError("broken")
        yield batch(item)

    stream = read_ahead(range(1000), read, 3)
    assert numbers([next(stream), next(stream)]) == [0, 1]
    with pytest.raises(KeyError, match="broken"):
        next(stream)
    assert len(started) < 20
    assert threads() == []


def test_an_error_of_the_plan_comes_through():
    def items():
        yield 0
        yield 1
        yield 2
        raise OSError("the manifest is gone")

    stream = read_ahead(items(), lambda item: iter([batch(item)]), 2)
    with pytest.raises(OSError, match="manifest"):
        list(stream)
    assert threads() == []


def test_readers_are_closed_when_nobody_wants_their_rows_any_more():
    opened, closed = set(), set()

    def read(item):
        opened.add(item)
        try:
            for _ in range(1000):
                yield batch(item)
        finally:
            closed.add(item)

    stream = read_ahead(range(10), read, 3, max_bytes=1)
    next(stream)
    stream.close()
    assert opened
    assert opened == closed
    assert threads() == []


def test_a_result_for_each_item_comes_in_the_order_of_the_items():
    def work(item):
        time.sleep(0.002 * (10 - item))
        return item * item

    assert list(map_ahead(range(10), work, 4)) == [item * item for item in range(10)]
    assert threads() == []


def test_none_is_an_item_and_a_result():
    assert list(map_ahead([None, None, 1], lambda item: item, 2)) == [None, None, 1]


def test_one_item_is_worked_on_by_the_calling_thread():
    assert list(map_ahead([1], lambda _: threading.current_thread(), 8)) == [threading.current_thread()]


def test_a_slow_operation_delays_no_other():
    release, began = threading.Event(), threading.Event()

    def wait(item):
        began.set()
        assert release.wait(30)
        return item

    slow = threading.Thread(target=lambda: list(map_ahead(range(20), wait, 2)))
    slow.start()
    try:
        assert began.wait(30)
        assert list(map_ahead(range(20), lambda item: item, 2)) == list(range(20))
    finally:
        release.set()
        slow.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_process_forked_while_a_thread_reads_ahead_reads_ahead_itself():
    release, began = threading.Event(), threading.Event()

    def wait(item):
        began.set()
        assert release.wait(30)
        return item

    reading = threading.Thread(target=lambda: list(map_ahead(range(20), wait, 2)))
    reading.start()
    try:
        assert began.wait(30)
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(0 if list(map_ahead(range(20), lambda item: item, 2)) == list(range(20)) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        release.set()
        reading.join()


def test_a_program_ends_while_a_stream_is_left_in_the_middle():
    """If this fails, a thread waits for a consumer that takes nothing more, and the interpreter for the thread."""
    program = """
from icefield.base.concurrency import read_ahead
stream = read_ahead(range(8), lambda item: iter(range(1000)), 2, size_of=lambda _: 1, max_bytes=0)
print(next(stream))
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=True)
    assert ended.stdout.strip() == b"0"
