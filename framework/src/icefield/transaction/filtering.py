"""What a filter on rows means for the files of a head: none, all, or some of a file's rows match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from icefield.errors import ValidationFailed
from icefield.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    BooleanExpression,
    Residuals,
    bind,
    evaluate,
    inclusive_metrics,
    inclusive_projection,
    strict_metrics,
)
from icefield.manifest import schemas as f
from icefield.manifest.data_file import EntryStatus
from icefield.manifest.entries import ManifestEntries
from icefield.manifest.manifest_file import ManifestContent, ManifestFile
from icefield.scan.pruning import EntryGroup, filter_types, manifests_that_may_match, needed_statistics
from icefield.transaction.branch_head import Head
from icefield.transaction.matching import Mask


@dataclass(frozen=True, slots=True)
class Matches:
    """The entries of one manifest that a filter concerns: ``some`` and ``whole`` are masks that do not overlap."""

    position: int
    entries: ManifestEntries
    some: Mask
    whole: Mask


class RowFilter:
    """A filter, bound to the current schema of a head. Bound once; projected once for each spec."""

    def __init__(self, head: Head, row_filter: BooleanExpression, case_sensitive: bool = True) -> None:
        self._head = head
        self.bound = bind(head.metadata.schema(), row_filter, case_sensitive)
        self._types = filter_types(self.bound)
        self._request = needed_statistics(self.bound)
        self._projected: dict[int, BooleanExpression] = {}
        self._residuals: dict[int, Residuals] = {}

    def matches(self) -> Iterator[Matches]:
        """The manifests that hold matching files, with these files."""
        if isinstance(self.bound, AlwaysFalse):
            return
        for position, manifest in self._manifests(ManifestContent.DATA):
            entries = self.read(manifest)
            some = self.may_match(entries) & (entries.status() != EntryStatus.DELETED)
            if some.any():
                whole = some & self._all_match(entries)
                yield Matches(position, entries, some & ~whole, whole)

    def may_match(self, entries: ManifestEntries) -> Mask:
        """Which files may hold a matching row."""
        mask = np.ones(len(entries), bool)
        if isinstance(self.bound, AlwaysTrue):
            return mask
        projected = self._inclusive(entries.spec_id)
        if not isinstance(projected, AlwaysTrue):
            mask = np.asarray(evaluate(projected, entries.partition))
        return mask & inclusive_metrics(self.bound, EntryGroup([entries], self._types)) if mask.any() else mask

    def read(self, manifest: ManifestFile) -> ManifestEntries:
        """The entries of a manifest with the statistics that the filter looks at."""
        return self._head.entries(manifest, statistics=self._request)

    def _all_match(self, entries: ManifestEntries) -> Mask:
        """Which files hold matching rows only: their partition and their statistics together prove it."""
        mask = np.zeros(len(entries), bool)
        groups, residuals = self._residual(entries.spec_id).partition_groups(entries.partition)
        statistics = EntryGroup([entries], self._types)
        for number, residual in enumerate(residuals):
            if not isinstance(residual, AlwaysFalse):
                proven = isinstance(residual, AlwaysTrue) or strict_metrics(residual, statistics)
                mask |= (groups == number) & proven
        return mask

    def _manifests(self, content: ManifestContent) -> list[tuple[int, ManifestFile]]:
        live = self._head.live(content)
        manifest_list = self._head.manifest_list
        if manifest_list is None:
            return []
        chosen: set[int] = set()
        for spec_id in {manifest.partition_spec_id for _, manifest in live}:
            rows = np.array([p for p, manifest in live if manifest.partition_spec_id == spec_id], np.int64)
            kind = self._head.partition_type(spec_id)
            chosen.update(rows[manifests_that_may_match(manifest_list, rows, kind, self._inclusive(spec_id))].tolist())
        return [(position, manifest) for position, manifest in live if position in chosen]

    def _inclusive(self, spec_id: int) -> BooleanExpression:
        if spec_id not in self._projected:
            schema = self._head.metadata.schema()
            self._projected[spec_id] = inclusive_projection(self._head.spec(spec_id), schema, self.bound)
        return self._projected[spec_id]

    def _residual(self, spec_id: int) -> Residuals:
        if spec_id not in self._residuals:
            schema = self._head.metadata.schema()
            self._residuals[spec_id] = Residuals(self._head.spec(spec_id), schema, self.bound)
        return self._residuals[spec_id]


def whole_files(head: Head, row_filter: BooleanExpression, case_sensitive: bool) -> dict[int, Mask]:
    """The files, by position of their manifest, all of whose rows match.

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


def merged_masks(*parts: Mapping[int, Mask]) -> dict[int, Mask]:
    """Entries of any of the masks, by position of their manifest."""
    merged: dict[int, Mask] = {}
    for part in parts:
        for position, mask in part.items():
            merged[position] = merged[position] | mask if position in merged else mask
    return merged
