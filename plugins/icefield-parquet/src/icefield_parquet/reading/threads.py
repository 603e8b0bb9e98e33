"""The thread pool that finishes columns, shared by all readers of a process.

A thread that ends leaves memory behind that the next threads do not reuse, so these threads stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache
from typing import Any, Final, TypeVar

import pyarrow as pa
from icefield.toolkit import reset_after_fork

_MOST: Final = 8

_Result = TypeVar("_Result")


def thread_count() -> int:
    """How many columns are finished at once: as many as pyarrow decodes, at most eight."""
    return max(1, min(_MOST, int(pa.cpu_count())))


@cache
def threads() -> ThreadPoolExecutor:
    """The threads of this process, which start when there is work for them."""
    return ThreadPoolExecutor(thread_count(), thread_name_prefix="icefield-parquet")


def divided(work: Callable[..., _Result], tasks: Iterable[tuple[Any, ...]]) -> list[_Result]:
    """Return the results of ``work`` for each task. No task is still running when this returns or raises."""
    left = list(tasks)
    started: list[Future[_Result]] = []
    try:
        with suppress(RuntimeError):  # an interpreter that ends starts nothing while something still runs
            while left:
                started.append(threads().submit(work, *left[0]))
                del left[0]
        done = [work(*task) for task in left]
        return [each.result() for each in started] + done
    finally:
        for each in started:
            each.cancel()
        wait(started)


reset_after_fork(threads.cache_clear)
