"""Results of many items, computed by threads ahead of the consumer and returned in order.

One limit of bytes holds for the results of all items together. The current item may always have two results ready, so
that later items cannot block it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
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
    readers = (chain.from_iterable(map(read, (item,))) for item in chain(first, source))  # none has begun to read
    if len(first) < 2:
        yield from chain.from_iterable(readers)
    else:
        yield from _ReadAhead(workers, size_of, max_bytes).run(readers)


def map_ahead(items: Iterable[T], work: Callable[[T], R], workers: int) -> Iterator[R]:
    """The result of ``work`` for each item, in the order of the items; see ``read_ahead``."""
    return read_ahead(items, lambda item: iter((work(item),)), workers, size_of=lambda _: 0)


class _Results(Generic[R]):
    """The results of one item that are read but not returned yet, and the iterator that reads more."""

    __slots__ = ("end", "paused", "reader", "ready")

    def __init__(self, reader: Iterator[R]) -> None:
        self.reader = reader
        self.ready: deque[tuple[R, int]] = deque()
        self.paused = False
        self.end: BaseException | None = None
        """The error that ended the reading; ``StopIteration`` after the last result."""


class _ReadAhead(Generic[R]):
    def __init__(self, workers: int, size_of: Callable[[R], int], max_bytes: int) -> None:
        self._workers = workers
        self._size_of = size_of
        self._max_bytes = max_bytes
        self._changed = Condition()
        self._begun: deque[_Results[R]] = deque()
        self._held = 0
        self._stopped = False
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="icefield-read")

    def run(self, readers: Iterator[Iterator[R]]) -> Iterator[R]:
        try:
            self._fill(readers)
            while self._begun:
                yield from self._drain(self._begun[0])
                with self._changed:
                    self._begun.popleft()
                    self._resume()
                self._fill(readers)
        finally:
            self._stopped = True
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._begun.clear()  # frees the paused readers, which closes their files

    def _fill(self, readers: Iterator[Iterator[R]]) -> None:
        for reader in islice(readers, self._workers + ITEMS_AHEAD - len(self._begun)):
            results = _Results(reader)
            with self._changed:
                self._begun.append(results)
            self._pool.submit(self._fetch, results)

    def _drain(self, results: _Results[R]) -> Iterator[R]:
        while True:
            with self._changed:
                while not results.ready:
                    if isinstance(results.end, StopIteration):
                        return
                    if results.end is not None:
                        raise results.end
                    self._changed.wait()
                result, size = results.ready.popleft()
                self._held -= size
                self._resume()
            yield result

    def _resume(self) -> None:
        """Continue the paused items for which there is room. The caller holds the lock."""
        for results in self._begun:
            if results.paused and self._has_room(results):
                results.paused = False
                self._pool.submit(self._fetch, results)

    def _fetch(self, results: _Results[R]) -> None:
        """Read an item, and pause without room: a thread that waited for the consumer could outlive the program."""
        try:
            while not self._pauses(results):
                result = next(results.reader)
                size = self._size_of(result)
                with self._changed:
                    results.ready.append((result, size))
                    self._held += size
                    self._changed.notify()
        except BaseException as error:
            with self._changed:
                results.end = StopIteration() if isinstance(error, StopIteration) else error  # without its frames
                self._changed.notify()

    def _pauses(self, results: _Results[R]) -> bool:
        with self._changed:
            results.paused = self._stopped or not self._has_room(results)
            return results.paused

    def _has_room(self, results: _Results[R]) -> bool:
        """Whether more may be held; for the current item, two results in any case."""
        return self._held <= self._max_bytes or (self._begun[0] is results and len(results.ready) < 2)
