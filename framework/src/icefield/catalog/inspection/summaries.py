"""The column ``partition_summaries`` of the tables of manifests: bounds as people read them, in whole columns."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.catalog.inspection.source import Source
from icefield.manifest import ManifestList
from icefield.manifest.entries import values_of
from icefield.manifest.manifest_list import CONTAINS_NAN, CONTAINS_NULL, LOWER, SPEC_ID, UPPER
from icefield.manifest.schemas import PARTITIONS
from icefield.partitioning.transforms import Transform
from icefield.types import IcebergType, NestedField, StringType
from icefield.types.values import from_bytes_array

_PARTS: Final = {
    "contains_null": (CONTAINS_NULL, pa.bool_()),
    "contains_nan": (CONTAINS_NAN, pa.bool_()),
    "lower_bound": (LOWER, pa.string()),
    "upper_bound": (UPPER, pa.string()),
}

Rows = npt.NDArray[Any]


def summary_type() -> pa.StructType:
    """The summary of one partition field."""
    return pa.struct([pa.field(name, kind, name != "contains_null") for name, (_, kind) in _PARTS.items()])


def summary_lists(source: Source, manifests: ManifestList, rows: Rows) -> pa.Array:
    """The summaries of the manifests in these rows of the list, one for each field of their specs.

    A bound that is no value of its type is null, and so is one that the list does not have.
    """
    counts = _counts(manifests)[rows]
    specs = manifests.integers(SPEC_ID)[rows]
    for spec_id in np.unique(specs).tolist():
        own = specs == spec_id
        counts[own] = np.minimum(counts[own], len(source.partition_type(spec_id).fields))
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    targets: list[Rows] = []
    found: dict[str, list[pa.Array]] = {name: [] for name in _PARTS}
    for spec_id in np.unique(specs).tolist():
        transforms = [field.transform for field in source.metadata.spec_by_id(spec_id).fields]
        for place, field in enumerate(source.partition_type(spec_id).fields):
            at = np.flatnonzero((specs == spec_id) & (counts > place))
            targets.append(offsets[at] + place)
            for name, (kind, _) in _PARTS.items():
                part = manifests.summary_column(place, kind, rows[at])
                found[name].append(_shown(part, field, transforms[place]) if kind in (LOWER, UPPER) else part)
    # Each summary was found by spec and field, and belongs next to the others of its manifest.
    order = pa.array(np.argsort(np.concatenate(targets))) if targets else pa.array([], pa.int64())
    columns = [_together(found[name], kind).take(order) for name, (_, kind) in _PARTS.items()]
    # Nothing is known of nulls where the flag is missing, so they may be there.
    columns[0] = columns[0].fill_null(True)
    values = pa.StructArray.from_arrays(columns, fields=list(summary_type()))
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def _counts(manifests: ManifestList) -> Rows:
    """How many summaries the list has of each manifest."""
    lists = manifests.columns.get(PARTITIONS)
    if lists is None:
        return np.zeros(len(manifests), np.int64)
    counts: Rows = np.diff(lists.offsets.to_numpy()).astype(np.int64)
    counts[np.asarray(lists.is_null())] = 0
    return counts


def _together(arrays: list[pa.Array], kind: pa.DataType) -> pa.Array:
    return pa.concat_arrays(arrays) if arrays else pa.array([], kind)


def _shown(encoded: pa.Array, field: NestedField, transform: Transform) -> pa.Array:
    """Bounds as people read them, each distinct one made once."""
    kind = field.field_type
    values = from_bytes_array(kind, encoded)
    if isinstance(kind, StringType) and values.type == pa.string():
        return values
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), pa.string())
    distinct = encoded.dictionary_encode()
    strings = _strings(from_bytes_array(kind, distinct.dictionary), kind, transform)
    return strings.take(distinct.indices)


def _strings(values: pa.Array, kind: IcebergType, transform: Transform) -> pa.Array:
    shown = [None if value is None else transform.to_display(kind, value) for value in values_of(values)]
    return pa.array(shown, pa.string())
