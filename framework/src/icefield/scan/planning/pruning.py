"""Pruning of manifests and files, as masks over whole columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.base import compute as pc
from icefield.base.concurrency import lazy
from icefield.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    BooleanExpression,
    BoundPredicate,
    PartitionSummaries,
    bound_leaves,
    evaluate,
    field_ids,
    inclusive_metrics,
    manifests_may_match,
    map_leaves,
)
from icefield.manifest import DataFileContent, ManifestEntries, ManifestList
from icefield.manifest import schemas as f
from icefield.manifest.manifest_list import CONTAINS_NAN, CONTAINS_NULL, LOWER, UPPER
from icefield.manifest.statistics import StatisticsRequest
from icefield.types import DoubleType, FloatType, IcebergType, StructType
from icefield.types.arrow.types import to_arrow_type
from icefield.types.values import from_bytes_array

Mask = npt.NDArray[np.bool_]


def needed_statistics(row_filter: BooleanExpression) -> StatisticsRequest:
    """The statistics for pruning by a bound filter: only the statistics of its fields."""
    return _request(_bounds_for(row_filter), frozenset(filter_types(row_filter)), row_filter)


def decisive_statistics(row_filter: BooleanExpression) -> tuple[StatisticsRequest, StatisticsRequest]:
    """``needed_statistics`` in two parts: statistics for every file, and statistics for files without bounds only.

    If a file has bounds for a field, its counts of values and nulls add nothing to a comparison. Without bounds all its
    values may be null, and only the counts can show it.
    """
    compared = _bounds_for(row_filter)
    counted = frozenset(leaf.field.field_id for leaf in bound_leaves(row_filter) if leaf.op.is_unary)
    return _request(compared, counted, row_filter), _request(frozenset(), compared - counted, AlwaysTrue())


def _request(bounds: frozenset[int], counts: frozenset[int], floats: BooleanExpression) -> StatisticsRequest:
    types = filter_types(floats).items()
    request = {
        f.VALUE_COUNTS: counts,
        f.NULL_VALUE_COUNTS: counts,
        f.NAN_VALUE_COUNTS: frozenset(id_ for id_, kind in types if isinstance(kind, FloatType | DoubleType)),
        f.LOWER_BOUNDS: bounds,
        f.UPPER_BOUNDS: bounds,
    }
    return {kind: ids for kind, ids in request.items() if ids}


def _bounds_for(row_filter: BooleanExpression) -> frozenset[int]:
    return frozenset(leaf.field.field_id for leaf in bound_leaves(row_filter) if not leaf.op.is_unary)


def filter_types(row_filter: BooleanExpression) -> dict[int, IcebergType]:
    """The fields of a bound filter, with their types."""
    return {leaf.field.field_id: leaf.field.field_type for leaf in bound_leaves(row_filter)}


class EntryGroup:
    """Entries of several manifests of one spec, filtered together with one vector operation for all of them."""

    def __init__(self, parts: Sequence[ManifestEntries], types: dict[int, IcebergType]) -> None:
        self._parts = parts
        self._types = types

    @lazy
    def num_files(self) -> int:
        """The number of entries."""
        return sum(part.num_rows for part in self._parts)

    @property
    def partition(self) -> pa.StructArray:
        """All partition tuples."""
        return _joined([part.partition for part in self._parts])

    def record_count(self) -> pa.Array:
        """The number of rows of each file; null if unknown.

        A count of 0 is unknown, because no reader has checked that the file is empty.
        """
        stated = _joined([part.column(f.RECORD_COUNT) for part in self._parts])
        known = pc.greater(stated, 0)
        return stated if known.true_count == len(stated) else pc.if_else(known, stated, pa.scalar(None, pa.int64()))

    def value_count(self, field_id: int) -> pa.Array | None:
        """The number of values of a field in each file."""
        return self._single(f.VALUE_COUNTS, field_id)

    def null_count(self, field_id: int) -> pa.Array | None:
        """The number of nulls of a field in each file."""
        return self._single(f.NULL_VALUE_COUNTS, field_id)

    def nan_count(self, field_id: int) -> pa.Array | None:
        """The number of NaN values of a field in each file."""
        return self._single(f.NAN_VALUE_COUNTS, field_id)

    def lower(self, field_id: int) -> pa.Array | None:
        """The decoded lower bounds of a field."""
        return self._bound(f.LOWER_BOUNDS, field_id)

    def upper(self, field_id: int) -> pa.Array | None:
        """The decoded upper bounds of a field."""
        return self._bound(f.UPPER_BOUNDS, field_id)

    def _single(self, kind: int, field_id: int) -> pa.Array | None:
        return self._gathered([part.statistic(kind, field_id) for part in self._parts], pa.int64())

    def _bound(self, kind: int, field_id: int) -> pa.Array | None:
        iceberg_type = self._types[field_id]
        decoded = [part.bound(kind, field_id, iceberg_type, from_bytes_array) for part in self._parts]
        return self._gathered(decoded, to_arrow_type(iceberg_type))

    def _gathered(self, arrays: list[pa.Array | None], kind: pa.DataType) -> pa.Array | None:
        if all(array is None for array in arrays):
            return None
        return _joined(
            [
                pa.nulls(part.num_rows, kind) if array is None else array
                for part, array in zip(self._parts, arrays, strict=True)
            ]
        )


def matching_rows(
    parts: Sequence[ManifestEntries],
    partition_filter: BooleanExpression,
    row_filter: BooleanExpression,
    types: dict[int, IcebergType],
    *,
    live: bool = True,
) -> Iterator[Mask | None]:
    """For each part, which entries may hold matching rows; None for all of them. Only ``live`` entries by default.

    ``partition_filter`` is bound to the spec's partition type, ``row_filter`` to the table's schema.
    """
    found: Mask | None = None
    if not isinstance(partition_filter, AlwaysTrue) or not isinstance(row_filter, AlwaysTrue):
        found = files_that_may_match(EntryGroup(parts, types), partition_filter, row_filter)
    start = 0
    for part in parts:
        mask = part.live() if live else None
        if found is not None:
            own = found[start : start + part.num_rows]
            mask = own if mask is None else own & mask
        start += part.num_rows
        yield None if mask is None or mask.all() else mask


def files_that_may_match(group: EntryGroup, partition_filter: BooleanExpression, row_filter: BooleanExpression) -> Mask:
    """Which files, live or not, may hold matching rows by their partition and their column metrics."""
    if isinstance(partition_filter, AlwaysFalse) or isinstance(row_filter, AlwaysFalse):
        return np.zeros(group.num_files, bool)
    mask = np.ones(group.num_files, bool)
    if not isinstance(partition_filter, AlwaysTrue):
        mask = np.asarray(evaluate(partition_filter, group.partition))
        if not mask.any():
            return mask
    if not isinstance(row_filter, AlwaysTrue):
        mask = mask & inclusive_metrics(row_filter, group)
    return mask


def _joined(arrays: list[Any]) -> Any:
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def equality_deletes_that_may_match(
    entries: ManifestEntries, row_filter: BooleanExpression, types: dict[int, IcebergType]
) -> Mask | None:
    """Which delete files a scan needs: all except equality deletes of rows that the filter rejects anyway.

    Only equality columns are tested: the other columns of a delete file do not describe the rows that it deletes. None
    means that all are needed.
    """
    if isinstance(row_filter, AlwaysTrue) or not len(entries):
        return None
    mask = np.ones(len(entries), bool)
    equality = np.asarray(entries.column(f.CONTENT)) == DataFileContent.EQUALITY_DELETES
    ids = entries.column(f.EQUALITY_IDS).to_pylist() if equality.any() else []
    for chosen in {tuple(ids[row] or ()) for row in np.flatnonzero(equality).tolist()}:
        narrowed = map_leaves(row_filter, _only(frozenset(chosen)))
        rows = equality & np.array([tuple(one or ()) == chosen for one in ids])
        mask[rows] = inclusive_metrics(narrowed, EntryGroup([entries], types))[rows]
    return None if mask.all() else mask


def _only(field_ids: frozenset[int]) -> Callable[[BoundPredicate], BooleanExpression]:
    return lambda leaf: leaf if leaf.field.field_id in field_ids else AlwaysTrue()


def manifests_that_may_match(
    manifests: ManifestList, rows: npt.NDArray[Any], partition_type: StructType, partition_filter: BooleanExpression
) -> Mask:
    """Which manifests in these rows of the list, all of one spec, may list a file in a matching partition."""
    if isinstance(partition_filter, AlwaysTrue):
        return np.ones(len(rows), bool)
    needed = field_ids(partition_filter)
    summaries = [
        tuple(
            manifests.summary_column(position, kind, rows) if field.field_id in needed else None
            for kind in (CONTAINS_NULL, CONTAINS_NAN, LOWER, UPPER)
        )
        for position, field in enumerate(partition_type.fields)
    ]
    decoded = PartitionSummaries.decode(partition_type, len(rows), summaries, only=needed)  # type: ignore[arg-type]
    return manifests_may_match(partition_filter, decoded)
