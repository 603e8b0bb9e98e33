"""Writing what rewritten deletes become: position delete files in version 2, deletion vectors in version 3.

What was written for a data file, or a partition, serves every attempt of a commit in which the same deletes apply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import Any, Final
from uuid import uuid4

import numpy as np

from icefield.maintenance.deletes.affected import MOST_IN_A_PIECE, Affected
from icefield.maintenance.deletes.survey import Ints
from icefield.maintenance.deletes.vector_copies import VectorCopies
from icefield.manifest import DataFile
from icefield.partitioning.spec import normalised_key
from icefield.puffin import encode_vectors
from icefield.puffin.roaring import Positions
from icefield.scan.parallel import default_workers
from icefield.transaction.action import ActionContext
from icefield.transaction.branch_head import Head
from icefield.writing.deletes import DeleteContext, DeletedRows, write_position_deletes
from icefield.writing.deletes.position_files import SUFFIX
from icefield.writing.deletes.vectors import VectorFiles
from icefield.writing.files import NewFiles, file_prefix

_HELD_POSITIONS: Final = 8 << 20
"""Positions that are written together, of several partitions."""

_READ_AHEAD: Final = 4
"""Data files, for each thread, whose positions are found together."""

Read = Callable[[Affected], Positions | None]
"""The positions to write for a data file; None for none."""

Numbers = dict[tuple[str, int | None], int]


def most_lots(positions: Ints, data_files: Ints) -> Ints:
    """How many files, unless these reach their size, so many positions of a partition are written into at most."""
    pieces = -(-data_files // MOST_IN_A_PIECE)
    lots: Ints = np.minimum(positions // (_HELD_POSITIONS + 1) + pieces, data_files)
    return lots


@dataclass(slots=True)
class Marks:
    """The new delete files, the data sequence number of each, and the data files that got one."""

    files: list[DataFile] = field(default_factory=list)
    numbers: Numbers = field(default_factory=dict)
    rows: int = 0
    marked: set[str] = field(default_factory=set)

    def add(self, files: Iterable[DataFile], number: int) -> None:
        """Add files of one data sequence number."""
        for file in files:
            self.files.append(file)
            self.numbers[file.file_path, file.content_offset] = number


@dataclass(frozen=True, slots=True)
class _Made:
    """What a piece became: files, the positions in them, and the data files that have any."""

    files: tuple[DataFile, ...]
    rows: int
    marked: tuple[str, ...]


class MarkWriter:
    """Writes delete files for the attempts of one action."""

    def __init__(self, target_bytes: int | None = None) -> None:
        """``target_bytes``: the size of new files; None: what the table says."""
        self._target_bytes = target_bytes
        self._uuid = str(uuid4())
        self._tasks = count()
        self._made: dict[Any, _Made] = {}
        self._copies: dict[Any, DataFile] = {}

    def write(
        self,
        head: Head,
        context: ActionContext,
        pieces: Iterator[list[Affected]],
        read: Read,
        vectors: Sequence[tuple[DataFile, int]] = (),
    ) -> Marks:
        """The delete files for pieces of affected data files, and ``vectors`` (each with its data sequence number)
        copied into new Puffin files. What was written for other attempts is retired.
        """
        writing = DeleteContext.from_metadata(head.metadata, context.io, operation_id=self._uuid)
        if self._target_bytes is not None:
            writing = replace(writing, target_file_bytes=self._target_bytes)
        marks, used = Marks(), set[str]()
        if head.metadata.format_version < 3:
            self._position_files(writing, context, pieces, read, marks)
        else:
            self._vectors(writing, context, pieces, read, marks)
            self._copied(writing, context, vectors, marks)
        used.update(file.file_path for file in marks.files)
        written = [*self._copies.values(), *(file for made in self._made.values() for file in made.files)]
        context.written.add(*used)
        context.written.retire(*{file.file_path for file in written} - used)
        return marks

    # -- version 2 ------------------------------------------------------------------------------------------------

    def _position_files(
        self, writing: DeleteContext, context: ActionContext, pieces: Iterator[list[Affected]], read: Read, marks: Marks
    ) -> None:
        waiting = _Waiting()
        for piece in pieces:
            key = (2, *(each.key for each in piece))
            waiting.order.append((key, max(each.number for each in piece)))
            if key in self._made:
                continue
            rows: list[DeletedRows] = []
            early: list[DataFile] = []
            size = total = 0
            marked = []
            for each, positions in _read(piece, read):
                if positions is None:
                    continue
                rows.append(DeletedRows(each.task.file, positions))
                marked.append(each.task.file.file_path)
                size, total = size + len(positions), total + len(positions)
                if size > _HELD_POSITIONS:
                    early += self._write(writing, context, rows)
                    rows, size = [], 0
            made = _Made(tuple(early), total, tuple(marked))
            if waiting.size + size > _HELD_POSITIONS or piece[0].partition in waiting.pieces:
                self._flush(writing, context, waiting)
            waiting.pieces[piece[0].partition] = (key, made, rows)
            waiting.size += size
        self._flush(writing, context, waiting)
        for key, number in waiting.order:
            _count(marks, self._made[key], number)

    def _flush(self, writing: DeleteContext, context: ActionContext, waiting: _Waiting) -> None:
        """Write the pieces that wait, each of another partition, by several threads."""
        rows = [row for _, _, some in waiting.pieces.values() for row in some]
        written = self._write(writing, context, rows) if rows else []
        by_partition: dict[Any, list[DataFile]] = {}
        for file in written:
            by_partition.setdefault(_partition(file), []).append(file)
        for key, made, some in waiting.pieces.values():
            files = by_partition.get(_partition(some[0].file), []) if some else []
            self._made[key] = _Made((*made.files, *files), made.rows, made.marked)
        waiting.pieces.clear()
        waiting.size = 0

    def _write(self, writing: DeleteContext, context: ActionContext, rows: Sequence[DeletedRows]) -> list[DataFile]:
        return write_position_deletes(writing, rows, task_id=next(self._tasks), note=context.written.add)

    # -- version 3 ------------------------------------------------------------------------------------------------

    def _vectors(
        self, writing: DeleteContext, context: ActionContext, pieces: Iterator[list[Affected]], read: Read, marks: Marks
    ) -> None:
        order: list[tuple[Any, int]] = []
        pending: list[tuple[Any, str, int]] = []
        files = self._puffins(writing, context)
        try:
            for piece in pieces:
                order += [((3, each.key), each.number) for each in piece]
                missing = [each for each in piece if (3, each.key) not in self._made]
                for each, positions in _read(missing, read):
                    if positions is None:
                        self._made[3, each.key] = _Made((), 0, ())
                        continue
                    file = each.task.file
                    (data,) = encode_vectors([positions])
                    files.add(file.file_path, file.spec_id, file.partition, len(positions), data)
                    pending.append(((3, each.key), file.file_path, len(positions)))
            files.close()
        except BaseException:
            files.abandon()
            raise
        for (key, path, rows), vector in zip(pending, files.written, strict=True):
            self._made[key] = _Made((vector,), rows, (path,))
        for key, number in order:
            _count(marks, self._made[key], number)

    def _copied(
        self,
        writing: DeleteContext,
        context: ActionContext,
        vectors: Sequence[tuple[DataFile, int]],
        marks: Marks,
    ) -> None:
        missing = [vector for vector, _ in vectors if _vector_key(vector) not in self._copies]
        if missing:
            files = self._puffins(writing, context)
            try:
                for vector, (data, positions) in VectorCopies(context.io).read(missing):
                    path = str(vector.referenced_data_file)
                    files.add(path, vector.spec_id, vector.partition, positions, data)
                files.close()
            except BaseException:
                files.abandon()
                raise
            for vector, copy in zip(missing, files.written, strict=True):
                self._copies[_vector_key(vector)] = copy
        for vector, number in vectors:
            marks.add([self._copies[_vector_key(vector)]], number)

    def _puffins(self, writing: DeleteContext, context: ActionContext) -> VectorFiles:
        prefix = file_prefix(next(self._tasks), 0, writing.operation_id)
        new = NewFiles(context.io, writing.locations, prefix, context.written.add, suffix=SUFFIX)
        return VectorFiles(writing, new)


@dataclass(slots=True)
class _Waiting:
    """Pieces whose positions were found, to be written together; ``order`` are all pieces with their numbers."""

    pieces: dict[int, tuple[Any, _Made, list[DeletedRows]]] = field(default_factory=dict)
    size: int = 0
    order: list[tuple[Any, int]] = field(default_factory=list)


def _count(marks: Marks, made: _Made, number: int) -> None:
    marks.add(made.files, number)
    marks.rows += made.rows
    marks.marked.update(made.marked)


def _partition(file: DataFile) -> tuple[Any, ...]:
    return file.spec_id, normalised_key(file.partition)


def _vector_key(vector: DataFile) -> tuple[str, int | None]:
    return vector.file_path, vector.content_offset


def _read(affected: Sequence[Affected], read: Read) -> Iterator[tuple[Affected, Positions | None]]:
    """The positions of each data file, found by threads a few ahead."""
    workers = min(default_workers(), len(affected))
    if workers < 2:
        yield from ((each, read(each)) for each in affected)
        return
    with ThreadPoolExecutor(workers, thread_name_prefix="icefield-deletes") as pool:
        left = iter(affected)
        while some := list(islice(left, _READ_AHEAD * workers)):
            yield from zip(some, pool.map(read, some), strict=True)
