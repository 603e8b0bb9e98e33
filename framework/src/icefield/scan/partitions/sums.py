"""Sums of rows, files and deletes for each partition, over manifest entries in whole columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.errors import InvalidMetadata
from icefield.manifest import DataFileContent, EntryStatus, ManifestEntries
from icefield.manifest import schemas as f
from icefield.metadata import TableMetadata
from icefield.partitioning.tuples import tuple_groups
from icefield.scan.deletes.targets import vectors
from icefield.scan.partitions.united import UnitedPartition
from icefield.types.arrow.equality import Ints

SUMS: Final = (
    "data_record_count",
    "data_file_count",
    "total_data_file_size_in_bytes",
    "position_delete_record_count",
    "position_delete_file_count",
    "dv_count",
    "equality_delete_record_count",
    "equality_delete_file_count",
)
"""The columns of ``PartitionSums.sums``."""

SUMMED_COLUMNS: Final = frozenset(
    {f.STATUS, f.SNAPSHOT_ID, f.CONTENT, f.FILE_FORMAT, f.RECORD_COUNT, f.FILE_SIZE, f.PARTITION}
)
"""The manifest columns to read."""

_LARGEST: Final = 2.0**62


@dataclass(frozen=True, slots=True)
class PartitionSums:
    """One row per partition, in columns.

    A row has the tuple with the fields of all specs, the spec, and the sums in the order of ``SUMS``. It also has the
    snapshot of the last change and its time (ms). A time of -1 is unknown.
    """

    partition: pa.StructArray
    spec_ids: Ints
    sums: Ints
    times: Ints
    snapshot_ids: Ints

    def __len__(self) -> int:
        return len(self.spec_ids)

    def take(self, rows: Ints) -> PartitionSums:
        """The partitions at these positions."""
        chosen = self.partition.take(pa.array(rows))
        return PartitionSums(chosen, self.spec_ids[rows], self.sums[rows], self.times[rows], self.snapshot_ids[rows])


def combined(parts: Sequence[PartitionSums]) -> PartitionSums:
    """The merged partitions of several parts. Raises ``InvalidMetadata`` for sums that overflow a long."""
    partition = pa.concat_arrays([part.partition for part in parts])
    columns = [(part.spec_ids, part.sums, part.times, part.snapshot_ids) for part in parts]
    spec_ids, sums, times, snapshot_ids = (np.concatenate(column) for column in zip(*columns, strict=True))
    if not len(spec_ids):
        return PartitionSums(partition, spec_ids, sums, times, snapshot_ids)
    fields = [partition.field(place) for place in range(partition.type.num_fields)]
    keyed = pa.StructArray.from_arrays(
        [pa.array(spec_ids), *fields], names=[str(place) for place in range(len(fields) + 1)]
    )
    numbers, rows = tuple_groups(keyed)
    summed = np.zeros((len(rows), len(SUMS)), np.int64)
    for place, column in enumerate(sums.T):
        if column.any():
            if np.abs(np.bincount(numbers, column)).max() > _LARGEST:
                raise InvalidMetadata("manifests of the table state counts and sizes whose sums are beyond any table")
            np.add.at(summed[:, place], numbers, column)
    latest = np.full(len(rows), np.iinfo(np.int64).min)
    np.maximum.at(latest, numbers, times)
    last = np.zeros(len(rows), np.int64)
    latest_rows = np.flatnonzero(times == latest[numbers])
    # If several rows have the latest time of a partition, the last assignment wins.
    last[numbers[latest_rows]] = snapshot_ids[latest_rows]
    return PartitionSums(partition.take(pa.array(rows)), spec_ids[rows], summed, latest, last)


def snapshot_times(metadata: TableMetadata) -> dict[int, int]:
    """The times of the snapshots of a table, by id (ms)."""
    return {each.snapshot_id: each.timestamp_ms for each in metadata.snapshots}


class SummingUp:
    """Adds up entries, manifest by manifest, in memory that grows with the number of partitions only.

    ``times``: the times of the table's snapshots, by id (ms).
    """

    def __init__(self, times: Mapping[int, int], united: UnitedPartition) -> None:
        self._times = times
        self._united = united
        self._parts: list[PartitionSums] = []
        self._waiting = 0
        self._least = 1 << 17

    def add(self, part: PartitionSums) -> None:
        """Add the sums of one part."""
        self._parts.append(part)
        self._waiting += len(part)
        if self._waiting > self._least:
            self._parts = [combined(self._parts)]
            self._waiting = len(self._parts[0])
            self._least = max(self._least, 2 * self._waiting)

    def add_live(self, entries: Iterable[ManifestEntries]) -> None:
        """Count the live files of manifests. A deleted file only counts for the time of the last change."""
        for part in entries:
            self.add_signed(part, (part.status() != EntryStatus.DELETED).astype(np.int64))

    def result(self) -> PartitionSums:
        """The sums of all parts."""
        kind = self._united.arrow_type
        none = np.zeros(0, np.int64)
        empty = PartitionSums(pa.nulls(0, kind), none, np.zeros((0, len(SUMS)), np.int64), none, none)
        return combined([empty, *self._parts])

    def add_signed(self, part: ManifestEntries, signs: Ints) -> None:
        """Add each file of a manifest as many times as its sign says: 1, 0 or -1."""
        count = len(part)
        contents = np.asarray(part.column(f.CONTENT))
        rows, sizes = np.asarray(part.column(f.RECORD_COUNT)), np.asarray(part.column(f.FILE_SIZE))
        if count and (rows.min() < 0 or sizes.min() < 0):
            location = part.manifest.manifest_path
            raise InvalidMetadata(
                f"manifest {location} states a negative count or size of a file, so that nothing can be summed up",
                location=location,
            )
        is_vector = vectors(part.column(f.FILE_FORMAT))
        data = contents == DataFileContent.DATA
        positions = contents == DataFileContent.POSITION_DELETES
        equality = contents == DataFileContent.EQUALITY_DELETES
        columns: tuple[tuple[npt.NDArray[np.bool_], Ints | int], ...] = (
            (data, rows),
            (data, 1),
            (data, sizes),
            (positions, rows),
            (positions & ~is_vector, 1),
            (positions & is_vector, 1),
            (equality, rows),
            (equality, 1),
        )
        sums = np.zeros((len(SUMS), count), np.int64)
        for place, (mask, values) in enumerate(columns):
            if mask.any():
                sums[place] = signs * values * mask
        ids = np.asarray(part.column(f.SNAPSHOT_ID)).astype(np.int64)
        distinct, places = np.unique(ids, return_inverse=True)
        # -1 for an expired snapshot.
        times = np.array([self._times.get(each, -1) for each in distinct.tolist()], np.int64)
        self.add(
            combined(
                [
                    PartitionSums(
                        self._united.tuples(part.spec_id, part.partition),
                        np.full(count, part.spec_id, np.int64),
                        sums.T,
                        times[places],
                        ids,
                    )
                ]
            )
        )
