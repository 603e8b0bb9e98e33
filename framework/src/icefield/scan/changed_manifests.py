"""The changes of single snapshots: the entries of the manifests that they wrote."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from icefield.base.concurrency import map_ahead
from icefield.expressions import BooleanExpression
from icefield.manifest import (
    EntryStatus,
    ManifestContent,
    ManifestEntries,
    ManifestFile,
    ManifestList,
    ManifestRequest,
    read_manifest_list,
)
from icefield.manifest import schemas as f
from icefield.manifest.manifest_list import ADDED_SNAPSHOT, CONTENT, SPEC_ID
from icefield.metadata import TableMetadata
from icefield.metadata.snapshots import Snapshot
from icefield.scan.manifest_filter import ManifestFilter, SpecPlan
from icefield.scan.pruning import EntryGroup, Mask, files_that_may_match, manifests_that_may_match
from icefield.storage import FileIO


def manifest_lists(
    metadata: TableMetadata, io: FileIO, snapshots: Sequence[Snapshot]
) -> Iterator[tuple[Snapshot, ManifestList]]:
    """Each snapshot with its manifest list, in order, some read ahead."""

    def read(snapshot: Snapshot) -> tuple[Snapshot, ManifestList]:
        return snapshot, read_manifest_list(io, snapshot, metadata)

    return map_ahead(snapshots, read, min(len(snapshots), io.workers(waiting=True)))


def written_manifests(
    manifests: ManifestList, content: ManifestContent, snapshot_ids: Collection[int], matching: ManifestFilter
) -> list[ManifestFile]:
    """The manifests that some snapshots wrote and that may list matching files, including deleted files."""
    kept = manifests.integers(CONTENT) == content
    writers = manifests.columns[ADDED_SNAPSHOT]  # null if a list of version 1 does not state it
    kept &= np.isin(np.asarray(writers.fill_null(0)), list(snapshot_ids)) | np.asarray(writers.is_null())
    specs = manifests.integers(SPEC_ID)
    for spec_id in np.unique(specs[kept]).tolist():
        plan = matching.spec_plan(spec_id)
        rows = np.flatnonzero(kept & (specs == spec_id))
        kept[rows] = manifests_that_may_match(manifests, rows, plan.partition_type, plan.partition_filter)
    return manifests.select(np.flatnonzero(kept), summaries=False)


def changed_entries(
    manifests: Sequence[ManifestFile],
    snapshot_ids: Collection[int],
    status: EntryStatus,
    matching: ManifestFilter,
    row_filter: BooleanExpression,
    request: ManifestRequest,
) -> Iterator[tuple[ManifestEntries, Mask, SpecPlan]]:
    """The entries of manifests, with a mask of matching entries that the snapshots wrote with this status."""
    for parts in matching.groups(manifests, request):
        plan = matching.spec_plan(parts[0].spec_id)
        found = files_that_may_match(EntryGroup(parts, matching.types), plan.partition_filter, row_filter)
        start = 0
        for part in parts:
            own = found[start : start + len(part)]
            start += len(part)
            yield part, own & entries_by(part, snapshot_ids) & (part.status() == status), plan


def entries_by(entries: ManifestEntries, snapshot_ids: Collection[int]) -> Mask:
    """Which entries were added, or removed, by one of the snapshots."""
    ids = np.fromiter(snapshot_ids, np.int64, len(snapshot_ids))
    return np.isin(np.asarray(entries.column(f.SNAPSHOT_ID)), ids)
