import functools
import gc
import os
import threading
import time

import pytest
from icefield.base.concurrency import lazy, reset_after_fork


class Value:
    def __init__(self) -> None:
        self.computed = 0

    @lazy
    def number(self) -> int:
        """A number."""
        self.computed += 1
        return self.computed


class Derived(Value):
    @lazy
    def number(self) -> int:
        return super().number + 10


def test_a_lazy_value_is_computed_once_for_each_instance() -> None:
    first, second = Value(), Value()
    assert (first.number, first.number, second.number) == (1, 1, 1)
    assert (first.computed, second.computed) == (1, 1)


def test_a_lazy_value_may_build_on_that_of_its_base_class() -> None:
    value = Derived()
    assert (value.number, value.number) == (11, 11)


def test_a_lazy_value_whose_computation_fails_is_computed_again() -> None:
    answers = [ValueError("not yet"), 3]

    class Failing:
        @lazy
        def number(self) -> int:
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

    value = Failing()
    with pytest.raises(ValueError, match="not yet"):
        _ = value.number
    assert value.number == 3


def test_the_class_shows_the_descriptor_and_its_documentation() -> None:
    assert isinstance(Value.number, lazy)
    assert Value.number.__doc__ == "A number."


def test_a_slow_instance_stalls_no_other() -> None:
    began, release = threading.Event(), threading.Event()

    class Slow:
        def __init__(self, waits: bool) -> None:
            self.waits = waits

        @lazy
        def number(self) -> int:
            if self.waits:
                began.set()
                assert release.wait(30)
            return 1

    sick, healthy = Slow(True), Slow(False)
    thread = threading.Thread(target=lambda: sick.number)
    thread.start()
    found = threading.Thread(target=lambda: healthy.number)
    try:
        assert began.wait(30)
        found.start()
        found.join(10)
        assert not found.is_alive()
    finally:
        release.set()
        thread.join()


class Guarded:
    def __init__(self) -> None:
        self._begin()
        reset_after_fork(self._begin)

    def _begin(self) -> None:
        self.lock = threading.Lock()
        self.kept: list[int] = []


def _in_child(check: object) -> int:
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if check() else 1)  # type: ignore[operator]
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_process_has_new_locks_and_empty_state_and_the_parent_keeps_its_own() -> None:
    guarded = Guarded()
    guarded.kept.append(1)
    with guarded.lock:
        assert _in_child(lambda: guarded.lock.acquire(timeout=5) and not guarded.kept) == 0
    assert guarded.kept == [1]


def test_a_function_is_called_in_a_forked_process() -> None:
    seen: list[int] = []
    reset_after_fork(functools.partial(seen.append, 1))
    assert _in_child(lambda: seen == [1]) == 0
    assert not seen


def test_what_is_reset_may_be_freed() -> None:
    freed = threading.Event()

    class Noted(Guarded):
        def __del__(self) -> None:
            freed.set()

    for _ in range(3):
        Noted()
    gc.collect()
    assert freed.is_set()
    assert _in_child(lambda: True) == 0


def test_a_child_forked_while_objects_are_registered_is_whole() -> None:
    stop = threading.Event()

    def register() -> None:
        while not stop.is_set():
            Guarded()

    thread = threading.Thread(target=register)
    thread.start()
    try:
        began = time.process_time()
        for _ in range(20):
            assert _in_child(lambda: Guarded().lock.acquire(timeout=5)) == 0
        assert time.process_time() - began < 60
    finally:
        stop.set()
        thread.join()
