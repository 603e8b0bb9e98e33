"""A process that forks while a thread holds a lock of Arrow's C++ library."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time

import pyarrow as pa
import pytest
from icefield.base import concurrency


def test_a_child_reads_arrays_though_a_thread_of_the_parent_read_one_at_that_moment() -> None:
    try:
        library = ctypes.PyDLL("libstdc++.so.6")
        take, release = library._ZNSt10_Sp_lockerC1EPKv, library._ZNSt10_Sp_lockerD1Ev
    except (OSError, AttributeError):
        pytest.skip("this C++ library has no such locks")
    assert concurrency.native_locks
    rows = pa.array([{"a": 1}])
    reading, forked = threading.Event(), threading.Event()

    def read_slowly() -> None:
        held: dict[int, ctypes.Array[ctypes.c_ubyte]] = {}
        for address in range(0, 1 << 14, 64):
            number = numbers[address]
            if number not in held:
                held[number] = (ctypes.c_ubyte * 2)()
                take(held[number], ctypes.c_void_p(address))
        reading.set()
        forked.wait(30)
        for locker in held.values():
            release(locker)

    numbers = {}
    for address in range(0, 1 << 14, 64):
        locker = (ctypes.c_ubyte * 2)()
        take(locker, ctypes.c_void_p(address))
        release(locker)
        numbers[address] = locker[0]
    assert set(numbers.values()) == set(range(16))
    thread = threading.Thread(target=read_slowly)
    thread.start()
    reading.wait()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(10)  # ends a child that hangs
        rows.field(0)
        os._exit(0)
    time.sleep(0.01)
    forked.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert rows.field(0).to_pylist() == [1]
