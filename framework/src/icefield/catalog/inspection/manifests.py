"""The tables of manifests. Bounds in the column ``partition_summaries`` are readable strings, made in whole columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.base import compute as pc
from icefield.catalog.inspection.manifest_pruning import bounded
from icefield.catalog.inspection.metadata_scan import MetadataTable
from icefield.catalog.inspection.selection import MetadataSelection, without_keys
from icefield.catalog.inspection.source import MetadataSource
from icefield.expressions import PartitionSummaries, bound_leaves, manifests_may_match
from icefield.manifest import ManifestContent, ManifestList
from icefield.manifest import manifest_list as listed
from icefield.manifest.entries import values_of
from icefield.manifest.schemas import PARTITIONS
from icefield.metadata.snapshots import Snapshot
from icefield.partitioning.transforms import DayTransform, TemporalTransform, Transform
from icefield.scan.planning.manifest_filter import manifest_lists
from icefield.types import IcebergType, NestedField
from icefield.types.values import from_bytes_array

_PARTS: Final = (listed.CONTAINS_NULL, listed.CONTAINS_NAN, listed.LOWER, listed.UPPER)
_SUMMARY: Final = pa.struct(
    [
        pa.field("contains_null", pa.bool_(), nullable=False),
        pa.field("contains_nan", pa.bool_()),
        pa.field("lower_bound", pa.string()),
        pa.field("upper_bound", pa.string()),
    ]
)
"""The summary of one partition field."""

_YEARS_OF_FOUR_DIGITS: Final = (-719_162, 2_932_896)
"""The days from 0001-01-01 to 9999-12-31."""

Rows = npt.NDArray[Any]

_PLAIN: Final = {
    "content": listed.CONTENT,
    "path": listed.PATH,
    "length": listed.LENGTH,
    "partition_spec_id": listed.SPEC_ID,
    "added_snapshot_id": listed.ADDED_SNAPSHOT,
    "key_metadata": listed.KEY_METADATA,
}
_COUNTS: Final = {
    f"{name}_{kind}_files_count": (number, content)
    for kind, content in (("data", ManifestContent.DATA), ("delete", ManifestContent.DELETES))
    for name, number in (
        ("added", listed.ADDED_FILES),
        ("existing", listed.EXISTING_FILES),
        ("deleted", listed.DELETED_FILES),
    )
}
_REFERENCE: Final = "reference_snapshot_id"
_SCHEMA: Final = pa.schema(
    [
        pa.field("content", pa.int32(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("length", pa.int64(), nullable=False),
        pa.field("partition_spec_id", pa.int32(), nullable=False),
        pa.field("added_snapshot_id", pa.int64(), nullable=False),
        *(pa.field(name, pa.int32(), nullable=False) for name in _COUNTS),
        pa.field("partition_summaries", pa.list_(_SUMMARY), nullable=False),
    ]
)
_ALL_SCHEMA: Final = _SCHEMA.append(pa.field(_REFERENCE, pa.int64(), nullable=False)).append(
    pa.field("key_metadata", pa.binary())
)
_BATCH_ROWS: Final = 8192


class ManifestsTable(MetadataTable):
    """One row per manifest of each snapshot; with ``every``, with the id of the referring snapshot."""

    def __init__(self, source: MetadataSource, snapshots: Sequence[Snapshot], *, every: bool = False) -> None:
        self._source = source
        self._snapshots = snapshots
        self.schema = _ALL_SCHEMA if every else _SCHEMA

    def batches(self, selection: MetadataSelection) -> Iterator[pa.RecordBatch]:
        for snapshot, manifests in manifest_lists(self._source.metadata, self._source.io, self._referring(selection)):
            for start in range(0, len(manifests), _BATCH_ROWS):
                rows = np.arange(start, min(start + _BATCH_ROWS, len(manifests)))
                columns = [self._column(snapshot, manifests, rows, field.name) for field in selection.read]
                yield selection.of(pa.RecordBatch.from_arrays(columns, schema=selection.read))

    def _referring(self, selection: MetadataSelection) -> Sequence[Snapshot]:
        """The snapshots that may have matching manifests, by the filter on their ids."""
        numbers = {leaf.field.field_id for leaf in bound_leaves(selection.row_filter) if leaf.path == (_REFERENCE,)}
        if not numbers or not self._snapshots:
            return self._snapshots
        ids = pa.array([snapshot.snapshot_id for snapshot in self._snapshots], pa.int64())
        known = PartitionSummaries(len(ids), dict.fromkeys(numbers, bounded(ids, ids)))
        kept = manifests_may_match(selection.row_filter, known)
        return [snapshot for snapshot, one in zip(self._snapshots, kept.tolist(), strict=True) if one]

    def _column(self, snapshot: Snapshot, manifests: ManifestList, rows: npt.NDArray[Any], name: str) -> pa.Array:
        if name == _REFERENCE:
            return pa.array(np.full(len(rows), snapshot.snapshot_id, np.int64))
        if name == "partition_summaries":
            return _summary_lists(self._source, manifests, rows)
        if name == "key_metadata":
            return without_keys(manifests.columns[listed.KEY_METADATA].take(pa.array(rows)))
        if name in _PLAIN:
            return manifests.columns[_PLAIN[name]].take(pa.array(rows))
        number, content = _COUNTS[name]
        own = pa.array(manifests.integers(listed.CONTENT)[rows] == content)
        counts = pc.fill_null(manifests.columns[number].take(pa.array(rows)), 0)
        return pc.if_else(own, counts, pa.scalar(0, pa.int32()))


def _summary_lists(source: MetadataSource, manifests: ManifestList, rows: Rows) -> pa.Array:
    """The summaries of the manifests in these rows of the list, one for each field of their specs.

    A missing bound is null, as is an invalid value.
    """
    counts = _counts(manifests)[rows]
    specs = manifests.integers(listed.SPEC_ID)[rows]
    for spec_id in np.unique(specs).tolist():
        own = specs == spec_id
        counts[own] = np.minimum(counts[own], len(source.partition_type(spec_id).fields))
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    targets: list[Rows] = []
    found: list[list[pa.Array]] = [[] for _ in _PARTS]
    for spec_id in np.unique(specs).tolist():
        transforms = [field.transform for field in source.metadata.spec_by_id(spec_id).fields]
        for place, field in enumerate(source.partition_type(spec_id).fields):
            at = np.flatnonzero((specs == spec_id) & (counts > place))
            targets.append(offsets[at] + place)
            null, nan, lower, upper = (manifests.summary_column(place, kind, rows[at]) for kind in _PARTS)
            shown = _shown(pa.concat_arrays([lower, upper]), field, transforms[place])
            for into, part in zip(found, (null, nan, shown[: len(at)], shown[len(at) :]), strict=True):
                into.append(part)
    # Summaries were collected by spec and field; reorder them by manifest.
    order = pa.array(np.argsort(np.concatenate(targets))) if targets else pa.array([], pa.int64())
    columns = [
        pa.chunked_array(arrays, field.type).combine_chunks().take(order)
        for arrays, field in zip(found, _SUMMARY, strict=True)
    ]
    # Without the flag, the field may contain nulls.
    columns[0] = columns[0].fill_null(True)
    values = pa.StructArray.from_arrays(columns, fields=list(_SUMMARY))
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def _counts(manifests: ManifestList) -> Rows:
    """The number of summaries in the list, for each manifest."""
    lists = manifests.columns.get(PARTITIONS)
    if lists is None:
        return np.zeros(len(manifests), np.int64)
    counts: Rows = np.diff(lists.offsets.to_numpy()).astype(np.int64)
    counts[np.asarray(lists.is_null())] = 0
    return counts


def _shown(encoded: pa.Array, field: NestedField, transform: Transform) -> pa.Array:
    """Bounds as readable strings."""
    kind = field.field_type
    values = from_bytes_array(kind, encoded)
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), pa.string())
    if isinstance(transform, DayTransform):
        days = values.view(pa.int32())
        return _dates(days) if _are_common(days) else _one_by_one(encoded, kind, transform)
    if not isinstance(transform, TemporalTransform):
        if pa.types.is_string(values.type):
            return values
        if pa.types.is_integer(values.type):
            return values.cast(pa.string())
        if pa.types.is_date32(values.type) and _are_common(values.view(pa.int32())):
            return _dates(values.view(pa.int32()))
    return _one_by_one(encoded, kind, transform)


def _are_common(days: pa.Array) -> bool:
    """Whether Arrow writes these dates with four-digit years."""
    first, last = _YEARS_OF_FOUR_DIGITS
    extremes = pc.min_max(days).as_py()
    return extremes["min"] is None or (first <= extremes["min"] and extremes["max"] <= last)


def _dates(days: pa.Array) -> pa.Array:
    return days.view(pa.date32()).cast(pa.string())


def _one_by_one(encoded: pa.Array, kind: IcebergType, transform: Transform) -> pa.Array:
    """Bounds as strings by the transform, computed once for each distinct value."""
    distinct = encoded.dictionary_encode()
    values = values_of(from_bytes_array(kind, distinct.dictionary))
    shown = [None if value is None else transform.to_display(kind, value) for value in values]
    return pa.array(shown, pa.string()).take(distinct.indices)
