"""Strings and byte strings: copied from where they are on the buffer, without a Python object for each."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield_avro.arrays import Vector, bitmap
from icefield_avro.vectorized.byte_buffer import ByteBuffer
from icefield_avro.vectorized.rows import Rows

_NOT_ASCII: Final = 0x80

# Arrow's own pool returns the pages of each array to the system at once; malloc keeps them, which is three times as
# fast.
_POOL = pa.system_memory_pool()


def from_slices(
    arrow: pa.DataType, buffer: ByteBuffer, start: Vector, length: Vector, rows: Rows, present: Vector | None
) -> pa.Array:
    """An array of binaries or strings, copied from slices of the buffer that are in ascending order.

    Raises ``ArrowInvalid`` for a string that is not UTF-8.
    """
    is_string = not arrow.equals(pa.binary())
    taken = _taken(buffer, start, length)
    if is_string:
        taken = _as_string(taken, arrow)
    return _spread(taken, length, rows, present)


def from_parts(arrow: pa.DataType, parts: list[bytes], rows: Rows, present: Vector | None) -> pa.Array:
    """An array of binaries or strings. Raises ``ArrowInvalid`` for a string that is not UTF-8."""
    length = np.fromiter(map(len, parts), np.int64, len(parts))
    buffers = [None, _offsets(length), pa.py_buffer(b"".join(parts))]
    made = pa.Array.from_buffers(pa.binary(), len(parts), buffers)
    return _spread(made if arrow.equals(pa.binary()) else _as_string(made, arrow), length, rows, present)


def _spread(dense: pa.Array, length: Vector, rows: Rows, present: Vector | None) -> pa.Array:
    """An array for all rows, of which some have no value."""
    valid = rows.valid(present)
    if valid is None:
        return dense
    _, offsets, data = dense.buffers()
    if rows.index is not None:
        offsets = _offsets(rows.spread(length))
    return pa.Array.from_buffers(dense.type, rows.count, [bitmap(valid), offsets, data])


def _offsets(length: Vector) -> pa.Buffer:
    ends = np.zeros(len(length) + 1, np.int32)
    np.cumsum(length, out=ends[1:])
    return pa.py_buffer(ends)


def _as_string(taken: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Bytes as strings. A test for ASCII is much faster than a check of UTF-8 for each string."""
    _, offsets, data = taken.buffers()
    if data is not None and data.size and int(np.maximum.reduce(np.frombuffer(data, np.uint8))) >= _NOT_ASCII:
        taken.cast(arrow)  # raises for other bytes
    # Arrow's take may add a bitmap of validity, and maps refuse keys whose nulls are not counted.
    return pa.Array.from_buffers(arrow, len(taken), [None, offsets, data])


def items_from_slices(buffer: ByteBuffer, start: Vector, length: Vector) -> pa.Buffer:
    """The bytes of slices of the buffer one after another, as ``from_slices`` copies them."""
    return _taken(buffer, start, length).buffers()[2]


def _taken(buffer: ByteBuffer, start: Vector, length: Vector) -> pa.Array:
    """The slices by Arrow's ``take``: every second element of an array of the slices and the gaps between them."""
    count = len(start)
    edges = np.empty(2 * count, np.int32)
    edges[0::2] = start
    np.add(start, length, out=edges[1::2], casting="unsafe")
    both = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(edges), pa.py_buffer(buffer.raw)])
    # Not pa.array: it imports pandas where that is installed.
    every_second = pa.py_buffer(np.arange(0, 2 * count - 1, 2, dtype=np.int32))
    wanted = pa.Array.from_buffers(pa.int32(), count, [None, every_second])
    return pc.take(both, wanted, boundscheck=False, memory_pool=_POOL)
