"""The delete files of a head in columns, and the data files that they apply to."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from icefield import manifest as f
from icefield.engine import (
    DELETE_STATISTICS,
    AssignedDeletes,
    Head,
    RowFilter,
    delete_index,
    partition_keys,
    tuple_groups,
)
from icefield.expressions import BooleanExpression
from icefield.manifest import DataFile, DataFileContent, ManifestContent, ManifestEntries
from icefield.storage import Mask
from icefield.toolkit import lazy
from icefield.types import DELETE_FILE_PATH

Ints = npt.NDArray[np.int64]


class DeleteSurvey:
    """The live delete files of a head, numbered over its manifests, and their assignment to data files.

    Raises ``InvalidMetadata`` for damaged manifests, and for two deletion vectors of one data file.
    """

    def __init__(self, head: Head) -> None:
        self.head = head
        self._parts: list[ManifestEntries] = []
        self._places: list[tuple[int, Ints, int]] = []
        manifests = head.live(ManifestContent.DELETES)
        read = head.read([manifest for _, manifest in manifests], statistics=DELETE_STATISTICS)
        for (position, _), entries in zip(manifests, read, strict=True):
            live = entries.filter(entries.live())
            if len(live):
                rows = np.arange(len(entries)) if len(live) == len(entries) else np.flatnonzero(entries.status() != 2)
                self._parts.append(live)
                self._places.append((position, rows, len(entries)))
        self._index = delete_index(head.metadata, self._parts)

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def column(self, number: int) -> pa.Array:
        """A column of fixed type over all delete files."""
        return pa.concat_arrays([part.column(number) for part in self._parts])

    def integers(self, number: int) -> Ints:
        """A column of integers, zero where it is null."""
        return np.asarray(pc.fill_null(self.column(number), 0)).astype(np.int64)

    @lazy
    def is_vector(self) -> Mask:
        """The mask of deletion vectors."""
        is_puffin = np.asarray(pc.equal(pc.utf8_lower(self.column(f.FILE_FORMAT)), "puffin"))
        mask: Mask = is_puffin & (self.integers(f.CONTENT) == DataFileContent.POSITION_DELETES)
        return mask

    @lazy
    def is_equality(self) -> Mask:
        """The mask of equality delete files."""
        mask: Mask = self.integers(f.CONTENT) == DataFileContent.EQUALITY_DELETES
        return mask

    @property
    def is_position(self) -> Mask:
        """The mask of position delete files, without deletion vectors."""
        mask: Mask = ~self.is_vector & ~self.is_equality
        return mask

    @lazy
    def sizes(self) -> Ints:
        """The bytes of each delete file. A deletion vector has its own size, not the size of its Puffin file."""
        sizes: Ints = np.where(self.is_vector, self.integers(f.CONTENT_SIZE), self.integers(f.FILE_SIZE))
        return sizes

    @property
    def names(self) -> Ints:
        """The length in bytes of each referenced data file's location, 0 if there is none."""
        lengths = pc.binary_length(self.column(f.REFERENCED_DATA_FILE))
        return np.asarray(pc.fill_null(lengths, 0)).astype(np.int64)

    @lazy
    def keys(self) -> pa.Array:
        """A unique key of each delete file: its location, and for a deletion vector also its offset."""
        paths = self.column(f.FILE_PATH).cast(pa.string())
        offsets = pc.fill_null(self.column(f.CONTENT_OFFSET), 0).cast(pa.string())
        return pc.if_else(pa.array(self.is_vector), pc.binary_join_element_wise(paths, offsets, "#"), paths)

    @lazy
    def sequences(self) -> Ints:
        """The data sequence numbers."""
        return self.integers(f.SEQUENCE_NUMBER)

    def matching(self, row_filter: BooleanExpression) -> Mask:
        """The mask of delete files in partitions that may hold rows of a filter."""
        judge = RowFilter(self.head, row_filter)
        return np.concatenate([judge.may_match(part) for part in self._parts])

    def groups(self, *, by_file: bool) -> Ints:
        """The group number of each delete file: its partition, or with ``by_file`` its only data file, if any."""
        numbers, groups = self._partitions
        if by_file:
            named = self._named()
            encoded = named.dictionary_encode().indices
            own = np.asarray(pc.fill_null(encoded, -1)).astype(np.int64)
            groups = np.where(own >= 0, len(numbers) + own, groups)
        return groups

    @property
    def partitions(self) -> int:
        """How many partitions have delete files: they have the first numbers of ``groups``."""
        return len(self._partitions[0])

    @lazy
    def _partitions(self) -> tuple[dict[Hashable, int], Ints]:
        """The number of each partition, and the partition number of each delete file."""
        numbers: dict[Hashable, int] = {}
        found = []
        for part in self._parts:
            rows, examples = tuple_groups(part.partition)
            keys = partition_keys(part.spec_id, part.partition, examples)
            found.append(np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)[rows])
        return numbers, np.concatenate(found)

    def data_files(self, chosen: Mask) -> Ints:
        """The number of data files in each partition to which a chosen delete file applies."""
        numbers, _ = self._partitions
        counts = np.zeros(len(numbers), np.int64)
        for part in self.affected(chosen)[0]:
            rows, examples = tuple_groups(part.partition)
            for key, count in zip(
                partition_keys(part.spec_id, part.partition, examples), np.bincount(rows).tolist(), strict=True
            ):
                if key in numbers:
                    counts[numbers[key]] += count
        return counts

    def _named(self) -> pa.Array:
        """The location of each delete file's only data file, null if it names none or several."""
        found = []
        for part in self._parts:
            low, high = (part.statistic(kind, DELETE_FILE_PATH.field_id) for kind in (f.LOWER_BOUNDS, f.UPPER_BOUNDS))
            named = part.column(f.REFERENCED_DATA_FILE).cast(pa.binary())
            if low is not None and high is not None:
                low, high = low.cast(pa.binary()), high.cast(pa.binary())
                named = pc.coalesce(named, pc.if_else(pc.equal(low, high), low, None))
            found.append(named)
        return pa.concat_arrays(found)

    def naming(self, paths: Collection[str]) -> Mask:
        """The mask of delete files with a single data file that is among ``paths``."""
        wanted = pa.array([path.encode() for path in paths], pa.binary())
        return np.asarray(pc.is_in(self._named(), value_set=wanted, skip_nulls=True))

    def used(self) -> Mask:
        """The mask of delete files that apply to a live data file."""
        used = np.zeros(len(self), bool)
        for _, assigned in self._assigned():
            used |= assigned.used()
        return used

    def affected(self, chosen: Mask) -> tuple[list[ManifestEntries], Mask]:
        """The data files to which a chosen delete file applies, and the mask of delete files that apply to any file."""
        used, parts = np.zeros(len(self), bool), []
        for entries, assigned in self._assigned():
            used |= assigned.used()
            having = assigned.having(chosen)
            if having.any():
                parts.append(entries.filter(having))
        return parts, used

    def applying(self, entries: ManifestEntries) -> AssignedDeletes | None:
        """The delete files that apply to some data files of one spec."""
        return self._index.assign(entries)

    def files(self, chosen: Mask) -> list[DataFile]:
        """Some of the delete files as objects."""
        found: list[DataFile] = []
        start = 0
        for part in self._parts:
            found += part.filter(chosen[start : start + len(part)]).data_files()
            start += len(part)
        return found

    def masks(self, chosen: Mask) -> dict[int, Mask]:
        """Delete files to remove, as masks by the position of their manifest."""
        found: dict[int, Mask] = {}
        start = 0
        for part, (position, rows, count) in zip(self._parts, self._places, strict=True):
            some = chosen[start : start + len(part)]
            start += len(part)
            if some.any():
                mask = np.zeros(count, bool)
                mask[rows[some]] = True
                found[position] = mask
        return found

    def _assigned(self) -> Iterator[tuple[ManifestEntries, AssignedDeletes]]:
        manifests = [manifest for _, manifest in self.head.live()] if len(self) else []
        for entries in self.head.read(manifests):
            live = entries.filter(entries.live())
            assigned = self._index.assign(live)
            if assigned is not None:
                yield live, assigned
