"""Threads, caches and lazy values that are safe after ``fork``."""

from icefield.base.concurrency import native_locks as native_locks
from icefield.base.concurrency.forks import reset_after_fork
from icefield.base.concurrency.lazy import lazy
from icefield.base.concurrency.lru_cache import LruCache, ReuseCache
from icefield.base.concurrency.read_ahead import map_ahead, read_ahead
from icefield.base.concurrency.workers import IO_THREADS, MAX_THREADS, processors, worker_count

__all__ = [
    "IO_THREADS",
    "MAX_THREADS",
    "LruCache",
    "ReuseCache",
    "lazy",
    "map_ahead",
    "processors",
    "read_ahead",
    "reset_after_fork",
    "worker_count",
]
