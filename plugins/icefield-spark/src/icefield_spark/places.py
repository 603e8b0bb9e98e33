"""Locations of rows: the number of the data file in a plan and the position in the file, in one long.

A path in each row would dominate the data between Python and the JVM.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from zlib import crc32

import numpy as np
import pyarrow as pa
from icefield.scan import FileScanTask
from icefield.toolkit import distinct
from pyspark.sql import Column
from pyspark.sql import functions as f

Positions = np.ndarray[Any, Any]

ROW: Final = "icefield_row"
"""The column of row locations."""

POSITION: Final = "_pos"
FOUND: Final = "file bigint, positions binary"
"""The columns of the tasks' reports: positions, pickled, by the number of a data file."""

_BITS: Final = 36
_MASK: Final = (1 << _BITS) - 1
_NUMBER_BITS: Final = 63 - _BITS
_SUM_BITS: Final = 32

_MANY_BYTES: Final = 128 << 20
_FEW_BYTES: Final = 8 << 20
"""A task has files of at least so many bytes: of many where there is enough to read, else of few."""


@dataclass
class Plan:
    """The data files that plans have met, each with a number, and the tasks that read them.

    A number is the checksum of the path, which Spark computes too, unless another file already has this number.
    """

    numbers: dict[str, int] = field(default_factory=dict)
    parts: dict[str, dict[int, FileScanTask]] = field(default_factory=dict)
    """The tasks by path and first byte."""
    _taken: dict[int, str] = field(default_factory=dict, repr=False)

    def number(self, task: FileScanTask) -> int:
        """Note the task's file, and return its number."""
        path = task.file.file_path
        self.parts.setdefault(path, {})[task.start] = task
        found = self.numbers.get(path)
        if found is None:
            found = _sum_of(path)
            while found in self._taken:
                found = (found + 1) % (1 << _NUMBER_BITS)
            self.numbers[path] = found
            self._taken[found] = path
        return found

    def is_computed(self, path: str) -> bool:
        """Whether the noted number of a file equals the number that ``place`` computes in Spark."""
        return self.numbers[path] == _sum_of(path)

    def task(self, path: str) -> FileScanTask:
        """Any task of a file: all tasks of a file describe the file in the same way."""
        return next(iter(self.parts[path].values()))

    def by_path(self, found: Mapping[int, Any]) -> dict[str, Any]:
        """Convert a mapping by file number to a mapping by file path."""
        return {self._taken[number]: each for number, each in found.items()}

    def grouped(self, paths: Iterable[str], cores: int, most: int) -> Iterator[list[FileScanTask]]:
        """Parts of files for one task each, of at most about ``most`` bytes.

        Groups are as few and as large as possible while every core gets about the same number of them.
        """
        parts = [part for path in paths for part in self.parts[path].values()]
        # Files of a partition are grouped together, so that few tasks write to the partition.
        parts.sort(key=lambda part: (part.spec_id, repr(part.file.partition), part.file.file_path, part.start))
        every = sum(part.length for part in parts)
        least = _MANY_BYTES if every > _MANY_BYTES * cores else _FEW_BYTES
        groups = -(-every // max(1, min(most, max(least, -(-every // cores)))))
        if groups > cores:
            groups = -(-groups // cores) * cores
        size = every / max(1, groups)
        group: list[FileScanTask] = []
        held = 0
        for part in parts:
            if group and held + part.length // 2 >= size:
                yield group
                group, held = [], 0
            group.append(part)
            held += part.length
        if group:
            yield group


def _sum_of(path: str) -> int:
    return crc32(path.encode()) >> (_SUM_BITS - _NUMBER_BITS)


def place(number: int, positions: Positions) -> Positions:
    """The places of rows of one file."""
    return positions | (number << _BITS)


def place_in_spark(path: str, position: str) -> Column:
    """The place of a row, computed from the columns with the path of its file and its position in the file."""
    number = f"shiftright(crc32(CAST({path} AS BINARY)), {_SUM_BITS - _NUMBER_BITS})"
    return f.expr(f"shiftleft({number}, {_BITS}) | {position}")


def plain(task: FileScanTask) -> FileScanTask:
    """The task for all rows of its range, without the filter of its plan."""
    return FileScanTask(
        task.file,
        None,
        task.start,
        None if task.is_whole_file else task.length,
        task.delete_files,
        data_sequence_number=task.data_sequence_number,
        file_sequence_number=task.file_sequence_number,
    )


def among(positions: Positions, some: Positions) -> np.ndarray[Any, Any]:
    """A mask of the positions of a batch that occur in others. Both are sorted."""
    found = np.zeros(len(positions), bool)
    if len(positions):
        first, end = np.searchsorted(some, (positions[0], positions[-1] + 1))
        at = np.searchsorted(positions, some[first:end])
        found[at[positions[at] == some[first:end]]] = True
    return found


def by_file(places: Positions) -> Iterator[tuple[int, Positions]]:
    """Places as the positions in each file."""
    numbers = places >> _BITS
    if len(numbers) and (numbers[0] == numbers).all():  # as in rows of one file
        yield int(numbers[0]), places & _MASK
        return
    order = np.argsort(numbers, kind="stable")
    numbers, positions = numbers[order], (places & _MASK)[order]
    ends = np.flatnonzero(np.diff(numbers)) + 1
    for some, held in zip(np.split(numbers, ends), np.split(positions, ends), strict=True):
        if len(some):
            yield int(some[0]), held


def reported(number: int, positions: Any) -> pa.RecordBatch:
    """A row of ``FOUND``."""
    columns = [pa.array([number], pa.int64()), pa.array([pickle.dumps(positions)], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, names=["file", "positions"])


def collected(plan: Plan, rows: Sequence[Any]) -> dict[str, Positions]:
    """The positions that tasks report, each once and in order, by path."""
    pieces: dict[int, list[Positions]] = {}
    for row in rows:
        pieces.setdefault(row.file, []).append(pickle.loads(bytes(row.positions)))
    return plan.by_path({number: distinct(*each) for number, each in pieces.items()})


def positions_at(plan: Plan, places: Positions) -> dict[str, Positions]:
    """The positions in places by file path, each once and in order."""
    return plan.by_path(dict(by_file(distinct(places))))
