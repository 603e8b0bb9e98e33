"""Vectors of values with the output rows that they belong to, and Arrow arrays made from such vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from icefield_avro.arrays import Vector, bitmap

Finish = Callable[[], pa.Array]
"""Makes the array of a column: called once the walk that found the column's places is proved."""


@dataclass(frozen=True, slots=True)
class Rows:
    """``count`` rows. A vector holds the values of the rows at ``index`` (None: all, in order); all others are null."""

    count: int
    index: Vector | None = None

    def subset(self, index: Vector) -> Rows:
        """The subset of these rows at ``index``."""
        return Rows(self.count, index if self.index is None else self.index[index])

    def valid(self, present: Vector | None) -> Vector | None:
        """The mask of all rows with a value, from the mask of the vector's entries with a value."""
        if self.index is None:
            return present
        valid = np.zeros(self.count, bool)
        valid[self.index] = True if present is None else present
        return valid

    def spread(self, values: Vector) -> Vector:
        """A value for each row; zero for rows without a value in the vector."""
        if self.index is None:
            return values
        out = np.zeros((self.count, *values.shape[1:]), values.dtype)
        out[self.index] = values
        return out


def from_values(arrow: pa.DataType, values: Vector, rows: Rows, present: Vector | None) -> pa.Array:
    """An array of fixed width from its values."""
    data = np.ascontiguousarray(rows.spread(values))
    buffers = [bitmap(rows.valid(present)), pa.py_buffer(data)]
    return pa.Array.from_buffers(arrow, rows.count, buffers)


def nulls(arrow: pa.DataType, rows: Rows) -> pa.Array:
    """An array without any value."""
    return pa.nulls(rows.count, arrow)


def from_items(arrow: pa.DataType, counts: Vector, rows: Rows, child: pa.Array) -> pa.Array:
    """An array of lists or maps from the number of items in each."""
    offsets = np.zeros(rows.count + 1, np.int32)
    np.cumsum(rows.spread(counts), out=offsets[1:])
    buffers = [bitmap(rows.valid(None)), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(arrow, rows.count, buffers, children=[child])


def no_items(arrow: pa.DataType) -> pa.Array:
    """Return the child array of lists or maps that are all empty."""
    if pa.types.is_map(arrow):
        return pa.nulls(0, pa.struct([arrow.key_field, arrow.item_field]))
    return pa.nulls(0, arrow.value_type)


def from_children(arrow: pa.DataType, children: list[pa.Array], rows: Rows) -> pa.Array:
    """An array of structs."""
    return pa.Array.from_buffers(arrow, rows.count, [bitmap(rows.valid(None))], children=children)
