"""Statistics from a footer: of row groups, to prune them, and of a whole file, for its metrics.

Only minima and maxima with a sort order that the format defines are used, and only for leaves outside lists and maps,
with one value a row. pyarrow withholds the statistics of writers that are known to get them wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from icefield.errors import IcefieldError
from icefield.toolkit import Metrics, from_arrow_scalar, from_arrow_type

from icefield_parquet.reading.bounds import decode_bounds
from icefield_parquet.schema import Leaf, leaves


class RowGroupStatistics:
    """The statistics of some row groups as arrays for the metrics evaluators, one item a row group.

    ``leaves_by_id`` are the leaves that a filter may name; ``types`` gives, by field id, the Arrow type of the bounds
    (the table's, where a column was promoted). ``ordered`` is as for ``decode_bounds``. Unknown statistics are None, or
    null in an array.
    """

    def __init__(
        self,
        footer: Any,
        groups: Sequence[int],
        leaves_by_id: Mapping[int, Leaf],
        types: Mapping[int, pa.DataType],
        ordered: bool,
    ) -> None:
        self._footer = footer
        self._groups = [footer.row_group(group) for group in groups]
        self._leaves = leaves_by_id
        self._types = types
        self._ordered = ordered
        self._bounds: dict[int, tuple[pa.Array, pa.Array] | None] = {}

    @property
    def num_files(self) -> int:
        return len(self._groups)

    def record_count(self) -> pa.Array:
        return pa.array([group.num_rows for group in self._groups], pa.int64())

    def value_count(self, field_id: int) -> pa.Array | None:
        return self.record_count() if self._leaf(field_id) else None

    def null_count(self, field_id: int) -> pa.Array | None:
        leaf = self._leaf(field_id)
        if leaf is None:
            return None
        return pa.array([_null_count(group, leaf) for group in self._groups], pa.int64())

    def nan_count(self, field_id: int) -> pa.Array | None:
        """Footers do not count NaN."""
        return None

    def lower(self, field_id: int) -> pa.Array | None:
        bounds = self._both(field_id)
        return bounds[0] if bounds else None

    def upper(self, field_id: int) -> pa.Array | None:
        bounds = self._both(field_id)
        return bounds[1] if bounds else None

    def _leaf(self, field_id: int) -> Leaf | None:
        leaf = self._leaves.get(field_id)
        return leaf if leaf is not None and not leaf.repeated else None

    def _both(self, field_id: int) -> tuple[pa.Array, pa.Array] | None:
        if field_id not in self._bounds:
            self._bounds[field_id] = self._decode(field_id)
        return self._bounds[field_id]

    def _decode(self, field_id: int) -> tuple[pa.Array, pa.Array] | None:
        leaf = self._leaf(field_id)
        if leaf is None:
            return None
        bounds = decode_bounds(self._footer, self._groups, leaf, ordered=self._ordered)
        wanted = self._types.get(field_id)
        if bounds is None or wanted is None or bounds[0].type == wanted:
            return bounds
        try:
            return bounds[0].cast(wanted), bounds[1].cast(wanted)
        except pa.ArrowException:
            return None


def file_metrics(footer: Any, file_schema: pa.Schema, *, ordered: bool) -> Metrics:
    """Counts, sizes and bounds of a whole file by field id, as far as the footer states them.

    ``ordered`` is as for ``decode_bounds``.
    """
    groups = [footer.row_group(position) for position in range(footer.num_row_groups)]
    sizes: dict[int, int] = {}
    values: dict[int, int] = {}
    nulls: dict[int, int] = {}
    lower: dict[int, Any] = {}
    upper: dict[int, Any] = {}
    for leaf in leaves(file_schema):
        field_id = leaf.field_id
        if field_id is None:
            continue
        sizes[field_id] = sum(group.column(leaf.index).total_compressed_size for group in groups)
        if leaf.repeated:
            continue
        values[field_id] = footer.num_rows
        counts = [_null_count(group, leaf) for group in groups]
        if None not in counts:
            nulls[field_id] = sum(filter(None, counts))
        bounds = _file_bounds(footer, groups, leaf, counts, ordered)
        if bounds is not None:
            lower[field_id], upper[field_id] = bounds
    return Metrics(footer.num_rows, sizes, values, nulls, lower_bounds=lower, upper_bounds=upper)


def _file_bounds(
    footer: Any, groups: list[Any], leaf: Leaf, nulls: list[int | None], ordered: bool
) -> tuple[Any, Any] | None:
    """The least and greatest value as internal values; None unless each row group with values states them."""
    with_values = [group for group, null in zip(groups, nulls, strict=True) if null is None or null < group.num_rows]
    bounds = decode_bounds(footer, with_values, leaf, ordered=ordered) if with_values else None
    if bounds is None or bounds[0].null_count or bounds[1].null_count:
        return None
    low, high = bounds[0].take(pc.sort_indices(bounds[0])), bounds[1].take(pc.sort_indices(bounds[1]))
    try:
        kind = from_arrow_type(leaf.field.type)
        return from_arrow_scalar(kind, low[0]), from_arrow_scalar(kind, high[-1])
    except (IcefieldError, pa.ArrowException):
        return None


def _null_count(group: Any, leaf: Leaf) -> int | None:
    statistics = group.column(leaf.index).statistics
    return statistics.null_count if statistics is not None and statistics.has_null_count else None
