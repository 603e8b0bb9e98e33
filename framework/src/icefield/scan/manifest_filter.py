"""A filter against the manifests of a snapshot: which to open, and which of their entries may match.

Scans, deletes, overwrites and conflict checks share it. The filter is projected once for each partition spec,
manifests are left out by the summaries in the manifest list, and the others are read ahead of the consumer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from icefield.base.concurrency import lazy
from icefield.expressions import BooleanExpression, Residuals, inclusive_projection
from icefield.manifest import (
    ManifestContent,
    ManifestEntries,
    ManifestFile,
    ManifestList,
    ManifestReader,
    ManifestRequest,
    stored_partition_type,
)
from icefield.manifest.manifest_list import CONTENT, SPEC_ID
from icefield.metadata import TableMetadata
from icefield.partitioning import PartitionSpec
from icefield.scan.manifest_reads import manifest_groups
from icefield.scan.pruning import Mask, filter_types, manifests_that_may_match, matching_rows
from icefield.schema import Schema
from icefield.storage import FileIO
from icefield.types import StructType


@dataclass(frozen=True)
class SpecPlan:
    """What the filter means for one partition spec; settled once, whatever the number of files."""

    spec: PartitionSpec
    schema: Schema
    partition_type: StructType
    partition_filter: BooleanExpression
    row_filter: BooleanExpression

    @lazy
    def residuals(self) -> Residuals:
        """What is left of the filter in each partition."""
        return Residuals(self.spec, self.schema, self.row_filter)


class ManifestFilter:
    """A filter that is bound to ``schema``, against manifests of one table. ``workers``: threads that read them."""

    def __init__(
        self,
        metadata: TableMetadata,
        io: FileIO,
        schema: Schema,
        row_filter: BooleanExpression,
        workers: int | None = None,
    ) -> None:
        self.reader = ManifestReader(io)
        self.row_filter = row_filter
        self.types = filter_types(row_filter)
        self._metadata = metadata
        self._schema = schema
        self.workers = workers
        self._specs: dict[int, SpecPlan] = {}

    @property
    def specs(self) -> Sequence[SpecPlan]:
        """What the filter means for each of the specs that were met so far."""
        return [*self._specs.values()]

    def spec_plan(self, spec_id: int) -> SpecPlan:
        """What the filter means for a spec. Raises ``InvalidMetadata`` for a spec that the table does not have."""
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

    def choose(self, manifests: ManifestList, content: ManifestContent) -> npt.NDArray[Any]:
        """The positions in the list of the manifests of a content that may hold live files that match."""
        kept = (manifests.integers(CONTENT) == content) & manifests.may_have_live_files()
        specs = manifests.integers(SPEC_ID)
        for spec_id in np.unique(specs[kept]).tolist():
            plan = self.spec_plan(spec_id)
            rows = np.flatnonzero(kept & (specs == spec_id))
            kept[rows] = manifests_that_may_match(manifests, rows, plan.partition_type, plan.partition_filter)
        return np.flatnonzero(kept)

    def groups(self, manifests: Sequence[ManifestFile], request: ManifestRequest) -> Iterator[list[ManifestEntries]]:
        """The entries of each manifest, in order, read ahead of the consumer; see ``manifest_groups``."""
        typed = [(one, self.spec_plan(one.partition_spec_id).partition_type) for one in manifests]
        return manifest_groups(self.reader, typed, request, self.workers)

    def matching(
        self, manifests: Sequence[ManifestFile], row_filter: BooleanExpression, request: ManifestRequest
    ) -> Iterator[tuple[ManifestEntries, Mask | None, SpecPlan]]:
        """The entries of each manifest, in order, with the mask of those that are live and may match; None for all.

        ``row_filter`` judges by column metrics; the partition is always judged by the filter itself.
        """
        for found, plan in self.matching_groups(manifests, row_filter, request):
            for part, mask in found:
                yield part, mask, plan

    def matching_groups(
        self, manifests: Sequence[ManifestFile], row_filter: BooleanExpression, request: ManifestRequest
    ) -> Iterator[tuple[list[tuple[ManifestEntries, Mask | None]], SpecPlan]]:
        """As ``matching``, the manifests of one spec that are at hand together."""
        for parts in self.groups(manifests, request):
            plan = self.spec_plan(parts[0].spec_id)
            masks = matching_rows(parts, plan.partition_filter, row_filter, self.types)
            yield list(zip(parts, masks, strict=True)), plan
