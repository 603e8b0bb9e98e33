"""Several streams of batches read at once by threads, handed out one after the other.

A bound of bytes read ahead holds for all of them together. The stream that is being handed out may always have one
batch ready, so that the streams after it cannot hold it up.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from threading import Condition
from typing import Generic, TypeVar

import pyarrow as pa

T = TypeVar("T")

_MAX_WORKERS = 8
_AHEAD_BYTES = 256 << 20
_STREAMS_AHEAD = 2
"""Streams begun beyond one a worker, so that no worker waits for the consumer to draw the next task."""


def default_workers() -> int:
    """Threads that read at once when nothing else is asked for: one a processor, at most eight."""
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return min(_MAX_WORKERS, count)


def in_order(
    items: Iterable[T], read: Callable[[T], Iterator[pa.RecordBatch]], workers: int | None = None
) -> Iterator[pa.RecordBatch]:
    """What ``read`` gives for each item, in the order of the items; ``items`` is drawn from as far as is read ahead.

    With one worker, or one item, no thread is started. When the iterator is closed early, reading stops.
    """
    workers = default_workers() if workers is None else max(1, workers)
    source = iter(items)
    if workers == 1:
        yield from _one_by_one(source, read)
        return
    first = list(_take(source, 2))
    if len(first) < 2:
        yield from _one_by_one(iter(first), read)
        return
    yield from _Ahead(read, workers).run(_chained(first, source))


def _one_by_one(items: Iterator[T], read: Callable[[T], Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    for item in items:
        yield from read(item)


def _take(source: Iterator[T], count: int) -> Iterator[T]:
    for _ in range(count):
        item = next(source, None)
        if item is None:
            return
        yield item


def _chained(first: list[T], rest: Iterator[T]) -> Iterator[T]:
    yield from first
    yield from rest


class _Stream:
    """The batches of one item that were read and not yet handed out."""

    __slots__ = ("batches", "done", "error")

    def __init__(self) -> None:
        self.batches: deque[tuple[pa.RecordBatch, int]] = deque()
        self.done = False
        self.error: BaseException | None = None


class _Ahead(Generic[T]):
    def __init__(self, read: Callable[[T], Iterator[pa.RecordBatch]], workers: int) -> None:
        self._read = read
        self._workers = workers
        self._changed = Condition()
        self._streams: deque[_Stream] = deque()
        self._held = 0
        self._stopped = False

    def run(self, items: Iterator[T]) -> Iterator[pa.RecordBatch]:
        pool = ThreadPoolExecutor(self._workers, thread_name_prefix="icefield-read")
        try:
            self._fill(items, pool)
            while self._streams:
                yield from self._drain(self._streams[0])
                with self._changed:
                    self._streams.popleft()
                    self._changed.notify_all()
                self._fill(items, pool)
        finally:
            with self._changed:
                self._stopped = True
                self._changed.notify_all()
            pool.shutdown(wait=True, cancel_futures=True)

    def _fill(self, items: Iterator[T], pool: Executor) -> None:
        while len(self._streams) < self._workers + _STREAMS_AHEAD:
            item = next(items, None)
            if item is None:
                return
            stream = _Stream()
            with self._changed:
                self._streams.append(stream)
            pool.submit(self._fetch, item, stream)

    def _drain(self, stream: _Stream) -> Iterator[pa.RecordBatch]:
        while True:
            with self._changed:
                while not stream.batches and not stream.done:
                    self._changed.wait()
                if not stream.batches:
                    if stream.error is not None:
                        raise stream.error
                    return
                batch, size = stream.batches.popleft()
                self._held -= size
                self._changed.notify_all()
            yield batch

    def _fetch(self, item: T, stream: _Stream) -> None:
        try:
            for batch in self._read(item):
                if not self._keep(batch, stream):
                    return
        except BaseException as error:
            stream.error = error
        finally:
            with self._changed:
                stream.done = True
                self._changed.notify_all()

    def _keep(self, batch: pa.RecordBatch, stream: _Stream) -> bool:
        """Put a batch into its stream once there is room; false when nobody wants it any more."""
        size = batch.nbytes
        with self._changed:
            while not self._stopped and self._held > _AHEAD_BYTES and not self._is_awaited(stream):
                self._changed.wait()
            if self._stopped:
                return False
            stream.batches.append((batch, size))
            self._held += size
            self._changed.notify_all()
            return True

    def _is_awaited(self, stream: _Stream) -> bool:
        return self._streams[0] is stream and not stream.batches
