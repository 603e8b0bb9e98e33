"""Rows on their way to many partitions: buffered within a bound on memory, encoded by a few threads.

Each partition gathers its rows. When it has enough for a row group, the rows go to its file, which stays open. The
bound covers the rows that wait here, the rows of pending jobs, and the buffers of the writers of open files. If these
exceed the bound, the partitions with the most bytes are written out: an open file ends its row group, and the rows of a
partition without an open file become a file. The remaining rows are written at the end. So memory is bounded on endless
streams, and a partition gets one file if its rows fit.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition
from typing import Any

import pyarrow as pa

from icefield.partitioning.spec import normalised_key
from icefield.writing.files import FileSet, Partition, RollingWriter


class Threads:
    """Runs jobs in the order they come. After an error no further job begins."""

    def __init__(self, workers: int) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="icefield-write")
        self._changed = Condition()
        self._in_flight = 0
        self._retained = 0
        self._error: BaseException | None = None

    @property
    def used(self) -> int:
        """The bytes of unfinished jobs, and the bytes that jobs retain (``retain``)."""
        return self._in_flight + self._retained

    def retain(self, size: int) -> None:
        """Count bytes that stay in memory after the calling job; a negative size releases bytes."""
        with self._changed:
            self._retained += size

    def submit(self, job: Callable[[], None], size: int) -> Future[None]:
        """Hand over a job that holds ``size`` bytes. Raises the error of an earlier job."""
        self.check()
        with self._changed:
            self._in_flight += size
        return self._pool.submit(self._run, job, size)

    def _run(self, job: Callable[[], None], size: int) -> None:
        try:
            if self._error is None:
                job()
        except BaseException as error:
            with self._changed:
                self._error = self._error or error
        finally:
            with self._changed:
                self._in_flight -= size
                self._changed.notify_all()

    def wait_below(self, size: int) -> None:
        """Wait until at most ``size`` bytes are used, or no job is left. Raises the error of a job."""
        with self._changed:
            while self._in_flight and self.used > size and self._error is None:
                self._changed.wait()
        self.check()

    def check(self) -> None:
        """Raise the error of a job, if there is one."""
        if self._error is not None:
            raise self._error

    def finish(self) -> None:
        """Wait for every job. Raises the error of one."""
        self._pool.shutdown(wait=True)
        self.check()

    def cancel(self) -> None:
        """Start no further job, and wait for running ones."""
        self._pool.shutdown(wait=True, cancel_futures=True)


_BATCH_BYTES = 128 << 20
"""The bytes of rows that a partition gathers before they go to its open file: about a row group."""

_MAX_OPEN = 32
"""The number of files that stay open while their partitions gather rows."""

_SPILL_TO = 0.75
"""The part of the bound that may stay held when rows are written out early."""


@contextmanager
def threads_for(files: FileSet, workers: int) -> Iterator[Threads]:
    """Threads that write a set of files. At the end every job is done; after an error the files are abandoned."""
    threads = Threads(workers)
    try:
        yield threads
        threads.finish()
    except BaseException:
        try:
            threads.cancel()
        finally:
            files.abandon()
        raise


@dataclass(eq=False, slots=True)
class _Buffer:
    """The waiting rows of one partition, and its open file. ``writer`` is touched by one job at a time.

    ``retained``: the bytes that the writer held after its last job.
    """

    partition: Partition
    batches: list[pa.RecordBatch] = field(default_factory=list)
    held: int = 0
    retained: int = 0
    writer: RollingWriter | None = None
    last: Future[None] | None = None


class FanOut:
    """Sends rows to the files of their partitions. Used by one thread; ``threads`` do the encoding."""

    def __init__(self, files: FileSet, threads: Threads, *, parallel_files: int = 1) -> None:
        """``parallel_files``: the number of a partition's files that take its gathered rows in turn."""
        self._context = files.context
        self._files = files
        self._threads = threads
        self._parallel_files = parallel_files
        self._file = 0
        self._batch_bytes = max(1, min(_BATCH_BYTES, files.context.buffer_bytes // 4))
        self._buffers: dict[Hashable, _Buffer] = {}
        self._open: OrderedDict[int, _Buffer] = OrderedDict()
        self._held = 0

    def add(self, values: tuple[Any, ...], batch: pa.RecordBatch, *, last: bool = False) -> int:
        """Take rows of one partition, ``last`` if no more will come, and give the partition's ``order``.

        Raises the error of an earlier file.
        """
        buffer = self._buffer(values)
        size = batch.nbytes
        buffer.batches.append(batch)
        buffer.held += size
        self._held += size
        if last:
            self._hand_over(buffer, close=True)
        elif buffer.held >= self._batch_bytes:
            # The file stays open, unless too many files are open.
            self._hand_over(buffer, close=False)
            self._open[id(buffer)] = buffer
            self._open.move_to_end(id(buffer))
            self._file = (self._file + 1) % self._parallel_files
            if len(self._open) > _MAX_OPEN:
                self._hand_over(next(iter(self._open.values())), close=True)
        if self._held + self._threads.used > self._context.buffer_bytes:
            self._make_room()
        return buffer.partition.order

    def close(self) -> None:
        """Write all waiting rows and complete every file."""
        for buffer in self._buffers.values():
            if buffer.batches or id(buffer) in self._open:
                self._hand_over(buffer, close=True)

    def _buffer(self, values: tuple[Any, ...]) -> _Buffer:
        key = (normalised_key(values), self._file)
        buffer = self._buffers.get(key)
        if buffer is None:
            spec, schema = self._context.spec, self._context.schema
            path = spec.partition_path(schema, values) if spec.fields else ""
            buffer = self._buffers[key] = _Buffer(Partition(values, path, len(self._buffers), spec.spec_id))
        return buffer

    def _make_room(self) -> None:
        bound = self._context.buffer_bytes
        self._spill()
        self._threads.wait_below(bound - self._held)
        if self._held + self._threads.used > bound:  # no job is left, so the buffers of open files are known now
            self._spill()
            self._threads.wait_below(bound - self._held)

    def _spill(self) -> None:
        """Write out the partitions that hold the most, until the rest is well below the bound."""
        most = self._context.buffer_bytes * _SPILL_TO
        kept = self._held + sum(buffer.retained for buffer in self._open.values())
        if kept <= most:
            return
        for buffer in sorted(self._buffers.values(), key=lambda each: -each.held - each.retained):
            if kept <= most:
                break
            kept -= buffer.held + buffer.retained
            is_open = id(buffer) in self._open
            self._hand_over(buffer, close=not is_open, flush=is_open)

    def _hand_over(self, buffer: _Buffer, *, close: bool, flush: bool = False) -> None:
        batches, size, before = buffer.batches, buffer.held, buffer.last
        buffer.batches, buffer.held = [], 0
        self._held -= size
        if close:
            self._open.pop(id(buffer), None)

        def job() -> None:
            if before is not None:
                before.result()  # jobs begin in their order, so that one is running or done
            self._write(buffer, batches, close, flush)

        buffer.last = self._threads.submit(job, size)

    def _write(self, buffer: _Buffer, batches: list[pa.RecordBatch], close: bool, flush: bool) -> None:
        if buffer.writer is None:
            buffer.writer = RollingWriter(self._files, buffer.partition, self._context.target_file_bytes)
        for batch in batches:
            buffer.writer.write(batch)
        batches.clear()
        if close:
            buffer.writer.close()
        elif flush:
            buffer.writer.flush()
        retained = buffer.writer.buffered_bytes
        self._threads.retain(retained - buffer.retained)
        buffer.retained = retained
        if close:
            buffer.writer = None
