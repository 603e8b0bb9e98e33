"""Locks of the C++ library that Arrow reads shared pointers under, freed in a forked process.

Arrow's arrays take one of 16 locks of ``libstdc++`` whenever a child array is asked for. That library does nothing for
forks: if another thread of the parent holds a lock at that moment, the child waits for it for ever. The child has one
thread, which holds none, so it releases all of them. The C libraries of Linux let a free lock be released. Holding the
locks during the fork instead would stop other threads that ask for one while they hold Python's own lock.
"""

from __future__ import annotations

import ctypes
import os

_LOCKS = 16


def free_native_locks() -> None:
    """Release all locks. Without these functions, as on macOS, nothing happens. Only for a process with one thread."""
    try:
        release = ctypes.PyDLL("libstdc++.so.6")._ZNSt10_Sp_lockerD1Ev
    except (OSError, AttributeError):
        return
    for number in range(_LOCKS):
        release((ctypes.c_ubyte * 2)(number, number))  # a locker of C++: the numbers of its two locks


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=free_native_locks)  # noqa: TID251
