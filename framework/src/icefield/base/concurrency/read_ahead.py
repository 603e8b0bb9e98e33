"""Results of many items, computed by threads ahead of the consumer and returned in order.

One limit of bytes holds for the results of all items together. The current item may always have one result ready, so
that later items cannot block it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import chain, islice
from operator import attrgetter
from threading import Condition
from typing import Final, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

AHEAD_BYTES: Final = 256 << 20
"""The default limit of bytes to hold for the consumer."""

ITEMS_AHEAD: Final = 2
"""The number of extra items to begin, beyond one per worker, so that no worker waits for the consumer."""


def read_ahead(
    items: Iterable[T],
    read: Callable[[T], Iterator[R]],
    workers: int,
    *,
    size_of: Callable[[R], int] = attrgetter("nbytes"),
    max_bytes: int = AHEAD_BYTES,
) -> Iterator[R]:
    """The results of ``read`` for each item, in the order of the items.

    The consumer's thread iterates ``items``. Threads read a few items ahead, up to ``max_bytes`` of results by
    ``size_of``. With one worker, or one item, no thread is started. An error is raised in place of the results of its
    item, and ends the reading. If the iterator is closed early, reading stops, and it waits for running work.
    """
    source = iter(items)
    first = list(islice(source, 2 if workers > 1 else 0))
    if len(first) < 2:
        for item in chain(first, source):
            yield from read(item)
        return
    yield from _ReadAhead(read, workers, size_of, max_bytes).run(chain(first, source))


def map_ahead(items: Iterable[T], work: Callable[[T], R], workers: int) -> Iterator[R]:
    """The result of ``work`` for each item, in the order of the items; see ``read_ahead``."""
    return read_ahead(items, lambda item: iter((work(item),)), workers, size_of=lambda _: 0)


class _Results(Generic[R]):
    """The results of one item that are read but not returned yet."""

    __slots__ = ("done", "error", "ready")

    def __init__(self) -> None:
        self.ready: deque[tuple[R, int]] = deque()
        self.done = False
        self.error: BaseException | None = None


class _ReadAhead(Generic[T, R]):
    def __init__(
        self, read: Callable[[T], Iterator[R]], workers: int, size_of: Callable[[R], int], max_bytes: int
    ) -> None:
        self._read = read
        self._workers = workers
        self._size_of = size_of
        self._max_bytes = max_bytes
        self._changed = Condition()
        self._begun: deque[_Results[R]] = deque()
        self._held = 0
        self._stopped = False

    def run(self, items: Iterator[T]) -> Iterator[R]:
        pool = ThreadPoolExecutor(self._workers, thread_name_prefix="icefield-read")
        try:
            self._fill(items, pool)
            while self._begun:
                yield from self._drain(self._begun[0])
                with self._changed:
                    self._begun.popleft()
                    self._changed.notify_all()
                self._fill(items, pool)
        finally:
            with self._changed:
                self._stopped = True
                self._changed.notify_all()
            pool.shutdown(wait=True, cancel_futures=True)

    def _fill(self, items: Iterator[T], pool: Executor) -> None:
        for item in islice(items, self._workers + ITEMS_AHEAD - len(self._begun)):
            results = _Results[R]()
            with self._changed:
                self._begun.append(results)
            pool.submit(self._fetch, item, results)

    def _drain(self, results: _Results[R]) -> Iterator[R]:
        while True:
            with self._changed:
                while not results.ready and not results.done:
                    self._changed.wait()
                if not results.ready:
                    if results.error is not None:
                        raise results.error
                    return
                result, size = results.ready.popleft()
                self._held -= size
                self._changed.notify_all()
            yield result

    def _fetch(self, item: T, results: _Results[R]) -> None:
        try:
            for result in self._read(item):
                if not self._keep(result, results):
                    return
        except BaseException as error:
            results.error = error
        finally:
            with self._changed:
                results.done = True
                self._changed.notify_all()

    def _keep(self, result: R, results: _Results[R]) -> bool:
        """Store a result as soon as there is room; false if the consumer has stopped."""
        size = self._size_of(result)
        with self._changed:
            while not self._stopped and self._held > self._max_bytes and not self._is_awaited(results):
                self._changed.wait()
            if self._stopped:
                return False
            results.ready.append((result, size))
            self._held += size
            self._changed.notify_all()
            return True

    def _is_awaited(self, results: _Results[R]) -> bool:
        return self._begun[0] is results and not results.ready
