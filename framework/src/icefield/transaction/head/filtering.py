"""Applies a filter on rows to the files of a head: none, some or all rows of a file match."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from icefield.errors import ValidationFailed
from icefield.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression, bind, strict_metrics
from icefield.manifest import schemas as f
from icefield.manifest.columns import PLAN_COLUMNS
from icefield.manifest.decoded import ManifestRequest
from icefield.manifest.entries import ManifestEntries
from icefield.manifest.manifest_file import ManifestContent, ManifestFile
from icefield.scan.planning.manifest_filter import ManifestFilter
from icefield.scan.planning.pruning import EntryGroup, files_that_may_match, needed_statistics
from icefield.transaction.head.branch_head import Head, Mask


@dataclass(frozen=True, slots=True)
class Matches:
    """The entries of one manifest that a filter concerns; the masks ``some`` and ``whole`` do not overlap."""

    position: int
    entries: ManifestEntries
    some: Mask
    whole: Mask


class RowFilter:
    """A filter, bound to the current schema of a head. Bound once; projected once for each spec."""

    def __init__(self, head: Head, row_filter: BooleanExpression, case_sensitive: bool = True) -> None:
        self._head = head
        schema = head.metadata.schema()
        self.bound = bind(schema, row_filter, case_sensitive)
        self._filter = ManifestFilter(head.metadata, head.io, schema, self.bound)
        self._statistics = needed_statistics(self.bound)

    def matches(self) -> Iterator[Matches]:
        """The manifests with matching files, and masks of these files."""
        for position, entries, some in self.possible():
            whole = some & self._all_match(entries)
            yield Matches(position, entries, some & ~whole, whole)

    def possible(self) -> Iterator[tuple[int, ManifestEntries, Mask]]:
        """The manifests, by position, with files that may hold matching rows, and a mask of these files."""
        manifests = self._head.manifest_list
        if manifests is None or isinstance(self.bound, AlwaysFalse):
            return
        chosen = self._filter.choose(manifests, ManifestContent.DATA)
        request = ManifestRequest(PLAN_COLUMNS, self._statistics)
        found = self._filter.matching(manifests.select(chosen, summaries=False), self.bound, request)
        for position, (entries, mask, _) in zip(chosen.tolist(), found, strict=True):
            some = np.ones(len(entries), bool) if mask is None else mask
            if some.any():
                yield position, entries, some

    def may_match(self, entries: ManifestEntries) -> Mask:
        """A mask of the files that may hold a matching row."""
        projected = self._filter.spec_plan(entries.spec_id).partition_filter
        return files_that_may_match(EntryGroup([entries], self._filter.types), projected, self.bound)

    def read(self, manifests: Sequence[ManifestFile]) -> Iterator[ManifestEntries]:
        """The entries of manifests, in their order, with the statistics that the filter needs."""
        return self._head.read(manifests, statistics=self._statistics)

    def _all_match(self, entries: ManifestEntries) -> Mask:
        """A mask of the files with matching rows only, as their partition and statistics together prove."""
        mask = np.zeros(len(entries), bool)
        groups, residuals = self._filter.spec_plan(entries.spec_id).residuals.partition_groups(entries.partition)
        statistics = EntryGroup([entries], self._filter.types)
        for number, residual in enumerate(residuals):
            if not isinstance(residual, AlwaysFalse):
                proven = isinstance(residual, AlwaysTrue) or strict_metrics(residual, statistics)
                mask |= (groups == number) & proven
        return mask


def whole_files(head: Head, row_filter: BooleanExpression, case_sensitive: bool) -> dict[int, Mask]:
    """The files in which all rows match, by position of their manifest.

    Raises ``ValidationFailed`` when only some rows of a file (may) match.
    """
    found: dict[int, Mask] = {}
    if isinstance(row_filter, AlwaysFalse):
        return found
    for match in RowFilter(head, row_filter, case_sensitive).matches():
        if match.some.any():
            path = match.entries.column(f.FILE_PATH).filter(pa.array(match.some))[0].as_py()
            raise ValidationFailed(
                f"cannot delete whole files where {row_filter}: only some rows of {path} may match; Table.delete "
                "rewrites such files",
                location=path,
            )
        found[match.position] = match.whole
    return found
