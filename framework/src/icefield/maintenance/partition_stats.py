"""Computing the statistics of each partition of a snapshot, in full or from those of an ancestor."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

import numpy as np

from icefield.errors import IcefieldError
from icefield.expressions import AlwaysTrue
from icefield.maintenance.partition_stats_file import read_stats, sums_of
from icefield.maintenance.partition_sums import COLUMNS, FILES, PartitionSums, SummingUp
from icefield.manifest import ManifestFile, ManifestRequest, read_manifest_list
from icefield.metadata import PartitionStatisticsFile, TableMetadata
from icefield.metadata.snapshots import Snapshot
from icefield.scan.manifest_filter import ManifestFilter
from icefield.scan.united_partition import UnitedPartition
from icefield.storage import FileIO

_MOST_FILES: Final = 2**31 - 1

_log = logging.getLogger(__name__)


def computed_in_full(metadata: TableMetadata, io: FileIO, snapshot: Snapshot, united: UnitedPartition) -> PartitionSums:
    """What each partition holds, by every manifest of a snapshot."""
    total = SummingUp(metadata, united)
    manifests = ManifestFilter(metadata, io, metadata.schema(), AlwaysTrue())
    for group in manifests.groups(read_manifest_list(io, snapshot, metadata).manifests, ManifestRequest(COLUMNS)):
        total.add_live(group)
    return total.result()


def computed_from(
    metadata: TableMetadata, io: FileIO, snapshot: Snapshot, united: UnitedPartition, known: PartitionStatisticsFile
) -> PartitionSums | None:
    """What each partition holds, by the statistics of an ancestor and by the manifests that were written since.

    None where they do not add up, or cannot be read: the statistics are of no use then. What a snapshot removed
    stands in no manifest of a later one, so that each snapshot's own manifests are read.
    """
    total = SummingUp(metadata, united)
    try:
        total.add(sums_of(read_stats(io, metadata, known), known.statistics_path))
        manifests = ManifestFilter(metadata, io, metadata.schema(), AlwaysTrue())
        written = list(_written_since(metadata, io, snapshot, known.snapshot_id))
        for group in manifests.groups(written, ManifestRequest(COLUMNS)):
            total.add_changes(group)
        found = total.result()
    except IcefieldError as error:
        _log.warning("the partition statistics of snapshot %d are not used: %s", known.snapshot_id, error)
        return None
    if np.any(found.sums < 0) or np.any(found.sums[:, FILES] > _MOST_FILES):
        _log.warning(
            "the partition statistics of snapshot %d and what later snapshots changed do not add up; they are not used",
            known.snapshot_id,
        )
        return None
    return found


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
