"""Threads, caches and lazy values that are safe after ``fork``."""

from icefield.base.concurrency import native_locks as native_locks
from icefield.base.concurrency.forks import reset_after_fork as reset_after_fork
from icefield.base.concurrency.lazy import lazy as lazy
from icefield.base.concurrency.lru_cache import LruCache as LruCache
from icefield.base.concurrency.lru_cache import ReuseCache as ReuseCache
from icefield.base.concurrency.read_ahead import map_ahead as map_ahead
from icefield.base.concurrency.read_ahead import read_ahead as read_ahead
from icefield.base.concurrency.workers import IO_THREADS as IO_THREADS
from icefield.base.concurrency.workers import MAX_THREADS as MAX_THREADS
from icefield.base.concurrency.workers import processors as processors
from icefield.base.concurrency.workers import worker_count as worker_count
