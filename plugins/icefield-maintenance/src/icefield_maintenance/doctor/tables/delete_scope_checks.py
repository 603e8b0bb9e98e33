"""Checks of delete files together with all data files: each applies to its intended data files.

The delete index decides which delete files apply, as in scans and in the removal of dangling deletes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from icefield import manifest as f
from icefield.engine import DeleteIndex, partition_keys
from icefield.manifest import DataFileContent, ManifestEntries
from icefield.types import DELETE_FILE_PATH

from icefield_maintenance.doctor.tables import rules
from icefield_maintenance.doctor.tables.ledger import Ledger

RULES: Final = (rules.DANGLING, rules.DELETE_PARTITIONS)
COLUMNS: Final = frozenset(
    {f.CONTENT, f.FILE_PATH, f.FILE_FORMAT, f.SEQUENCE_NUMBER, f.REFERENCED_DATA_FILE, f.PARTITION}
)
"""The columns that are needed of all entries. Entries of delete files need the bounds as well."""
_Mask = npt.NDArray[np.bool_]
_Ints = npt.NDArray[np.int64]


class DeleteScopes:
    """The delete files of a snapshot: ``add`` its data files, manifest by manifest, then ``look``.

    All entries are live. Vectors without a data file, or with the data file of another vector, are left out: other
    checks report them. Raises ``InvalidMetadata`` for an entry without a sequence number, which another check reports.
    """

    def __init__(self, deletes: Sequence[ManifestEntries], unpartitioned: Collection[int]) -> None:
        taken = np.asarray(pc.fill_null(_ambiguous(deletes), False))
        starts = np.cumsum([0, *map(len, deletes)]).tolist()
        parts = [part.filter(~taken[start : start + len(part)]) for part, start in zip(deletes, starts, strict=False)]
        self._deletes = [part for part in parts if len(part)]
        self._index = DeleteIndex(self._deletes, unpartitioned)
        self._used: _Mask = np.zeros(sum(map(len, self._deletes)), bool)
        named = _named(self._deletes).dictionary_encode()
        self._names: pa.Array = named.dictionary
        self._places: _Ints = np.asarray(pc.fill_null(named.indices, -1)).astype(np.int64)
        """For each delete file: the number of the only data file to which it can apply; -1 without one."""
        self._is_live: _Mask = np.zeros(len(self._names), bool)

    def add(self, data: ManifestEntries) -> None:
        """Note which delete files apply to some data files. Raises ``InvalidMetadata``."""
        if not len(data) or not self._deletes:
            return
        assigned = self._index.assign(data)
        if assigned is not None:
            self._used |= assigned.used()
        places, _ = self._found(data)
        self._is_live[places] = True

    def look(self, data: Callable[[], Iterator[ManifestEntries]], ledger: Ledger) -> None:
        """Check the delete files. ``data`` reads the data files once more, if some delete files are not used."""
        ledger.look_at(rules.DELETE_PARTITIONS)
        unused = ~self._used
        named = self._places >= 0
        is_live = np.append(self._is_live, False)[self._places]
        misplaced = self._misplaced(unused & is_live, data)
        for path, name in self._of(misplaced):
            found = f"it deletes rows of {name}, which is of another partition, or of another spec"
            ledger.breach(rules.DELETE_PARTITIONS, path, found)
        ledger.look_at(rules.DANGLING)
        gone = named & ~is_live
        for path, name in self._of(unused & gone):
            ledger.breach(rules.DANGLING, path, f"it deletes rows of {name}, which is no file of the table")
        for path, _ in self._of(unused & ~gone & ~misplaced):
            found = "no data file that it could apply to is as old as it, or each has a deletion vector instead"
            ledger.breach(rules.DANGLING, path, found)

    def _found(self, data: ManifestEntries) -> tuple[_Ints, _Ints]:
        """The numbers of the named data files among some data files, and their rows there."""
        places = pc.index_in(data.column(f.FILE_PATH).cast(pa.binary()), value_set=self._names)
        rows = np.flatnonzero(np.asarray(places.is_valid()))
        return np.asarray(places.take(pa.array(rows))).astype(np.int64), rows

    def _misplaced(self, suspects: _Mask, data: Callable[[], Iterator[ManifestEntries]]) -> _Mask:
        """The mask of suspects that would apply if they had the partition of their data file."""
        misplaced: _Mask = np.zeros(len(suspects), bool)
        some = np.flatnonzero(suspects)
        if not len(some):
            return misplaced
        wanted = np.zeros(len(self._names), bool)
        wanted[self._places[some]] = True
        files: dict[int, tuple[int, Hashable]] = {}
        for part in data():
            places, rows = self._found(part)
            rows, places = rows[wanted[places]], places[wanted[places]]
            numbers = np.asarray(part.column(f.SEQUENCE_NUMBER))[rows].tolist()
            keys = partition_keys(part.spec_id, part.partition, rows)
            for place, number, key in zip(places.tolist(), numbers, keys, strict=True):
                files.setdefault(place, (number, key))
        vectors = np.asarray(_are_vectors(self._deletes))
        has_vector = np.zeros(len(self._names) + 1, bool)
        has_vector[self._places[vectors]] = True
        ages = np.asarray(_column(self._deletes, f.SEQUENCE_NUMBER))
        counts = vectors | ~has_vector[self._places]
        for row, key in zip(some.tolist(), _partitions(self._deletes, some), strict=True):
            age, own = files[int(self._places[row])]
            misplaced[row] = ages[row] >= age and counts[row] and own != key
        return misplaced

    def _of(self, chosen: _Mask) -> list[tuple[str, str]]:
        """The location of each chosen delete file, and the location of its data file."""
        rows = np.flatnonzero(chosen)
        if not len(rows):
            return []
        places = self._places[rows]
        names = self._names.take(pa.array(places, mask=places < 0)).to_pylist()
        paths = _column(self._deletes, f.FILE_PATH).take(pa.array(rows)).to_pylist()
        return [(path, (name or b"").decode(errors="replace")) for path, name in zip(paths, names, strict=True)]


def _ambiguous(deletes: Sequence[ManifestEntries]) -> pa.Array:
    """The mask of vectors without a data file, or with the same data file as another vector.

    Other checks report these.
    """
    if not deletes:
        return pa.array([], pa.bool_())
    named = pc.if_else(_are_vectors(deletes), pc.fill_null(_column(deletes, f.REFERENCED_DATA_FILE), ""), None)
    counts = pc.value_counts(named)
    several = counts.field(0).filter(pc.greater(counts.field(1), 1)).drop_null()
    return pc.or_(pc.equal(named, ""), pc.is_in(named, value_set=several))


def _column(parts: Sequence[ManifestEntries], number: int) -> pa.Array:
    return pa.concat_arrays([part.column(number) for part in parts])


def _are_vectors(parts: Sequence[ManifestEntries]) -> pa.Array:
    is_puffin = pc.equal(pc.utf8_lower(_column(parts, f.FILE_FORMAT)), "puffin")
    return pc.and_(is_puffin, pc.equal(_column(parts, f.CONTENT), int(DataFileContent.POSITION_DELETES)))


def _named(deletes: Sequence[ManifestEntries]) -> pa.Array:
    """The only data file of each position delete file or vector, by its reference or by equal bounds, else null."""
    found: list[pa.Array] = [pa.array([], pa.binary())]
    for part in deletes:
        referenced = part.column(f.REFERENCED_DATA_FILE).cast(pa.binary())
        low, high = (part.statistic(kind, DELETE_FILE_PATH.field_id) for kind in (f.LOWER_BOUNDS, f.UPPER_BOUNDS))
        named = pc.if_else(pc.equal(referenced, b""), None, referenced)
        if low is not None and high is not None:
            low, high = low.cast(pa.binary()), high.cast(pa.binary())
            same = pc.and_(pc.equal(low, high), pc.not_equal(high, b""))
            named = pc.coalesce(named, pc.if_else(same, low, None))
        by_position = pc.equal(part.column(f.CONTENT), int(DataFileContent.POSITION_DELETES))
        found.append(pc.if_else(by_position, named, None))
    return pa.concat_arrays(found)


def _partitions(parts: Sequence[ManifestEntries], numbers: _Ints) -> list[tuple[Hashable, ...]]:
    """The partition and spec of some files of some manifests."""
    starts = np.cumsum([0, *map(len, parts)])
    which = np.searchsorted(starts, numbers, side="right") - 1
    found: list[tuple[Hashable, ...]] = [()] * len(numbers)
    for number in np.unique(which).tolist():
        places, part = np.flatnonzero(which == number), parts[number]
        keys = partition_keys(part.spec_id, part.partition, numbers[places] - starts[number])
        for place, key in zip(places.tolist(), keys, strict=True):
            found[place] = key
    return found
