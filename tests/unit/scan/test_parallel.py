"""Streams read at once and handed out in order."""

import threading
import time

import numpy as np
import pyarrow as pa
import pytest
from icefield.scan import parallel
from icefield.scan.parallel import in_order


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

    assert numbers(in_order(range(items), read, workers)) == list(range(items * 3))
    assert threads() == []


def test_items_are_read_at_once():
    together = threading.Barrier(2, timeout=5)

    def read(item):
        together.wait()
        yield batch(item)

    assert numbers(in_order(range(4), read, 2)) == [0, 1, 2, 3]


def test_items_are_drawn_only_as_far_as_is_read_ahead():
    drawn = []

    def items():
        for number in range(100):
            drawn.append(number)
            yield number

    stream = in_order(items(), lambda item: iter([batch(item)]), 2)
    next(stream)
    assert len(drawn) <= 2 + parallel._STREAMS_AHEAD + 2
    stream.close()
    assert threads() == []


def test_what_is_read_ahead_is_bounded_in_bytes(monkeypatch):
    size = batch(0, 1000).nbytes
    monkeypatch.setattr(parallel, "_AHEAD_BYTES", 10 * size)
    made = []

    def read(item):
        for part in range(50):
            made.append((item, part))
            yield batch(item, 1000)

    stream = in_order(range(6), read, 3)
    consumed = 0
    for _ in stream:
        consumed += 1
        time.sleep(0.001)
        # One batch a worker may be in the making.
        assert len(made) - consumed <= 10 + 3 + 3
    assert consumed == 300


def test_an_error_comes_where_the_items_rows_would_have_and_stops_the_rest():
    started = []

    def read(item):
        started.append(item)
        if item == 2:
            raise KeyError("broken")
        yield batch(item)

    stream = in_order(range(1000), read, 3)
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

    stream = in_order(items(), lambda item: iter([batch(item)]), 2)
    with pytest.raises(OSError, match="manifest"):
        list(stream)
    assert threads() == []


def test_readers_are_closed_when_nobody_wants_their_rows_any_more(monkeypatch):
    monkeypatch.setattr(parallel, "_AHEAD_BYTES", 1)
    opened, closed = set(), set()

    def read(item):
        opened.add(item)
        try:
            for _ in range(1000):
                yield batch(item)
        finally:
            closed.add(item)

    stream = in_order(range(10), read, 3)
    next(stream)
    stream.close()
    assert opened
    assert opened == closed
    assert threads() == []
