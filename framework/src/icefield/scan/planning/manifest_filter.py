"""Pruning of manifests and of their entries by a filter.

Scans, deletes, overwrites and conflict checks share it. The filter is projected once for each partition spec. Manifests
are pruned by the summaries in the manifest list, and the others are read ahead of the consumer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from icefield.base.concurrency import lazy, map_ahead
from icefield.expressions import BooleanExpression, Residuals, inclusive_projection
from icefield.manifest import (
    EntryStatus,
    ManifestContent,
    ManifestEntries,
    ManifestFile,
    ManifestList,
    ManifestReader,
    ManifestRequest,
    read_manifest_list,
    stored_partition_type,
)
from icefield.manifest import schemas as f
from icefield.manifest.manifest_list import ADDED_SNAPSHOT, CONTENT, SPEC_ID
from icefield.metadata import Snapshot, TableMetadata
from icefield.partitioning import PartitionSpec
from icefield.scan.planning.manifest_reads import manifest_groups
from icefield.scan.planning.pruning import Mask, filter_types, manifests_that_may_match, matching_rows
from icefield.schema import Schema
from icefield.storage import FileIO
from icefield.types import StructType


@dataclass(frozen=True)
class SpecPlan:
    """The projection of the filter to one partition spec; computed once for all files."""

    spec: PartitionSpec
    schema: Schema
    partition_type: StructType
    partition_filter: BooleanExpression
    row_filter: BooleanExpression

    @lazy
    def residuals(self) -> Residuals:
        """The residual filter of each partition."""
        return Residuals(self.spec, self.schema, self.row_filter)


class ManifestFilter:
    """Prunes manifests of one table by a filter bound to ``schema``."""

    def __init__(self, metadata: TableMetadata, io: FileIO, schema: Schema, row_filter: BooleanExpression) -> None:
        self.reader = ManifestReader(io)
        self.row_filter = row_filter
        self.types = filter_types(row_filter)
        self._metadata = metadata
        self._schema = schema
        self._specs: dict[int, SpecPlan] = {}

    def spec_plan(self, spec_id: int) -> SpecPlan:
        """The projection of the filter to a spec. Raises ``InvalidMetadata`` if the table does not have the spec."""
        found = self._specs.get(spec_id)
        if found is None:
            spec = self._metadata.spec_by_id(spec_id)
            found = self._specs[spec_id] = SpecPlan(
                spec,
                self._schema,
                stored_partition_type(spec, self._schema, self._metadata.schemas),
                inclusive_projection(spec, self._schema, self.row_filter),
                self.row_filter,
            )
        return found

    def choose(
        self, manifests: ManifestList, content: ManifestContent, writers: Collection[int] | None = None
    ) -> npt.NDArray[Any]:
        """The positions in the list of manifests with this content that may list matching live files.

        With ``writers``, only manifests of these snapshots count, and manifests of version 1 without a stated snapshot.
        A manifest of deleted files alone counts as well.
        """
        kept = manifests.integers(CONTENT) == content
        if writers is None:
            kept &= manifests.may_have_live_files()
        else:
            stated = manifests.columns[ADDED_SNAPSHOT]  # null if a list of version 1 does not state it
            kept &= np.isin(np.asarray(stated.fill_null(0)), list(writers)) | np.asarray(stated.is_null())
        specs = manifests.integers(SPEC_ID)
        for spec_id in sorted({*specs[kept].tolist()}):
            plan = self.spec_plan(spec_id)
            rows = np.flatnonzero(kept & (specs == spec_id))
            kept[rows] = manifests_that_may_match(manifests, rows, plan.partition_type, plan.partition_filter)
        return np.flatnonzero(kept)

    def matching(
        self,
        manifests: Sequence[ManifestFile],
        row_filter: BooleanExpression,
        request: ManifestRequest,
        *,
        live: bool = True,
    ) -> Iterator[tuple[ManifestEntries, Mask | None, SpecPlan]]:
        """The entries of each manifest, in order, with a mask of the entries that may match; None for all.

        ``row_filter`` applies to column metrics; the filter of this object always applies to partitions. Only ``live``
        entries match by default. Manifests are read ahead of the consumer; see ``manifest_groups``.
        """
        typed = [(one, self.spec_plan(one.partition_spec_id).partition_type) for one in manifests]
        for parts in manifest_groups(self.reader, typed, request):
            plan = self.spec_plan(parts[0].spec_id)
            masks = matching_rows(parts, plan.partition_filter, row_filter, self.types, live=live)
            for part, mask in zip(parts, masks, strict=True):
                yield part, mask, plan

    def changed(
        self,
        manifests: Sequence[ManifestFile],
        snapshot_ids: Collection[int],
        status: EntryStatus,
        request: ManifestRequest,
    ) -> Iterator[tuple[ManifestEntries, Mask, SpecPlan]]:
        """The entries of manifests, with a mask of the matching entries of these snapshots that have this status."""
        for part, mask, plan in self.matching(manifests, self.row_filter, request, live=False):
            own = entries_by(part, snapshot_ids) & (part.status() == status)
            yield part, own if mask is None else own & mask, plan


def manifest_lists(
    metadata: TableMetadata, io: FileIO, snapshots: Sequence[Snapshot]
) -> Iterator[tuple[Snapshot, ManifestList]]:
    """Each snapshot with its manifest list, in order, some read ahead."""

    def read(snapshot: Snapshot) -> tuple[Snapshot, ManifestList]:
        return snapshot, read_manifest_list(io, snapshot, metadata)

    return map_ahead(snapshots, read, min(len(snapshots), io.workers(waiting=True)))


def entries_by(entries: ManifestEntries, snapshot_ids: Collection[int]) -> Mask:
    """Which entries were added, or removed, by one of the snapshots."""
    ids = np.fromiter(snapshot_ids, np.int64, len(snapshot_ids))
    return np.isin(np.asarray(entries.column(f.SNAPSHOT_ID)), ids)
