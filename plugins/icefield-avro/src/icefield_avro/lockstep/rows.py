"""Which rows of the output a vector of values belongs to, and the making of Arrow arrays from such vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield_avro.arrays import Vector, bitmap

# Arrow's own pool hands the pages of each array back at once; malloc keeps them, which is three times as fast.
_POOL = pa.system_memory_pool()

Finish = Callable[[], pa.Array]
"""Makes the array of a column: called once the walk that found the column's places is proved."""


@dataclass(frozen=True, slots=True)
class Rows:
    """``count`` rows, of which a vector holds those at ``index`` (None: all, in order); the others are null."""

    count: int
    index: Vector | None = None

    def subset(self, index: Vector) -> Rows:
        """The rows at ``index`` among these."""
        return Rows(self.count, index if self.index is None else self.index[index])

    def valid(self, present: Vector | None) -> Vector | None:
        """Which of all rows have a value, given which of the vector's entries have one."""
        if self.index is None:
            return present
        valid = np.zeros(self.count, bool)
        valid[self.index] = True if present is None else present
        return valid

    def spread(self, values: Vector) -> Vector:
        """A value for each row, zero where the vector holds none."""
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


def from_slices(
    arrow: pa.DataType, raw: bytes, start: Vector, length: Vector, rows: Rows, present: Vector | None
) -> pa.Array:
    """An array of binaries or strings, copied from slices of ``raw`` that lie in ascending order.

    Raises ``ArrowInvalid`` for a string that is not UTF-8.
    """
    count = len(start)
    edges = np.empty(2 * count, np.int32)
    edges[0::2] = start
    np.add(start, length, out=edges[1::2], casting="unsafe")
    # every second value of this array is the gap between two wanted ones
    gaps = pa.Array.from_buffers(pa.binary(), max(2 * count - 1, 0), [None, pa.py_buffer(edges), pa.py_buffer(raw)])
    wanted = pa.array(np.arange(0, 2 * count - 1, 2, dtype=np.int32))
    taken = pc.take(gaps, wanted, boundscheck=False, memory_pool=_POOL)
    if not arrow.equals(pa.binary()):
        taken = taken.cast(arrow)
    valid = rows.valid(present)
    if valid is None:
        return taken
    _, offsets, data = taken.buffers()
    if rows.index is not None:
        lengths = rows.spread(length)
        starts = np.zeros(rows.count + 1, np.int32)
        np.cumsum(lengths, out=starts[1:])
        offsets = pa.py_buffer(starts)
    return pa.Array.from_buffers(arrow, rows.count, [bitmap(valid), offsets, data])


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
    """What lies below lists or maps that are all empty."""
    if pa.types.is_map(arrow):
        return pa.array([], pa.struct([arrow.key_field, arrow.item_field]))
    return pa.array([], arrow.value_type)


def from_children(arrow: pa.DataType, children: list[pa.Array], rows: Rows) -> pa.Array:
    """An array of structs."""
    return pa.Array.from_buffers(arrow, rows.count, [bitmap(rows.valid(None))], children=children)
