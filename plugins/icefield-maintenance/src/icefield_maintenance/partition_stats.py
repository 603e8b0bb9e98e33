"""Computing the statistics of each partition of a snapshot, in full or from the statistics of an ancestor."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from icefield import manifest as f
from icefield.abc import Attempt, Work, WorkRunner
from icefield.engine import (
    SUMMED_COLUMNS,
    ManifestFilter,
    PartitionSums,
    SummingUp,
    UnitedPartition,
    combined,
    manifest_groups,
    read_stats,
    run_in_lots,
    snapshot_times,
)
from icefield.errors import IcefieldError
from icefield.expressions import AlwaysTrue
from icefield.manifest import (
    EntryStatus,
    ManifestEntries,
    ManifestFile,
    ManifestReader,
    ManifestRequest,
    read_manifest_list,
)
from icefield.metadata import PartitionStatisticsFile, Snapshot, TableMetadata
from icefield.storage import FileIO
from icefield.types import StructType

from icefield_maintenance.partition_stats_file import COUNTS_OF_FILES, sums_of

_MOST_FILES: Final = 2**31 - 1

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SumManifests(Work[Sequence[ManifestFile], PartitionSums]):
    """Adds up lots of manifests: their live files, or the changes of their snapshots (``changes``).

    ``types``: the partition types of the specs; ``times``: the time of each snapshot of the table (ms).
    """

    io: FileIO
    types: Mapping[int, StructType]
    united: UnitedPartition
    times: Mapping[int, int]
    changes: bool

    def do(self, item: Sequence[ManifestFile], attempt: Attempt) -> PartitionSums:
        """The sums of the partitions in a lot, each partition once."""
        total = SummingUp(self.times, self.united)
        typed = [(one, self.types[one.partition_spec_id]) for one in item]
        reader = ManifestReader(self.io)
        for group in manifest_groups(reader, typed, ManifestRequest(SUMMED_COLUMNS), attempt.threads):
            if self.changes:
                _add_changes(total, group)
            else:
                total.add_live(group)
        return total.result()


def _add_changes(total: SummingUp, entries: Iterable[ManifestEntries]) -> None:
    """Add the files that the snapshots of the manifests added, and subtract the files that they removed."""
    for part in entries:
        own = np.asarray(part.column(f.SNAPSHOT_ID)) == part.manifest.added_snapshot_id
        changed = part.filter(own & (part.status() != EntryStatus.EXISTING))
        total.add_signed(changed, np.where(changed.status() == EntryStatus.DELETED, np.int64(-1), np.int64(1)))


def computed_in_full(
    metadata: TableMetadata, io: FileIO, snapshot: Snapshot, united: UnitedPartition, runner: WorkRunner | None
) -> PartitionSums:
    """The sums of each partition, from every manifest of a snapshot. ``runner`` reads them where they are large."""
    manifests = read_manifest_list(io, snapshot, metadata).manifests
    return _sums(metadata, io, [*manifests], united, runner, changes=False)


def computed_from(
    metadata: TableMetadata,
    io: FileIO,
    snapshot: Snapshot,
    united: UnitedPartition,
    known: PartitionStatisticsFile,
    runner: WorkRunner | None,
) -> PartitionSums | None:
    """The sums of each partition, from the statistics of an ancestor and from the manifests written since.

    None if the sums are inconsistent or cannot be read: the statistics are then unusable. The manifests of a later
    snapshot do not list earlier removals, so that the own manifests of each snapshot are read.
    """
    try:
        before = sums_of(read_stats(io, metadata, known), known.statistics_path)
        written = list(_written_since(metadata, io, snapshot, known.snapshot_id))
        found = combined([before, _sums(metadata, io, written, united, runner, changes=True)])
    except IcefieldError as error:
        _log.warning("the partition statistics of snapshot %d are not used: %s", known.snapshot_id, error)
        return None
    if np.any(found.sums < 0) or np.any(found.sums[:, COUNTS_OF_FILES] > _MOST_FILES):
        _log.warning(
            "the partition statistics of snapshot %d and what later snapshots changed do not add up; they are not used",
            known.snapshot_id,
        )
        return None
    return found


def _sums(
    metadata: TableMetadata,
    io: FileIO,
    manifests: Sequence[ManifestFile],
    united: UnitedPartition,
    runner: WorkRunner | None,
    *,
    changes: bool,
) -> PartitionSums:
    """The sums of manifests. ``runner`` reads manifests where they are large."""
    plans = ManifestFilter(metadata, io, metadata.schema(), AlwaysTrue())
    types = {each: plans.spec_plan(each).partition_type for each in {one.partition_spec_id for one in manifests}}
    work = SumManifests(io, types, united, snapshot_times(metadata), changes)
    parts = run_in_lots(work, manifests, runner)
    return combined(parts) if parts else work.do(manifests, Attempt(1))


def nearest_known(metadata: TableMetadata, snapshot: Snapshot) -> PartitionStatisticsFile | None:
    """The statistics file of a snapshot, or of its nearest ancestor that has one; None where there is none."""
    by_snapshot = {file.snapshot_id: file for file in metadata.partition_statistics}
    if not by_snapshot:
        return None
    ids = metadata.ancestor_ids(snapshot.snapshot_id)
    return next((by_snapshot[each] for each in ids if each in by_snapshot), None)


def _written_since(metadata: TableMetadata, io: FileIO, snapshot: Snapshot, ancestor_id: int) -> Iterable[ManifestFile]:
    for each in metadata.ancestors(snapshot.snapshot_id):
        if each.snapshot_id == ancestor_id:
            return
        for manifest in read_manifest_list(io, each, metadata).manifests:
            if manifest.added_snapshot_id == each.snapshot_id:
                yield manifest
