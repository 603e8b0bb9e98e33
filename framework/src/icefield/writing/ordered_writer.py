"""Writes rows in order and returns their places, for writers that must find their rows again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.manifest import DataFile
from icefield.writing.data_writer import Partitioner, taken_rows
from icefield.writing.fan_out import FanOut, Threads
from icefield.writing.files import FileSet


@dataclass(frozen=True, slots=True)
class RowPlaces:
    """The places of rows: the number of each row's partition, and the number of earlier rows of that partition."""

    partitions: npt.NDArray[np.int64]
    ordinals: npt.NDArray[np.int64]


class OrderedWriter:
    """Writes rows that conform to the schema of its files. The rows of a partition keep their order over its files.

    Used by one thread. ``close`` completes the files; after an error ``abandon`` deletes them.
    """

    def __init__(self, files: FileSet) -> None:
        context = files.context
        self._files = files
        self._threads = Threads(context.io.workers(context.workers, waiting=True))
        self._fan_out = FanOut(files, self._threads)
        self._partitioner = None if context.spec.is_unpartitioned else Partitioner(context.spec, context.schema)
        self._no_values = (None,) * len(context.spec.fields)
        self._counts: list[int] = []

    def add(self, batch: pa.RecordBatch) -> RowPlaces:
        """Take rows. Raises the error of an earlier file."""
        partitions = np.zeros(batch.num_rows, np.int64)
        ordinals = np.zeros(batch.num_rows, np.int64)
        parts = [] if not batch.num_rows else [(self._no_values, None)]
        if self._partitioner is not None and batch.num_rows:
            parts = [*self._partitioner.split(batch)]
        for values, rows in parts:
            taken = taken_rows(batch, rows)
            number = self._fan_out.add(values, taken)
            if number == len(self._counts):
                self._counts.append(0)
            where = slice(None) if rows is None else rows.to_numpy()
            partitions[where] = number
            ordinals[where] = self._counts[number] + np.arange(taken.num_rows)
            self._counts[number] += taken.num_rows
        return RowPlaces(partitions, ordinals)

    def close(self) -> list[DataFile]:
        """Complete every file and describe them. Raises the error of one."""
        self._fan_out.close()
        self._threads.finish()
        return self._files.data_files()

    def found(self, places: RowPlaces) -> list[tuple[DataFile, npt.NDArray[np.int64]]]:
        """The files that hold some rows, each with the ascending positions of its rows; call it after ``close``."""
        order = np.lexsort((places.ordinals, places.partitions))
        partitions, ordinals = places.partitions[order], places.ordinals[order]
        before = np.zeros(len(self._counts), np.int64)
        made = []
        for number, file in self._files.by_partition():
            first = before[number]
            before[number] += file.record_count
            start, end = np.searchsorted(partitions, (number, number + 1))
            low, high = start + np.searchsorted(ordinals[start:end], (first, before[number]))
            if low < high:
                made.append((file, ordinals[low:high] - first))
        return made

    def abandon(self) -> None:
        """Stop writing, abort open files and delete finished ones."""
        try:
            self._threads.cancel()
        finally:
            self._files.abandon()
