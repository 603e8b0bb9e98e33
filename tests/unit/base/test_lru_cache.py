"""A cache that is bounded by the size of its values."""

import os
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.base.concurrency import LruCache, ReuseCache


def test_the_values_used_last_stay_within_the_capacity():
    cache: LruCache[str, bytes] = LruCache(10, len)
    cache.put("a", b"1234")
    cache.put("b", b"1234")
    assert cache.get("a") == b"1234"
    cache.put("c", b"1234")
    assert (cache.get("b"), cache.get("a"), cache.size, len(cache)) == (None, b"1234", 8, 2)


def test_a_value_beyond_the_capacity_is_not_kept_and_replaces_the_one_before():
    cache: LruCache[str, bytes] = LruCache(10, len)
    cache.put("a", b"1234")
    cache.put("a", b"x" * 11)
    assert (cache.get("a"), cache.size, len(cache)) == (None, 0, 0)
    assert cache.get_or_make("a", lambda: b"x" * 11) == b"x" * 11
    assert (cache.size, len(cache)) == (0, 0)


def test_many_values_are_looked_up_at_once_without_a_use():
    cache: LruCache[str, int] = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get_many(["a", "missing", "b", "a"]) == {"a": 1, "b": 2}
    cache.put("c", 3)
    assert ("a" in cache, "b" in cache) == (False, True)


def test_without_sizes_each_value_counts_as_one():
    cache: LruCache[int, str] = LruCache(2)
    for number in range(5):
        cache.put(number, "x")
    assert (len(cache), 3 in cache, 4 in cache, 2 in cache) == (2, True, True, False)
    assert (cache.pop(4), cache.pop(4), len(cache)) == ("x", None, 1)


def test_a_smaller_capacity_drops_values_at_once_and_none_keeps_nothing():
    cache: LruCache[int, str] = LruCache(5)
    for number in range(5):
        cache.put(number, "x")
    cache.resize(2)
    assert (len(cache), cache.size, cache.capacity) == (2, 2, 2)
    cache.resize(0)
    cache.put(9, "x")
    assert len(cache) == 0


def test_a_value_is_made_once_for_all_threads_that_want_it():
    cache: LruCache[str, int] = LruCache(10)
    release, made = threading.Event(), []
    began = threading.Event()

    def make() -> int:
        began.set()
        assert release.wait(30)
        made.append(1)
        return len(made)

    found: list[int] = []
    workers = [threading.Thread(target=lambda: found.append(cache.get_or_make("a", make))) for _ in range(8)]
    for worker in workers:
        worker.start()
    assert began.wait(30)
    assert cache.get_or_make("b", lambda: 7) == 7  # nobody waits for the value of another key
    release.set()
    for worker in workers:
        worker.join()
    assert (found, made) == ([1] * 8, [1])


def test_an_error_is_raised_and_not_kept():
    cache: LruCache[str, int] = LruCache(10)

    def fail() -> int:
        raise OSError("not now")

    for _ in range(2):
        with pytest.raises(OSError, match="not now"):
            cache.get_or_make("a", fail)
    assert cache.get_or_make("a", lambda: 3) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_begins_empty_though_a_thread_was_making_a_value():
    cache: LruCache[str, int] = LruCache(10)
    cache.put("kept", 1)
    began, release = threading.Event(), threading.Event()

    def make() -> int:
        began.set()
        assert release.wait(30)
        return 1

    thread = threading.Thread(target=lambda: cache.get_or_make("a", make))
    thread.start()
    try:
        assert began.wait(30)
        child = os.fork()
        if child == 0:
            is_new = len(cache) == 0 and cache.size == 0
            os._exit(0 if is_new and cache.get_or_make("a", lambda: 2) == 2 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert cache.get("kept") == 1
    finally:
        release.set()
        thread.join()


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 40)), max_size=60))
@settings(max_examples=200)
def test_a_reuse_cache_stays_within_its_capacity_and_answers_with_the_last_value(
    steps: list[tuple[int, int]],
) -> None:
    cache: ReuseCache[int, int] = ReuseCache(100, int)
    model: dict[int, int] = {}
    for key, value in steps:
        if cache.put(key, value):
            model[key] = value
        assert cache.size == sum(cache.get(each) or 0 for each in range(10)) <= 100
        assert all(cache.get(each) in (None, model.get(each)) for each in range(10))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 140)), max_size=60))
@settings(max_examples=200)
def test_a_value_without_room_in_a_reuse_cache_displaces_nothing(steps: list[tuple[int, int]]) -> None:
    cache: ReuseCache[int, int] = ReuseCache(100, int)
    for key, value in steps:
        before = {each for each in range(10) if each in cache}
        if not cache.put(key, value):
            assert {each for each in range(10) if each in cache} == before
