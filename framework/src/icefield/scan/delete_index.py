"""Which delete files apply to which data files.

Spec: "Scan Planning". By the *data* sequence number: an equality delete applies to files strictly older than itself,
a position delete and a deletion vector also to files of the same commit. All apply within one partition of one spec,
but for equality deletes of an unpartitioned spec, which are global. A deletion vector takes the place of every
position delete file of its data file.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import InvalidMetadata
from icefield.manifest import DataFile, DataFileContent, ManifestEntries
from icefield.manifest import schemas as f
from icefield.partitioning.tuples import Ints, tuple_groups
from icefield.scan.partition_keys import partition_keys
from icefield.types.reserved import DELETE_FILE_PATH

DELETE_STATISTICS: Final = {
    f.LOWER_BOUNDS: frozenset({DELETE_FILE_PATH.field_id}),
    f.UPPER_BOUNDS: frozenset({DELETE_FILE_PATH.field_id}),
}
"""The statistics that the index needs of delete files: the bounds of the paths that a position delete file names."""


@dataclass(slots=True)
class _BySequence:
    """Delete files of one kind and scope, oldest first."""

    numbers: Ints
    rows: Ints

    def from_sequence(self, data_sequence: int, *, inclusive: bool) -> Ints:
        """Those that apply to a file of that data sequence number."""
        first = np.searchsorted(self.numbers, data_sequence, "left" if inclusive else "right")
        return self.rows[first:]


@dataclass(slots=True)
class _ByBounds:
    """Position delete files of one partition, found by the bounds of the paths that they name.

    ``bounded`` are those of which both are known, by the lower one; ``ceilings`` are the greatest upper bounds up to
    each of them, so that the search for those that end behind a path can stop.
    """

    lows: list[bytes]
    highs: list[bytes]
    ceilings: list[bytes]
    bounded: list[int]
    others: list[int]

    @classmethod
    def of(cls, rows: Ints, low: Sequence[bytes | None], high: Sequence[bytes | None]) -> _ByBounds:
        """Those rows of the index, ordered."""
        known: list[tuple[bytes, bytes, int]] = []
        others = []
        for row in rows.tolist():
            start, end = low[row], high[row]
            if start is None or end is None:
                others.append(row)
            else:
                known.append((start, end, row))
        known.sort()
        lows, highs = [start for start, _, _ in known], [end for _, end, _ in known]
        return cls(lows, highs, list(accumulate(highs, max)), [row for _, _, row in known], others)

    def naming(self, path: bytes, low: Sequence[bytes | None], high: Sequence[bytes | None]) -> list[int]:
        """Those that may name a data file."""
        found = []
        for row in self.others:
            start, end = low[row], high[row]
            if (start is None or start <= path) and (end is None or path <= end):
                found.append(row)
        place = bisect_right(self.lows, path) - 1
        while place >= 0 and self.ceilings[place] >= path:
            if self.highs[place] >= path:
                found.append(self.bounded[place])
            place -= 1
        return found


class DeleteIndex:
    """The delete files of a snapshot, ready to be looked up for many data files at once.

    ``entries`` are live entries of delete manifests, read with ``DELETE_STATISTICS``; ``unpartitioned`` are the ids
    of the specs without partitions. Raises ``InvalidMetadata`` for two deletion vectors of one data file.
    """

    def __init__(self, entries: Iterable[ManifestEntries], unpartitioned: Collection[int]) -> None:
        self._parts = [part for part in entries if len(part)]
        self._starts = np.cumsum([0, *map(len, self._parts)])
        self._files: dict[int, list[DataFile]] = {}
        self._partitions: dict[Any, int] = {}
        self._global = _BySequence(np.zeros(0, np.int64), np.zeros(0, np.int64))
        self._equality: dict[int, _BySequence] = {}
        self._position: dict[int, _ByBounds] = {}
        self._by_path: dict[str, list[int]] = {}
        self._vectors: dict[str, int] = {}
        if self._parts:
            self._build(frozenset(unpartitioned))
        self._paths = pa.array([*self._by_path, *(p for p in self._vectors if p not in self._by_path)], pa.string())

    def __len__(self) -> int:
        return int(self._starts[-1])

    def assign(self, data: ManifestEntries) -> dict[int, tuple[DataFile, ...]]:
        """The delete files that apply to each of some data files of one spec, by row; rows without any are left out."""
        if not self._parts or not len(data):
            return {}
        sequences = _sequences(data)
        numbers, examples = tuple_groups(data.partition)
        keys = partition_keys(data.spec_id, data.partition, examples)
        groups = np.array([self._partitions.get(key, -1) for key in keys], np.int64)[numbers]
        affected = self._affected(data, groups, sequences)
        paths = data.column(f.FILE_PATH).take(pa.array(affected)).to_pylist()
        assigned = {}
        shared: dict[tuple[int, ...], tuple[DataFile, ...]] = {}
        for row, path in zip(affected.tolist(), paths, strict=True):
            found = tuple(self._applying(path, int(groups[row]), int(sequences[row])))
            if found:
                if found not in shared:
                    shared[found] = tuple(self._file(number) for number in found)
                assigned[row] = shared[found]
        return assigned

    def _affected(self, data: ManifestEntries, groups: Ints, sequences: Ints) -> Ints:
        """The rows that may have deletes."""
        mask = np.zeros(len(data), bool)
        if len(self._global.numbers):
            mask |= sequences < self._global.numbers[-1]
        scoped = [*self._equality, *self._position]
        if scoped:
            mask |= np.isin(groups, np.array(scoped, np.int64))
        if len(self._paths):
            mask |= np.asarray(pc.is_in(data.column(f.FILE_PATH), value_set=self._paths))
        return np.flatnonzero(mask)

    def _applying(self, path: str, group: int, sequence: int) -> Iterable[int]:
        if len(self._global.numbers):
            yield from self._global.from_sequence(sequence, inclusive=False).tolist()
        equality = self._equality.get(group)
        if equality is not None:
            yield from equality.from_sequence(sequence, inclusive=False).tolist()
        vector = self._vectors.get(path)
        if vector is not None and self._in_scope(vector, group, sequence):
            yield vector
            return
        position = self._position.get(group)
        if position is not None:
            named = position.naming(path.encode(), self._low, self._high)
            fitting = [(self._ages[number], number) for number in named if sequence <= self._ages[number]]
            yield from (number for _, number in sorted(fitting))
        for number in self._by_path.get(path, ()):
            if self._in_scope(number, group, sequence):
                yield number

    def _in_scope(self, number: int, group: int, sequence: int) -> bool:
        return bool(self._groups[number] == group and sequence <= self._numbers[number])

    def _build(self, unpartitioned: frozenset[int]) -> None:
        content = np.concatenate([np.asarray(part.column(f.CONTENT)) for part in self._parts])
        self._numbers = np.concatenate([_sequences(part) for part in self._parts])
        self._groups = np.concatenate([self._group_numbers(part) for part in self._parts])
        specs = np.repeat([part.spec_id for part in self._parts], [len(part) for part in self._parts])
        self._low, self._high = self._path_bounds(f.LOWER_BOUNDS), self._path_bounds(f.UPPER_BOUNDS)
        equality = content == DataFileContent.EQUALITY_DELETES
        is_global = equality & np.isin(specs, list(unpartitioned))
        self._global = self._by_sequence(np.flatnonzero(is_global))
        self._equality = self._grouped(np.flatnonzero(equality & ~is_global))
        self._ages: list[int] = self._numbers.tolist()
        scoped = self._grouped(self._with_paths(np.flatnonzero(~equality)))
        self._position = {group: _ByBounds.of(files.rows, self._low, self._high) for group, files in scoped.items()}

    def _group_numbers(self, part: ManifestEntries) -> Ints:
        numbers, examples = tuple_groups(part.partition)
        keys = partition_keys(part.spec_id, part.partition, examples)
        known = [self._partitions.setdefault(key, len(self._partitions)) for key in keys]
        return np.array(known, np.int64)[numbers]

    def _path_bounds(self, kind: int) -> list[bytes | None]:
        bounds: list[bytes | None] = []
        for part in self._parts:
            found = part.statistic(kind, DELETE_FILE_PATH.field_id)
            bounds.extend([None] * len(part) if found is None else found.to_pylist())
        return bounds

    def _with_paths(self, rows: Ints) -> Ints:
        """Put away the deletes of a single data file by its path; the others are left."""
        referenced = [path for part in self._parts for path in part.column(f.REFERENCED_DATA_FILE).to_pylist()]
        formats = [name for part in self._parts for name in part.column(f.FILE_FORMAT).to_pylist()]
        left = []
        for number in rows.tolist():
            path = referenced[number]
            if formats[number].lower() == "puffin":
                self._add_vector(path, number)
                continue
            if path is None and self._low[number] is not None and self._low[number] == self._high[number]:
                # All paths in the file are the same one.
                path = (self._low[number] or b"").decode("utf-8", "replace")
            if path is None:
                left.append(number)
            else:
                self._by_path.setdefault(path, []).append(number)
        return np.array(left, np.int64)

    def _add_vector(self, path: str | None, number: int) -> None:
        manifest = self._locate(number)[0].manifest.manifest_path
        if path is None:
            raise InvalidMetadata(f"{manifest} has a deletion vector that names no data file", location=manifest)
        if path in self._vectors:
            raise InvalidMetadata(f"{manifest}: data file {path} has two deletion vectors", location=manifest)
        self._vectors[path] = number

    def _by_sequence(self, rows: Ints) -> _BySequence:
        ordered = rows[np.argsort(self._numbers[rows], kind="stable")]
        return _BySequence(self._numbers[ordered], ordered)

    def _grouped(self, rows: Ints) -> dict[int, _BySequence]:
        groups = self._groups[rows]
        order = np.argsort(groups, kind="stable")
        found, starts = np.unique(groups[order], return_index=True)
        pieces: Sequence[Ints] = np.split(rows[order], starts[1:]) if len(found) else []
        return {int(group): self._by_sequence(piece) for group, piece in zip(found, pieces, strict=True)}

    def _locate(self, number: int) -> tuple[ManifestEntries, int]:
        part = int(np.searchsorted(self._starts, number, side="right")) - 1
        return self._parts[part], number - int(self._starts[part])

    def _file(self, number: int) -> DataFile:
        place = int(np.searchsorted(self._starts, number, side="right")) - 1
        files = self._files.get(place)
        if files is None:
            # All of a manifest at once: one by one would cost many times as much.
            files = self._files[place] = list(self._parts[place].data_files())
        return files[number - int(self._starts[place])]


def _sequences(entries: ManifestEntries) -> Ints:
    """The data sequence numbers. Raises ``InvalidMetadata`` when a live entry has none."""
    column = entries.column(f.SEQUENCE_NUMBER)
    if column.null_count:
        location = entries.manifest.manifest_path
        raise InvalidMetadata(f"manifest {location} has a live entry without a sequence number", location=location)
    return np.asarray(column)
