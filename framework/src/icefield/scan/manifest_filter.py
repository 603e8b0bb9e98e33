"""Pruning of manifests and of their entries by a filter.

Scans, deletes, overwrites and conflict checks share it. The filter is projected once for each partition spec. Manifests
are pruned by the summaries in the manifest list, and the others are read ahead of the consumer.
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
    """Prunes manifests of one table by a filter bound to ``schema``. ``workers``: the number of reading threads."""

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
        """The projections of the filter to the specs seen so far."""
        return [*self._specs.values()]

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

    def choose(self, manifests: ManifestList, content: ManifestContent) -> npt.NDArray[Any]:
        """The positions in the list of manifests with this content that may list matching live files."""
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
        """The entries of each manifest, in order, with a mask of the live entries that may match; None for all.

        ``row_filter`` applies to column metrics; the filter of this object always applies to partitions.
        """
        for found, plan in self.matching_groups(manifests, row_filter, request):
            for part, mask in found:
                yield part, mask, plan

    def matching_groups(
        self, manifests: Sequence[ManifestFile], row_filter: BooleanExpression, request: ManifestRequest
    ) -> Iterator[tuple[list[tuple[ManifestEntries, Mask | None]], SpecPlan]]:
        """Like ``matching``, with groups of manifests of one spec that are read already."""
        for parts in self.groups(manifests, request):
            plan = self.spec_plan(parts[0].spec_id)
            masks = matching_rows(parts, plan.partition_filter, row_filter, self.types)
            yield list(zip(parts, masks, strict=True)), plan
