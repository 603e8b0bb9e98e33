"""The delete files of data files, as numbers; ``DataFile`` objects are created on first use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from icefield.base.concurrency import lazy
from icefield.manifest import DataFile, ManifestEntries
from icefield.manifest import schemas as f
from icefield.scan.deletes.scopes import Mask, Ranges
from icefield.types.arrow.equality import Ints

_FILE_BYTES: Final = 1_000
"""The approximate size of a ``DataFile`` object with the bounds of its paths, in bytes."""


class ScanDeletes:
    """All delete files of a scan, numbered across their manifests."""

    def __init__(self, parts: Sequence[ManifestEntries]) -> None:
        self.parts = parts
        self._starts = np.cumsum([0, *map(len, parts)])
        self._objects: list[DataFile | None] = [None] * len(self)
        self.is_vector = np.zeros(len(self), bool)
        self.of_one_file = np.zeros(len(self), bool)
        """Which files hold positions of a single data file, by its name or by equal path bounds."""

    def __len__(self) -> int:
        return int(self._starts[-1])

    @property
    def nbytes(self) -> int:
        """The size in bytes of the columns, and of an object for each file."""
        return sum(part.nbytes for part in self.parts) + _FILE_BYTES * len(self)

    def column(self, number: int) -> pa.Array:
        """A column by field id, over all manifests."""
        return pa.concat_arrays([part.column(number) for part in self.parts])

    @lazy
    def paths(self) -> pa.StringArray:
        """The locations of the files."""
        return self.column(f.FILE_PATH)

    @lazy
    def record_counts(self) -> Ints:
        """The stated number of rows or deleted positions of each file."""
        return np.asarray(self.column(f.RECORD_COUNT))

    def manifest_of(self, number: int) -> str:
        """The location of the manifest that names a file."""
        return self.parts[int(self._part(number))].manifest.manifest_path

    def files(self, numbers: Ints) -> list[DataFile]:
        """Some of the files as objects."""
        objects = self._objects
        for part in np.flatnonzero(np.bincount(self._part(numbers), minlength=len(self.parts))).tolist():
            first, end = int(self._starts[part]), int(self._starts[part + 1])
            if objects[first] is None:
                # All files of a manifest at once, because single conversions are many times slower.
                objects[first:end] = self.parts[part].data_files()
        return [objects[number] for number in numbers.tolist()]

    def entries(self, numbers: Ints) -> Iterator[ManifestEntries]:
        """Some of the files in columns, grouped by manifest; ``numbers`` must be ascending."""
        parts = self._part(numbers)
        for part in np.unique(parts).tolist():
            yield self.parts[part].take(numbers[parts == part] - self._starts[part])

    def _part(self, numbers: Ints | int) -> Ints:
        part: Ints = np.searchsorted(self._starts, numbers, side="right") - 1
        return part


class AssignedDeletes:
    """The delete files of each of some data files.

    Row r has the delete files in row r of each of ``ranges``, and then ``numbers[offsets[r]:offsets[r + 1]]``.
    """

    def __init__(self, delete_files: ScanDeletes, ranges: Sequence[Ranges], offsets: Ints, numbers: Ints) -> None:
        """``delete_files`` are the files that the numbers refer to."""
        self.delete_files = delete_files
        self._ranges = [one for one in ranges if one.counts.any()]
        self._offsets = offsets
        self._numbers = numbers

    @property
    def nbytes(self) -> int:
        """The size in bytes, counted as if the tuples of delete files existed already."""
        ranges = sum(one.firsts.nbytes + one.ends.nbytes for one in self._ranges)
        return self._offsets.nbytes + self._numbers.nbytes + ranges + 64 * len(self._offsets) + 8 * len(self._numbers)

    def counts(self) -> Ints:
        """The number of delete files of each data file."""
        counts: Ints = np.diff(self._offsets)
        for one in self._ranges:
            counts = counts + one.counts
        return counts

    def known_deleted_rows(self) -> Ints:
        """The number of deleted rows of each data file, as stated by delete files for this data file alone.

        The number for other delete files is unknown until they are read.
        """
        counts = np.where(self.delete_files.of_one_file, np.maximum(self.delete_files.record_counts, 0), 0)
        before = np.concatenate(([0], np.cumsum(counts[self._numbers])))
        known: Ints = before[self._offsets[1:]] - before[self._offsets[:-1]]
        return known

    def having(self, chosen: Mask) -> Mask:
        """Which data files have a delete file that is marked in ``chosen``, a mask over all delete files."""
        rows = np.repeat(np.arange(len(self._offsets) - 1), np.diff(self._offsets))
        found: Mask = np.zeros(len(self._offsets) - 1, bool)
        found[rows[chosen[self._numbers]]] = True
        for one in self._ranges:
            before = np.concatenate(([0], np.cumsum(chosen[one.numbers])))
            found |= before[np.maximum(one.firsts, one.ends)] > before[one.firsts]
        return found

    def used(self) -> Mask:
        """Which delete files are assigned to a data file."""
        found: Mask = np.zeros(len(self.delete_files), bool)
        found[self._numbers] = True
        for one in self._ranges:
            some = one.ends > one.firsts
            changes = np.zeros(len(one.numbers) + 1, np.int64)
            np.add.at(changes, one.firsts[some], 1)
            np.add.at(changes, one.ends[some], -1)
            found[one.numbers[np.cumsum(changes[:-1]) > 0]] = True
        return found

    def part(self, start: int, stop: int) -> AssignedDeletes:
        """The delete files of consecutive data files."""
        offsets = self._offsets[start : stop + 1]
        ranges = [Ranges(one.numbers, one.firsts[start:stop], one.ends[start:stop]) for one in self._ranges]
        return AssignedDeletes(self.delete_files, ranges, offsets - offsets[0], self._numbers[offsets[0] : offsets[-1]])

    def files(self, row: int) -> tuple[DataFile, ...]:
        """The delete files of a data file."""
        return self.tuples[row]

    @lazy
    def tuples(self) -> list[tuple[DataFile, ...]]:
        """The delete files of each data file."""
        # Adjacent data files mostly have the same delete files, and share one tuple.
        starts = np.append(np.flatnonzero(~self._repeats()), len(self._offsets) - 1)
        listed = self.delete_files.files(self._numbers)
        made: list[tuple[DataFile, ...]] = []
        for start, stop, first, end in zip(
            starts[:-1].tolist(),
            starts[1:].tolist(),
            self._offsets[starts[:-1]].tolist(),
            self._offsets[starts[:-1] + 1].tolist(),
            strict=True,
        ):
            made += [tuple(listed[first:end])] * (stop - start)
        for one in reversed(self._ranges):
            # Adjacent files mostly belong to one commit and partition, and have the same delete files.
            pairs = np.stack((one.firsts, np.maximum(one.firsts, one.ends)), axis=1)
            starts = np.concatenate(([0], np.flatnonzero(np.any(pairs[1:] != pairs[:-1], axis=1)) + 1, [len(pairs)]))
            for start, stop in pairwise(starts.tolist()):
                first, end = pairs[start].tolist()
                shared = tuple(self.delete_files.files(one.numbers[first:end]))
                if shared:
                    made[start:stop] = [shared + others for others in made[start:stop]]
        return made

    def _repeats(self) -> Mask:
        """Whether each data file has the same numbers as the one before it."""
        counts = np.diff(self._offsets)
        repeats = np.zeros(len(counts), bool)
        repeats[1:] = counts[1:] == counts[:-1]
        # For equal counts, the numbers of the previous file are ``count`` positions earlier.
        earlier = np.arange(len(self._numbers)) - np.repeat(counts, counts)
        differs = self._numbers != self._numbers[np.maximum(earlier, 0)]
        repeats &= np.bincount(np.repeat(np.arange(len(counts)), counts), differs, len(counts)) == 0
        return repeats

    def all(self) -> tuple[Ints, Ints]:
        """The offset of each data file's delete files, and the numbers of all these delete files, ranges included."""
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
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), self.delete_files.paths.take(pa.array(numbers)))

    def vectors(self) -> tuple[Ints, Ints]:
        """The data files with only a deletion vector, and the stated number of deleted rows of each."""
        rows = np.flatnonzero((self.counts() == 1) & (np.diff(self._offsets) == 1))
        numbers = self._numbers[self._offsets[rows]]
        alone = self.delete_files.is_vector[numbers]
        return rows[alone], self.delete_files.record_counts[numbers[alone]]
