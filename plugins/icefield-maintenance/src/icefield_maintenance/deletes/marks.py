"""Writing the results of rewritten deletes: position delete files in version 2, deletion vectors in version 3.

All attempts of a commit share the files written for a data file, or for a partition, while the same deletes apply.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final
from uuid import uuid4

import numpy as np
from icefield.abc import Attempt, AttemptFiles, Work, WorkRunner
from icefield.engine import Head, VectorFiles, normalised_key
from icefield.manifest import DataFile
from icefield.puffin import Positions, encode_vectors
from icefield.toolkit import map_ahead
from icefield.transaction import ActionContext
from icefield.writing import DeleteContext, DeletedRows, write_position_deletes

from icefield_maintenance.deletes.affected import MOST_IN_A_PIECE, Affected
from icefield_maintenance.deletes.survey import Ints
from icefield_maintenance.deletes.vector_copies import VectorCopies
from icefield_maintenance.local_runner import LocalRunner

_HELD_POSITIONS: Final = 8 << 20
"""The most positions, of several partitions, that are written together."""

Numbers = dict[tuple[str, int | None], int]
Parcel = list[Affected]
"""Data files of one partition. Their positions are written together."""

Found = Callable[[Parcel], Iterator[tuple[Affected, Positions | None]]]

_FEWEST_IN_A_LOT: Final = 16
_MOST_IN_A_LOT: Final = 1 << 16
"""The number of data files in one item of work."""


def most_lots(positions: Ints, data_files: Ints) -> Ints:
    """The most files for the positions of a partition, provided that no file reaches the target size."""
    pieces = -(-data_files // MOST_IN_A_PIECE)
    lots: Ints = np.minimum(positions // (_HELD_POSITIONS + 1) + pieces, data_files)
    return lots


@dataclass(slots=True)
class WrittenDeletes:
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
class Made:
    """The result of a parcel: delete files, the number of their positions, and the data files with deleted rows."""

    files: tuple[DataFile, ...]
    rows: int
    marked: tuple[str, ...]


class Read(ABC):
    """Finds the positions to write for a data file. Picklable."""

    @abstractmethod
    def reader(self) -> Callable[[Affected], Positions | None]:
        """A thread-safe function that returns the positions, or None. It caches the delete files that it reads."""


class MarkParcels(Work[list[Parcel], list[Made]]):
    """Finds and writes the positions of parcels. Each parcel has its own delete files."""

    def __init__(self, writing: DeleteContext, read: Read) -> None:
        self._writing, self._read = writing, read

    def do(self, item: list[Parcel], attempt: Attempt) -> list[Made]:
        """The result of each parcel. After an error, only noted files may be left."""
        read = partial(_found, read=self._read.reader(), workers=self._writing.io.workers(attempt.threads))
        write = self._position_files if self._writing.format_version < 3 else self._vectors
        return write(item, attempt, read)

    def files(self, result: list[Made]) -> Iterable[str]:
        """The delete files."""
        return {file.file_path for made in result for file in made.files}

    @property
    def traces(self) -> AttemptFiles:
        """Among the table's data."""
        return AttemptFiles(self._writing.io, self._writing.locations.data_folder, self._writing.operation_id)

    # -- version 2 ------------------------------------------------------------------------------------------------

    def _position_files(self, parcels: list[Parcel], attempt: Attempt, read: Found) -> list[Made]:
        waiting = _Waiting(self._writing, attempt)
        made: list[Made] = []
        for parcel in parcels:
            rows: list[DeletedRows] = []
            early: list[DataFile] = []
            size = total = 0
            marked = []
            for each, positions in read(parcel):
                if positions is None:
                    continue
                rows.append(DeletedRows(each.task.file, positions))
                marked.append(each.task.file.file_path)
                size, total = size + len(positions), total + len(positions)
                if size > _HELD_POSITIONS:
                    early += waiting.write(rows)
                    rows, size = [], 0
            if waiting.size + size > _HELD_POSITIONS or parcel[0].partition in waiting.parcels:
                waiting.flush(made)
            waiting.parcels[parcel[0].partition] = (len(made), rows)
            waiting.size += size
            made.append(Made(tuple(early), total, tuple(marked)))
        waiting.flush(made)
        return made

    # -- version 3 ------------------------------------------------------------------------------------------------

    def _vectors(self, parcels: list[Parcel], attempt: Attempt, read: Found) -> list[Made]:
        rows: list[tuple[str, int] | None] = []
        files = puffins(self._writing, attempt)
        try:
            for each, positions in read([each for parcel in parcels for each in parcel]):
                if positions is None:
                    rows.append(None)
                    continue
                file = each.task.file
                (data,) = encode_vectors([positions])
                files.add(file.file_path, file.spec_id, file.partition, len(positions), data)
                rows.append((file.file_path, len(positions)))
            files.close()
        except BaseException:
            files.abandon()
            raise
        written = iter(files.written)
        return [_NOTHING if one is None else Made((next(written),), one[1], (one[0],)) for one in rows]


_NOTHING: Final = Made((), 0, ())


class MarkWriter:
    """Writes delete files for the attempts of one action."""

    def __init__(self, runner: WorkRunner | None = None, target_bytes: int | None = None) -> None:
        """``target_bytes``: the size of new files; None: the table's property."""
        self._runner = LocalRunner() if runner is None else runner
        self._target_bytes = target_bytes
        self._made: dict[Any, Made] = {}
        self._copies: dict[Any, DataFile] = {}

    def write(
        self,
        head: Head,
        context: ActionContext,
        pieces: Iterator[list[Affected]],
        read: Read,
        vectors: Sequence[tuple[DataFile, int]] = (),
        *,
        affected: int,
    ) -> WrittenDeletes:
        """Write delete files for pieces of ``affected`` data files in all, and copy ``vectors`` into new Puffin files.

        Each vector comes with its data sequence number. Files of earlier attempts that are not reused are retired.
        """
        writing = DeleteContext.from_metadata(head.metadata, context.io, operation_id=str(uuid4()))
        if self._target_bytes is not None:
            writing = replace(writing, target_file_bytes=self._target_bytes)
        marks, used = WrittenDeletes(), set[str]()
        self._parcels(writing, context, pieces, read, marks, affected)
        if vectors:
            self._copied(writing, context, vectors, marks)
        used.update(file.file_path for file in marks.files)
        written = [*self._copies.values(), *(file for made in self._made.values() for file in made.files)]
        context.written.add(*used)
        context.written.retire(*{file.file_path for file in written} - used)
        return marks

    def _parcels(
        self,
        writing: DeleteContext,
        context: ActionContext,
        pieces: Iterator[list[Affected]],
        read: Read,
        marks: WrittenDeletes,
        affected: int,
    ) -> None:
        order: list[tuple[Any, int]] = []
        missing: list[Any] = []

        def lots() -> Iterator[list[Parcel]]:
            most = min(_MOST_IN_A_LOT, max(_FEWEST_IN_A_LOT, -(-affected // self._runner.slots)))
            lot: list[Parcel] = []
            size = 0
            for parcel in _parcels_of(pieces, writing.format_version):
                key = (writing.format_version, *(each.key for each in parcel))
                order.append((key, max(each.number for each in parcel)))
                if key in self._made:
                    continue
                missing.append(key)
                lot.append(parcel)
                size += len(parcel)
                if size >= most:
                    yield lot
                    lot, size = [], 0
            if lot:
                yield lot

        results = self._runner.run(MarkParcels(writing, read), lots(), context.written.add)
        self._made.update(zip(missing, (made for lot in results for made in lot), strict=True))
        for key, number in order:
            made = self._made[key]
            marks.add(made.files, number)
            marks.rows += made.rows
            marks.marked.update(made.marked)

    def _copied(
        self,
        writing: DeleteContext,
        context: ActionContext,
        vectors: Sequence[tuple[DataFile, int]],
        marks: WrittenDeletes,
    ) -> None:
        missing = [vector for vector, _ in vectors if _vector_key(vector) not in self._copies]
        if missing:
            files = puffins(writing, Attempt(0, note=context.written.add))
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


@dataclass(slots=True)
class _Waiting:
    """Found positions that wait to be written together: parcels by partition, each with its place in the results."""

    writing: DeleteContext
    attempt: Attempt
    parcels: dict[int, tuple[int, list[DeletedRows]]] = field(default_factory=dict)
    size: int = 0
    calls: int = 0

    def flush(self, made: list[Made]) -> None:
        """Write the waiting positions, by several threads."""
        rows = [row for _, some in self.parcels.values() for row in some]
        by_partition: dict[Any, list[DataFile]] = {}
        for file in self.write(rows) if rows else []:
            by_partition.setdefault(_partition(file), []).append(file)
        for place, some in self.parcels.values():
            files = by_partition.get(_partition(some[0].file), []) if some else []
            made[place] = replace(made[place], files=(*made[place].files, *files))
        self.parcels.clear()
        self.size = 0

    def write(self, rows: Sequence[DeletedRows]) -> list[DataFile]:
        """Write delete files of rows, under names that are unique to this call."""
        self.calls += 1
        writing = replace(self.writing, operation_id=f"{self.writing.operation_id}-{self.calls}")
        attempt = self.attempt
        return write_position_deletes(writing, rows, task_id=attempt.item, attempt=attempt.number, note=attempt.note)


def puffins(writing: DeleteContext, attempt: Attempt) -> VectorFiles:
    """The Puffin files of an attempt."""
    return VectorFiles(writing, attempt.item, attempt.number, attempt.note)


def _parcels_of(pieces: Iterator[list[Affected]], version: int) -> Iterator[Parcel]:
    """Split pieces into parcels: a vector is for one data file, a position delete file for a whole piece."""
    if version < 3:
        yield from pieces
    else:
        yield from ([each] for piece in pieces for each in piece)


def _partition(file: DataFile) -> tuple[Any, ...]:
    return file.spec_id, normalised_key(file.partition)


def _vector_key(vector: DataFile) -> tuple[str, int | None]:
    return vector.file_path, vector.content_offset


def _found(
    affected: Sequence[Affected], read: Callable[[Affected], Positions | None], workers: int
) -> Iterator[tuple[Affected, Positions | None]]:
    """The positions of each data file, found by threads a few ahead."""
    return map_ahead(affected, lambda each: (each, read(each)), workers)
