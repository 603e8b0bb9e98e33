"""Keys of a merge's source: readers of the table leave out rows that cannot match any of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MOST_KEYS: Final = 1 << 21
"""The most keys that are sent to the readers."""

KEYS: Final = "keys binary"
"""The column of the tasks' reports on the keys of a source."""

_TABLE: Final = 1 << 26
"""The widest range of whole numbers that is looked up in a table of bytes, one for each."""


@dataclass
class KeyFilter:
    """The values that a column must have for a row to match a row of the source. Null matches nothing."""

    column: str
    values: pa.Array
    _table: Any = field(default=None, repr=False)

    def mask(self, batch: pa.RecordBatch) -> pa.Array:
        """The mask of the rows that may match a key. Its column has the type of the values."""
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
        return {"column": self.column, "values": self.values, "_table": None}


class Distinct:
    """The function for ``mapInArrow``: the distinct values of each column, or no values if there are too many."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held: list[pa.Array] | None = None
        for batch in batches:
            pieces = [pc.drop_null(pc.unique(column)) for column in batch.columns]
            held = pieces if held is None else [_joined(pair) for pair in zip(held, pieces, strict=True)]
            if any(len(each) > MOST_KEYS for each in held):
                held = [each.slice(0, MOST_KEYS + 1) for each in held]
        if held is None:
            return
        sink = pa.BufferOutputStream()
        # One row with a list for each column: their lengths differ.
        lists = [pa.ListArray.from_arrays(pa.array([0, len(each)], pa.int32()), each) for each in held]
        rows = pa.table(lists, names=[f"c{at}" for at in range(len(lists))])
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        yield pa.RecordBatch.from_pydict({"keys": pa.array([sink.getvalue().to_pybytes()], pa.binary())})

    def __repr__(self) -> str:
        return "icefield"


def _joined(pair: tuple[pa.Array, pa.Array]) -> pa.Array:
    return pc.unique(pa.concat_arrays(list(pair)))
