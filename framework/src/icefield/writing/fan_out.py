"""Rows on their way to many partitions: held in memory within a bound, encoded by a few threads.

Each partition gathers its rows. When it has enough for a row group they go to its file, which stays open; when all
partitions together hold too much, those that hold most are written out and their files closed. Whatever is left at
the end is written then. So memory is bounded on endless streams, and a partition whose rows fit gets one file.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from concurrent.futures import Future
from typing import Any

import pyarrow as pa

from icefield.partitioning import normalised_key
from icefield.writing.context import WriteContext
from icefield.writing.files import FileSet, Partition
from icefield.writing.rolling import RollingWriter
from icefield.writing.threads import Threads

_HELPING_BYTES = 128 << 20
"""Rows that a partition gathers before they go to its open file: about a row group."""

_MAX_OPEN = 32
"""Files that stay open between two helpings of rows."""

_SPILL_TO = 0.75
"""The part of the bound that may stay held when rows are written out early."""


class _Lane:
    """The rows of one partition that wait, and its open file. ``writer`` is touched by one job at a time."""

    __slots__ = ("batches", "held", "last", "partition", "writer")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.batches: list[pa.RecordBatch] = []
        self.held = 0
        self.writer: RollingWriter | None = None
        self.last: Future[None] | None = None


class FanOut:
    """Sends rows to the files of their partitions. Used by one thread; ``threads`` do the encoding."""

    def __init__(self, context: WriteContext, files: FileSet, threads: Threads, *, turns: int = 1) -> None:
        """``turns``: how many files a partition may fill side by side, each with a helping of rows in turn."""
        self._context = context
        self._files = files
        self._threads = threads
        self._turns = turns
        self._turn = 0
        self._helping = max(1, min(_HELPING_BYTES, context.buffer_bytes // 4))
        self._lanes: dict[Hashable, _Lane] = {}
        self._open: OrderedDict[int, _Lane] = OrderedDict()
        self._held = 0

    def add(self, values: tuple[Any, ...], batch: pa.RecordBatch, *, last: bool = False) -> None:
        """Take rows of one partition, ``last`` if no more will come. Raises the error of an earlier file."""
        lane = self._lane(values)
        size = batch.nbytes
        lane.batches.append(batch)
        lane.held += size
        self._held += size
        if last:
            self._hand_over(lane, close=True)
        elif lane.held >= self._helping:
            self._serve(lane)
        if self._held + self._threads.in_flight > self._context.buffer_bytes:
            self._make_room()

    def close(self) -> None:
        """Write whatever waits and complete every file."""
        for lane in self._lanes.values():
            if lane.batches or id(lane) in self._open:
                self._hand_over(lane, close=True)

    def _lane(self, values: tuple[Any, ...]) -> _Lane:
        key = (normalised_key(values), self._turn)
        lane = self._lanes.get(key)
        if lane is None:
            spec, schema = self._context.spec, self._context.schema
            path = spec.partition_path(schema, values) if spec.fields else ""
            lane = self._lanes[key] = _Lane(Partition(values, path, len(self._lanes)))
        return lane

    def _serve(self, lane: _Lane) -> None:
        """Send a helping to the partition's file, which stays open unless too many are."""
        self._hand_over(lane, close=False)
        self._open[id(lane)] = lane
        self._open.move_to_end(id(lane))
        self._turn = (self._turn + 1) % self._turns
        if len(self._open) > _MAX_OPEN:
            self._hand_over(next(iter(self._open.values())), close=True)

    def _make_room(self) -> None:
        if self._held > self._context.buffer_bytes * _SPILL_TO:
            for lane in sorted(self._lanes.values(), key=lambda each: -each.held):
                if self._held <= self._context.buffer_bytes * _SPILL_TO:
                    break
                self._hand_over(lane, close=True)
        self._threads.wait_below(self._context.buffer_bytes - self._held)

    def _hand_over(self, lane: _Lane, *, close: bool) -> None:
        batches, size, before = lane.batches, lane.held, lane.last
        lane.batches, lane.held = [], 0
        self._held -= size
        if close:
            self._open.pop(id(lane), None)

        def job() -> None:
            if before is not None:
                before.result()  # jobs begin in their order, so that one is running or done
            self._write(lane, batches, close)

        lane.last = self._threads.submit(job, size)

    def _write(self, lane: _Lane, batches: list[pa.RecordBatch], close: bool) -> None:
        if lane.writer is None:
            lane.writer = RollingWriter(self._files, lane.partition, self._context.target_file_bytes)
        for batch in batches:
            lane.writer.write(batch)
        if close:
            lane.writer.close()
            lane.writer = None
