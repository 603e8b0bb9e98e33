"""Bounds of strings and bytes from the footer: pyarrow compares every value for them anyway, which takes long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from icefield.toolkit import Metrics
from icefield.types import BinaryType, StringType

from icefield_parquet.writing.layout import FileLayout

_LONGEST: Final = 1024
"""The footer provides the bounds of row groups with values up to this length; pyarrow omits bounds above 4 KiB."""


_FEW_ROWS: Final = 16_384
"""For fewer rows, computing the bounds is as fast as checking whether the footer will have them."""


@dataclass(slots=True)
class _StringColumn:
    """A top-level column of strings or bytes: where its chunk is, and the row groups with bounds in the footer."""

    field_id: int
    chunk: int
    is_string: bool
    groups: list[int] = field(default_factory=list)


class StringBounds:
    """Follows the row groups of one file as they are written, except the leaves ``omitted``, by field id.

    ``write_statistics`` is pyarrow's argument.
    """

    def __init__(self, layout: FileLayout, write_statistics: bool | Sequence[str], omitted: frozenset[int]) -> None:
        self._layout, self._write_statistics, self._omitted = layout, write_statistics, omitted
        self._columns: dict[int, _StringColumn] | None = None
        self._groups = 0

    def stated_by_footer(self, table: pa.Table, groups: int) -> frozenset[int]:
        """Return the positions of columns with bounds in the footer for the next row groups, which hold this table."""
        first, self._groups = self._groups, self._groups + groups
        if table.num_rows < _FEW_ROWS:
            return frozenset()
        if self._columns is None:
            columns = _columns_of(self._layout, self._write_statistics)
            self._columns = {at: each for at, each in columns.items() if each.field_id not in self._omitted}
        stated = []
        for position, column in self._columns.items():
            longest = pc.max(pc.binary_length(table.column(position))).as_py()
            if longest is not None and longest <= _LONGEST:
                column.groups.extend(range(first, self._groups))
                stated.append(position)
        return frozenset(stated)

    def add_to(self, metrics: Metrics, footer: Any) -> None:
        """Widen the bounds by the statistics in the footer of the finished file; drop bounds that it lacks."""
        for column in (self._columns or {}).values():
            chunks = [footer.row_group(group).column(column.chunk) for group in column.groups]
            if not all(_states_all(each) for each in chunks):
                metrics.lower_bounds.pop(column.field_id, None)
                metrics.upper_bounds.pop(column.field_id, None)
                continue
            stated = [each.statistics for each in chunks if each.statistics.has_min_max]
            lows, highs = [each.min_raw for each in stated], [each.max_raw for each in stated]
            if column.is_string:
                lows, highs = [low.decode() for low in lows], [high.decode() for high in highs]
            _join(metrics.lower_bounds, column.field_id, lows, min)
            _join(metrics.upper_bounds, column.field_id, highs, max)


def _states_all(chunk: Any) -> bool:
    statistics = chunk.statistics
    return statistics is not None and (statistics.has_min_max or statistics.null_count == chunk.num_values)


def _join(bounds: dict[int, Any], field_id: int, values: list[Any], choose: Callable[[list[Any]], Any]) -> None:
    if field_id in bounds:
        values.append(bounds[field_id])
    if values:
        bounds[field_id] = choose(values)


def _columns_of(layout: FileLayout, write_statistics: bool | Sequence[str]) -> dict[int, _StringColumn]:
    """The top-level columns of strings and bytes with statistics, by position."""
    chunks = {id_: chunk for chunk, id_ in enumerate(layout.ids)}
    found: dict[int, _StringColumn] = {}
    named = frozenset(() if isinstance(write_statistics, bool) else write_statistics)
    for position, each in enumerate(layout.schema.fields):
        has_statistics = write_statistics if isinstance(write_statistics, bool) else each.name in named
        if has_statistics and isinstance(each.field_type, StringType | BinaryType):
            is_string = isinstance(each.field_type, StringType)
            found[position] = _StringColumn(each.field_id, chunks[each.field_id], is_string)
    return found
