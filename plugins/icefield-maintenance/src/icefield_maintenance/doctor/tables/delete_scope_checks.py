"""Checks of delete files together with all data files: each applies to its intended data files.

The delete index decides which delete files apply, as in scans and in the removal of dangling deletes.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from icefield import manifest as f
from icefield.engine import DeleteIndex, partition_keys
from icefield.errors import IcefieldError
from icefield.manifest import DataFileContent, ManifestEntries
from icefield.types import DELETE_FILE_PATH

from icefield_maintenance.doctor.tables import rules
from icefield_maintenance.doctor.tables.ledger import Ledger

RULES: Final = (rules.DANGLING, rules.DELETE_PARTITIONS)
COLUMNS: Final = (f.CONTENT, f.FILE_PATH, f.FILE_FORMAT, f.SEQUENCE_NUMBER, f.REFERENCED_DATA_FILE, f.PARTITION)
"""The columns that are needed of all entries. Entries of delete files need the bounds as well."""
_Mask = npt.NDArray[np.bool_]
_Ints = npt.NDArray[np.int64]


def look_at_scopes(
    deletes: Sequence[ManifestEntries], data: Sequence[ManifestEntries], unpartitioned: Collection[int], ledger: Ledger
) -> None:
    """Check all delete files of a snapshot together with its data files; all entries are live."""
    ledger.look_at(rules.DANGLING)
    taken = np.asarray(pc.fill_null(_ambiguous(deletes), False))
    starts = np.cumsum([0, *map(len, deletes)]).tolist()
    parts = [part.filter(~taken[start : start + len(part)]) for part, start in zip(deletes, starts, strict=False)]
    scopes = _Scopes([part for part in parts if len(part)], [part for part in data if len(part)])
    if not len(scopes):
        return
    try:
        unused = ~scopes.used(unpartitioned)
    except IcefieldError:
        return  # an entry has no sequence number, which another check reports
    ledger.look_at(rules.DELETE_PARTITIONS)
    misplaced = scopes.misplaced(unused)
    for path, named in scopes.of(misplaced):
        found = f"it deletes rows of {named}, which is of another partition, or of another spec"
        ledger.breach(rules.DELETE_PARTITIONS, path, found)
    ledger.look_at(rules.DANGLING)
    gone = scopes.gone()
    for path, named in scopes.of(unused & gone):
        ledger.breach(rules.DANGLING, path, f"it deletes rows of {named}, which is no file of the table")
    for path, _ in scopes.of(unused & ~gone & ~misplaced):
        found = "no data file that it could apply to is as old as it, or each has a deletion vector instead"
        ledger.breach(rules.DANGLING, path, found)


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


class _Scopes:
    """The delete files and the data files of a snapshot, each numbered over their manifests."""

    def __init__(self, deletes: Sequence[ManifestEntries], data: Sequence[ManifestEntries]) -> None:
        self._deletes, self._data = deletes, data
        if deletes:
            self._named = _named(deletes)
            self._live = _column(data, f.FILE_PATH).cast(pa.binary()) if data else pa.array([], pa.binary())

    def __len__(self) -> int:
        return sum(map(len, self._deletes))

    def used(self, unpartitioned: Collection[int]) -> _Mask:
        """The mask of delete files that apply to a data file. Raises ``InvalidMetadata``."""
        index = DeleteIndex(self._deletes, unpartitioned)
        used: _Mask = np.zeros(len(self), bool)
        for part in self._data:
            assigned = index.assign(part)
            if assigned is not None:
                used |= assigned.used()
        return used

    def gone(self) -> _Mask:
        """The mask of delete files with a single data file that is not live."""
        is_live = pc.is_in(self._named, value_set=self._live)
        mask: _Mask = np.asarray(pc.and_not(pc.is_valid(self._named), is_live))
        return mask

    def misplaced(self, unused: _Mask) -> _Mask:
        """The mask of unused delete files that would apply if they had the partition of their data file."""
        places = pc.index_in(self._named, value_set=self._live)
        some = np.flatnonzero(unused & np.asarray(pc.is_valid(places)))
        found: _Mask = np.zeros(len(self), bool)
        if not len(some):
            return found
        files = np.asarray(places.take(pa.array(some))).astype(np.int64)
        ages = np.asarray(_column(self._deletes, f.SEQUENCE_NUMBER))[some]
        in_time = ages >= np.asarray(_column(self._data, f.SEQUENCE_NUMBER))[files]
        vectors = np.asarray(_are_vectors(self._deletes))
        replaced = pc.is_in(self._named, value_set=self._named.filter(pa.array(vectors)), skip_nulls=True)
        counts = vectors[some] | ~np.asarray(replaced)[some]
        pairs = zip(_partitions(self._deletes, some), _partitions(self._data, files), strict=True)
        found[some] = in_time & counts & np.fromiter((one != other for one, other in pairs), bool, len(some))
        return found

    def of(self, chosen: _Mask) -> list[tuple[str, str]]:
        """The location of each chosen delete file, and the location of its data file."""
        rows = pa.array(np.flatnonzero(chosen))
        named = [(name or b"").decode(errors="replace") for name in self._named.take(rows).to_pylist()]
        return list(zip(_column(self._deletes, f.FILE_PATH).take(rows).to_pylist(), named, strict=True))


def _named(deletes: Sequence[ManifestEntries]) -> pa.Array:
    """The only data file of each position delete file or vector, by its reference or by equal bounds, else null."""
    found = []
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
