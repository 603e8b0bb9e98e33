"""The statistics of stripes for the metrics evaluators, to prune stripes without rows of a filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from icefield.expressions import BooleanExpression, bound_leaves, inclusive_metrics
from icefield.toolkit import child_fields, field_id, to_arrow_type

from icefield_orc.picking import Pick, PickedColumns
from icefield_orc.schema import Node, TypeKind
from icefield_orc.statistics import ColumnStatistics, decode


def may_match(
    row_filter: BooleanExpression,
    selection: PickedColumns,
    columns: pa.Schema,
    rows: Sequence[int],
    statistics: Sequence[Sequence[bytes]],
) -> list[bool]:
    """For each stripe whether a row of it may match. ``rows`` are the stripes' numbers of rows."""
    nodes: dict[int, Node] = {}
    _gather(selection.root, list(columns), nodes)
    types = {leaf.field.field_id: to_arrow_type(leaf.field.field_type) for leaf in bound_leaves(row_filter)}
    return [bool(kept) for kept in inclusive_metrics(row_filter, StripeStatistics(rows, statistics, nodes, types))]


def _gather(pick: Pick, wanted: Sequence[pa.Field], nodes: dict[int, Node]) -> None:
    """Collect the columns with one value per row, by the ids of the request, which a name mapping may give."""
    for (_, part), field in zip(pick.parts, wanted, strict=True):
        number = field_id(field)
        if part.node.kind == TypeKind.STRUCT and not part.node.opaque:
            _gather(part, child_fields(field.type), nodes)
        elif number is not None and not part.node.children:
            nodes[number] = part.node


class StripeStatistics:
    """Statistics of some stripes as arrays, one item a stripe; unknown statistics are None, or null in an array.

    ``types`` gives, by field id, the Arrow type of the bounds: the table's, where a column was promoted.
    """

    def __init__(
        self,
        rows: Sequence[int],
        statistics: Sequence[Sequence[bytes]],
        nodes: Mapping[int, Node],
        types: Mapping[int, pa.DataType],
    ) -> None:
        self._rows = rows
        self._statistics = statistics
        self._nodes = nodes
        self._types = types
        self._decoded: dict[int, list[ColumnStatistics]] = {}

    @property
    def num_files(self) -> int:
        return len(self._rows)

    def record_count(self) -> pa.Array:
        return pa.array(self._rows, pa.int64())

    def value_count(self, field_id: int) -> pa.Array | None:
        return self.record_count() if field_id in self._nodes else None

    def null_count(self, field_id: int) -> pa.Array | None:
        stated = self._of(field_id)
        if stated is None:
            return None
        pairs = zip(self._rows, stated, strict=True)
        counts = [rows - one.values if one.values is not None and one.values <= rows else None for rows, one in pairs]
        return pa.array(counts, pa.int64())

    def nan_count(self, field_id: int) -> pa.Array | None:
        """ORC does not count NaN, but its statistics often prove that there is none."""
        stated = self._of(field_id)
        return None if stated is None else pa.array([0 if one.no_nan else None for one in stated], pa.int64())

    def lower(self, field_id: int) -> pa.Array | None:
        stated = self._of(field_id)
        return None if stated is None else self._bounds(field_id, [one.lower for one in stated])

    def upper(self, field_id: int) -> pa.Array | None:
        stated = self._of(field_id)
        return None if stated is None else self._bounds(field_id, [one.upper for one in stated])

    def _of(self, field_id: int) -> list[ColumnStatistics] | None:
        node = self._nodes.get(field_id)
        if node is None:
            return None
        if field_id not in self._decoded:
            self._decoded[field_id] = [
                decode(columns[node.column], node) if node.column < len(columns) else ColumnStatistics()
                for columns in self._statistics
            ]
        return self._decoded[field_id]

    def _bounds(self, field_id: int, values: list[object]) -> pa.Array | None:
        held, wanted = self._nodes[field_id].data_type, self._types.get(field_id)
        try:
            bounds = pa.array(values, held)
            return bounds if wanted is None or held == wanted else bounds.cast(wanted)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            return None
