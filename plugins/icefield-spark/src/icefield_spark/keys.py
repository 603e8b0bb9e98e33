"""Keys of a merge's source, by which readers of the table leave out the rows that cannot meet any of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield.expressions import AlwaysTrue, BooleanExpression

MOST_KEYS: Final = 1 << 21
"""The most keys that are sent to the readers."""

_TABLE: Final = 1 << 26
"""The widest range of whole numbers that is looked up in a table of bytes, one for each."""


@dataclass
class KeyFilter:
    """The values that a column must have for a row to meet a row of the source. Null meets nothing."""

    column: str
    values: pa.Array
    bounds: BooleanExpression = field(default_factory=AlwaysTrue)
    """What files must hold: the least and the greatest value of each column of the key, or few values."""
    _table: Any = field(default=None, repr=False)

    def mask(self, batch: pa.RecordBatch) -> pa.Array:
        """Which rows of a batch may meet one. Its column has the type of the values."""
        column = batch.column(self.column)
        if not pa.types.is_integer(column.type):
            return pc.is_in(column, value_set=self.values)
        low, table = self._lookup()
        if table is None:
            return pc.is_in(column, value_set=self.values.cast(column.type))
        place = np.asarray(pc.fill_null(column, 0).cast(pa.int64())) - low
        inside = (place >= 0) & (place < len(table))
        found = table[np.where(inside, place, 0)] & inside
        return pa.array(found & np.asarray(column.is_valid())) if column.null_count else pa.array(found)

    def _lookup(self) -> tuple[int, Any]:
        if self._table is None:
            values = np.asarray(self.values.cast(pa.int64()))
            low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
            table = None
            if high - low < _TABLE:
                table = np.zeros(high - low + 1, bool)
                table[values - low] = len(values) > 0
            self._table = (low, table)
        found: tuple[int, Any] = self._table
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {"column": self.column, "values": self.values, "bounds": AlwaysTrue(), "_table": None}
