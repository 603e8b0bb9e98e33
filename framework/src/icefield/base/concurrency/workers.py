"""The number of threads that read and write files in parallel."""

from __future__ import annotations

import os
from typing import Final

IO_THREADS: Final = "io.threads"
"""Property of a catalog: the number of threads. Without it the number of processors decides."""

MAX_THREADS: Final = 256
"""The largest value of ``io.threads``: a service may state it."""

_MAX_COMPUTING: Final = 8
_MIN_WAITING: Final = 8
_MAX_WAITING: Final = 16


def processors() -> int:
    """The processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def worker_count(threads: int | None, *, waiting: bool = False) -> int:
    """The number of threads for one operation: ``threads``, the value of ``io.threads``, if it is set.

    The default is one thread per processor, at most 8. For threads that mostly wait for storage (``waiting``) it is two
    per processor, between 8 and 16.
    """
    if threads is not None:
        return threads
    if waiting:
        return min(_MAX_WAITING, max(_MIN_WAITING, 2 * processors()))
    return min(_MAX_COMPUTING, processors())
