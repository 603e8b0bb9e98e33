"""Pruning of manifests by a filter over the columns of a metadata table.

The manifest list has bounds for some columns of a metadata table of files, like the column bounds of a data file: a
manifest's content, spec and partition summaries are bounds of ``content``, ``spec_id`` and ``partition``.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.base import compute as pc
from icefield.catalog.inspection.source import MetadataSource
from icefield.expressions import (
    AlwaysTrue,
    BooleanExpression,
    FieldSummaries,
    PartitionSummaries,
    bound_leaves,
    manifests_may_match,
)
from icefield.manifest import ManifestList
from icefield.manifest import manifest_list as listed
from icefield.scan.planning.pruning import Mask
from icefield.types.values import from_bytes_array

Rows = npt.NDArray[Any]

_SEQUENCES: Final = ("sequence_number", "file_sequence_number")


class ManifestPruning:
    """Prunes manifest lists by a filter that is bound to the columns of a metadata table."""

    def __init__(self, source: MetadataSource, row_filter: BooleanExpression) -> None:
        self._source = source
        self._filter = row_filter
        # The columns of a file are inside `data_file` in the tables of entries.
        self._leaves = [
            (leaf.field.field_id, leaf.path[1:] if leaf.path[0] == "data_file" else leaf.path)
            for leaf in bound_leaves(row_filter)
        ]

    def may_match(self, manifests: ManifestList, kept: Mask) -> Mask:
        """The kept manifests that may list a matching entry."""
        if isinstance(self._filter, AlwaysTrue):
            return kept
        specs = manifests.integers(listed.SPEC_ID)
        for spec_id in np.unique(specs[kept]).tolist():
            rows = np.flatnonzero(kept & (specs == spec_id))
            known = {}
            for number, path in self._leaves:
                found = self._known(manifests, rows, spec_id, path)
                if found is not None:
                    known[number] = found
            kept[rows] = manifests_may_match(self._filter, PartitionSummaries(len(rows), known))
        return kept

    def _known(self, manifests: ManifestList, rows: Rows, spec_id: int, path: tuple[str, ...]) -> FieldSummaries | None:
        """The bounds of one column from the manifest list; None if it has none."""
        match path:
            case ("content",):
                # A manifest lists data files, or delete files of both kinds.
                lower = manifests.integers(listed.CONTENT)[rows].astype(np.int32)
                return bounded(pa.array(lower), pa.array(2 * lower))
            case ("spec_id",):
                value = pa.array(np.full(len(rows), spec_id, np.int32))
                return bounded(value, value)
            case ("partition", name):
                return self._partition(manifests, rows, spec_id, name)
            case (name,) if name in _SEQUENCES:
                # No lower bound: the minimum of a manifest only covers its live entries.
                return bounded(None, manifests.columns[listed.SEQUENCE].take(pa.array(rows)))
        return None

    def _partition(self, manifests: ManifestList, rows: Rows, spec_id: int, name: str) -> FieldSummaries | None:
        place = self._source.united.place(spec_id, name)
        if place is None:
            return FieldSummaries(contains_null=pa.array(np.ones(len(rows), np.bool_)))
        if not self._source.metadata.spec_by_id(spec_id).fields[place].is_known:
            return None  # the values of an unknown transform may have any type
        null, nan, lower, upper = (
            manifests.summary_column(place, kind, rows)
            for kind in (listed.CONTAINS_NULL, listed.CONTAINS_NAN, listed.LOWER, listed.UPPER)
        )
        kind = self._source.united.kind(name)
        has_bounds = np.asarray(lower.is_valid()) | np.asarray(upper.is_valid())
        return FieldSummaries(null, nan, from_bytes_array(kind, lower), from_bytes_array(kind, upper), has_bounds)


def bounded(lower: pa.Array | None, upper: pa.Array | None) -> FieldSummaries:
    """A column that holds values between two others, and no null."""
    some = lower if lower is not None else upper
    assert some is not None
    size = len(some)
    never = pa.array(np.zeros(size, np.bool_))
    return FieldSummaries(never, never, lower, upper, np.ones(size, np.bool_))


def constants(values: pa.Array) -> FieldSummaries:
    """A column that holds one value throughout, which may be null or NaN."""
    null = values.is_null()
    nan = pc.fill_null(pc.is_nan(values), False) if pa.types.is_floating(values.type) else pc.and_(null, False)
    bound = pc.if_else(nan, pa.scalar(None, values.type), values) if pc.any(nan).as_py() else values
    return FieldSummaries(null, nan, bound, bound)
