"""Threads that work on tables, with a limit of time for each table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from queue import Empty, SimpleQueue
from threading import Thread, current_thread
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def results_in_time(
    items: Iterable[T], work: Callable[[T], R], threads: int, seconds: float, overdue: Callable[[T], R | None]
) -> Iterator[R]:
    """The results of ``work`` on each item as they come, from ``threads`` threads at a time.

    An item that takes longer than ``seconds`` has the result of ``overdue``. Its thread ends by itself, or with the
    process, and another one takes its place. If ``overdue`` returns None, the work is about to begin or to end, and has
    the time again. An error of ``work`` is raised.
    """
    waiting, ended = iter(items), SimpleQueue[tuple[Thread, R | BaseException]]()
    running: dict[Thread, tuple[T, float]] = {}

    def run(item: T) -> None:
        try:
            ended.put((current_thread(), work(item)))
        except BaseException as error:
            ended.put((current_thread(), error))

    try:
        while True:
            for item in islice(waiting, threads - len(running)):
                started = Thread(target=run, args=(item,), name="icefield-tend", daemon=True)
                started.start()
                running[started] = item, time.monotonic() + seconds
            if not running:
                return
            oldest = next(iter(running))
            try:
                thread, result = ended.get(timeout=max(0.0, running[oldest][1] - time.monotonic()))
            except Empty:
                item, _ = running.pop(oldest)
                late = overdue(item)
                if late is None:
                    running[oldest] = item, time.monotonic() + seconds
                else:
                    yield late
                continue
            if running.pop(thread, None) is None:
                continue  # it was overdue, and has its result
            if isinstance(result, BaseException):
                raise result
            yield result
    except BaseException:  # the work that goes on ends first, unless a second interrupt comes
        for thread, (_, end) in running.items():
            thread.join(max(0.0, end - time.monotonic()))
        raise
