"""A process that forks while a thread holds a lock of Arrow's C++ library."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time

import pyarrow as pa
import pytest
from icefield.base.concurrency import native_locks


def test_a_child_reads_arrays_though_a_thread_of_the_parent_read_one_at_that_moment() -> None:
    take, release, addresses = native_locks._locks()
    if take is None:
        pytest.skip("this C++ library has no such locks")
    assert len(addresses) == 16
    rows = pa.array([{"a": 1}])
    reading = threading.Event()

    def read_slowly() -> None:
        held = [(ctypes.c_ubyte * 2)() for _ in addresses]
        for lock, address in zip(held, addresses.values(), strict=True):
            take(lock, ctypes.c_void_p(address))
        reading.set()
        time.sleep(0.3)
        for lock in held:
            release(lock)

    thread = threading.Thread(target=read_slowly)
    thread.start()
    reading.wait()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(10)  # ends a child that hangs
        rows.field(0)
        os._exit(0)
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert rows.field(0).to_pylist() == [1]
