"""The delete files of data files, as numbers; objects are made when they are first asked for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from icefield.manifest import DataFile, ManifestEntries
from icefield.manifest import schemas as f
from icefield.partitioning.tuples import Ints
from icefield.scan.delete_scopes import Ranges


class DeleteFiles:
    """All delete files that are looked up, numbered over their manifests."""

    def __init__(self, parts: Sequence[ManifestEntries]) -> None:
        self.parts = parts
        self._starts = np.cumsum([0, *map(len, parts)])
        self._objects: list[DataFile | None] = [None] * len(self)
        self.is_vector = np.zeros(len(self), bool)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def column(self, number: int) -> pa.Array:
        """A column by field id, over all manifests."""
        return pa.concat_arrays([part.column(number) for part in self.parts])

    @cached_property
    def paths(self) -> pa.StringArray:
        """Their locations."""
        return self.column(f.FILE_PATH)

    @cached_property
    def record_counts(self) -> Ints:
        """The rows, or deleted positions, that each says to have."""
        return np.asarray(self.column(f.RECORD_COUNT))

    def bounds(self, kind: int, field_id: int) -> pa.BinaryArray:
        """The encoded bounds of one field."""
        found = (part.statistic(kind, field_id) for part in self.parts)
        bounds = [pa.nulls(len(part)) if one is None else one for part, one in zip(self.parts, found, strict=True)]
        return pa.concat_arrays([one.cast(pa.binary()) for one in bounds])

    def manifest_of(self, number: int) -> str:
        """The location of the manifest that names a file."""
        return self.parts[self._part(number)].manifest.manifest_path

    def file(self, number: int) -> DataFile:
        """One of the files as an object."""
        found = self._objects[number]
        if found is None:
            part = self._part(number)
            # All of a manifest at once: one by one would cost many times as much.
            self._objects[int(self._starts[part]) : int(self._starts[part + 1])] = self.parts[part].data_files()
            found = self._objects[number]
            assert found is not None
        return found

    def _part(self, number: int) -> int:
        return int(np.searchsorted(self._starts, number, side="right")) - 1


class AssignedDeletes:
    """The delete files of each of some data files.

    Those of row r are, in each of ``ranges``, what it says, and after these ``numbers[offsets[r]:offsets[r + 1]]``.
    """

    __slots__ = ("_files", "_last", "_lists", "_numbers", "_offsets", "_ranges")

    def __init__(self, files: DeleteFiles, ranges: Sequence[Ranges], offsets: Ints, numbers: Ints) -> None:
        self._files = files
        self._ranges = [one for one in ranges if one.counts.any()]
        self._offsets = offsets
        self._numbers = numbers
        self._lists: tuple[list[int], list[DataFile]] | None = None
        self._last: dict[int, tuple[int, int, tuple[DataFile, ...]]] = {}

    @classmethod
    def of(cls, files: DeleteFiles, ranges: Sequence[Ranges], rows: Ints, numbers: Ints, count: int) -> AssignedDeletes:
        """From pairs of a row and a delete file, the rows ascending, for so many data files."""
        offsets = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=count))))
        return cls(files, ranges, offsets, numbers)

    def counts(self) -> Ints:
        """How many delete files each data file has."""
        counts: Ints = np.diff(self._offsets)
        for one in self._ranges:
            counts = counts + one.counts
        return counts

    def files(self, row: int) -> tuple[DataFile, ...]:
        """The delete files of a data file."""
        if self._lists is None:
            self._lists = (self._offsets.tolist(), [*map(self._files.file, self._numbers.tolist())])
        offsets, listed = self._lists
        found = tuple(listed[offsets[row] : offsets[row + 1]])
        for place in range(len(self._ranges) - 1, -1, -1):
            found = self._range(place, row) + found
        return found

    def _range(self, place: int, row: int) -> tuple[DataFile, ...]:
        ranges = self._ranges[place]
        first, end = int(ranges.firsts[row]), int(ranges.ends[row])
        last = self._last.get(place)
        if last is None or last[:2] != (first, end):
            # Files next to each other are mostly of one commit and one partition, and share what applies to them.
            found = tuple(map(self._files.file, ranges.numbers[first : max(first, end)].tolist()))
            last = self._last[place] = (first, end, found)
        return last[2]

    def all(self) -> tuple[Ints, Ints]:
        """Offsets by row and the numbers of all delete files between them, ranges included."""
        if not self._ranges:
            return self._offsets, self._numbers
        pairs = [one.pairs() for one in self._ranges]
        count = len(self._offsets) - 1
        pairs.append((np.repeat(np.arange(count), np.diff(self._offsets)), self._numbers))
        rows, numbers = (np.concatenate(part) for part in zip(*pairs, strict=True))
        order = np.argsort(rows, kind="stable")
        return np.concatenate(([0], np.cumsum(self.counts()))), numbers[order]

    def paths(self) -> pa.ListArray:
        """The locations of the delete files of each data file."""
        offsets, numbers = self.all()
        if not len(numbers):
            return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array([], pa.string()))
        needed, places = np.unique(numbers, return_inverse=True)
        paths = self._files.paths.take(pa.array(needed))
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), paths.take(pa.array(places)))

    def vectors(self) -> tuple[Ints, Ints]:
        """The data files that have a deletion vector and nothing else, and how many rows each says to delete."""
        rows = np.flatnonzero((self.counts() == 1) & (np.diff(self._offsets) == 1))
        numbers = self._numbers[self._offsets[rows]]
        alone = self._files.is_vector[numbers]
        return rows[alone], self._files.record_counts[numbers[alone]]
