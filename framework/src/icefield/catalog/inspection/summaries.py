"""The column ``partition_summaries`` of the tables of manifests: readable bounds, in whole columns."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefield.catalog.inspection.source import MetadataSource
from icefield.manifest import ManifestList
from icefield.manifest.entries import values_of
from icefield.manifest.manifest_list import CONTAINS_NAN, CONTAINS_NULL, LOWER, SPEC_ID, UPPER
from icefield.manifest.schemas import PARTITIONS
from icefield.partitioning.transforms import Transform
from icefield.partitioning.transforms.temporal import DayTransform, TemporalTransform
from icefield.types import IcebergType, NestedField
from icefield.types.values import from_bytes_array

_PARTS: Final = (CONTAINS_NULL, CONTAINS_NAN, LOWER, UPPER)
_TYPE: Final = pa.struct(
    [
        pa.field("contains_null", pa.bool_(), nullable=False),
        pa.field("contains_nan", pa.bool_()),
        pa.field("lower_bound", pa.string()),
        pa.field("upper_bound", pa.string()),
    ]
)
_YEARS_OF_FOUR_DIGITS: Final = (-719_162, 2_932_896)
"""The days from 0001-01-01 to 9999-12-31."""

Rows = npt.NDArray[Any]


def summary_type() -> pa.StructType:
    """The summary of one partition field."""
    return _TYPE


def summary_lists(source: MetadataSource, manifests: ManifestList, rows: Rows) -> pa.Array:
    """The summaries of the manifests in these rows of the list, one for each field of their specs.

    A missing bound is null, as is an invalid value.
    """
    counts = _counts(manifests)[rows]
    specs = manifests.integers(SPEC_ID)[rows]
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
    columns = [_together(arrays, field.type).take(order) for arrays, field in zip(found, summary_type(), strict=True)]
    # Without the flag, the field may contain nulls.
    columns[0] = columns[0].fill_null(True)
    values = pa.StructArray.from_arrays(columns, fields=list(summary_type()))
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def _counts(manifests: ManifestList) -> Rows:
    """The number of summaries in the list, for each manifest."""
    lists = manifests.columns.get(PARTITIONS)
    if lists is None:
        return np.zeros(len(manifests), np.int64)
    counts: Rows = np.diff(lists.offsets.to_numpy()).astype(np.int64)
    counts[np.asarray(lists.is_null())] = 0
    return counts


def _together(arrays: list[pa.Array], kind: pa.DataType) -> pa.Array:
    return pa.concat_arrays(arrays) if arrays else pa.array([], kind)


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
