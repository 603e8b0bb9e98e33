"""Strings and byte strings: copied from where they are on the buffer, without a Python object for each."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield_avro.arrays import FIRST_BYTES, Vector, bitmap
from icefield_avro.vectorized.byte_buffer import ByteBuffer
from icefield_avro.vectorized.rows import Rows

_FEW: Final = 2_000
_NOT_ASCII: Final = 0x80

# Arrow's own pool hands the pages of each array back at once; malloc keeps them, which is three times as fast.
_POOL = pa.system_memory_pool()


def from_slices(
    arrow: pa.DataType, buffer: ByteBuffer, start: Vector, length: Vector, rows: Rows, present: Vector | None
) -> pa.Array:
    """An array of binaries or strings, copied from slices of the buffer that are in ascending order.

    Raises ``ArrowInvalid`` for a string that is not UTF-8.
    """
    is_string = not arrow.equals(pa.binary())
    few = len(start) <= _FEW and int(length.max()) <= 8
    taken = _short(arrow, buffer, start, length, is_string) if few else None
    if taken is None:
        taken = _taken(buffer, start, length)
        if is_string:
            taken = _as_string(taken, arrow)
    valid = rows.valid(present)
    if valid is None:
        return taken
    _, offsets, data = taken.buffers()
    if rows.index is not None:
        starts = np.zeros(rows.count + 1, np.int32)
        np.cumsum(rows.spread(length), out=starts[1:])
        offsets = pa.py_buffer(starts)
    return pa.Array.from_buffers(arrow, rows.count, [bitmap(valid), offsets, data])


def _as_string(taken: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Bytes as strings. That all are ASCII is found much faster than that each is UTF-8."""
    _, offsets, data = taken.buffers()
    if data is not None and data.size and int(np.maximum.reduce(np.frombuffer(data, np.uint8))) >= _NOT_ASCII:
        return taken.cast(arrow)
    return pa.Array.from_buffers(arrow, len(taken), [None, offsets, data])


def items_from_slices(buffer: ByteBuffer, start: Vector, length: Vector) -> pa.Buffer:
    """The bytes of slices of the buffer one after another, as ``from_slices`` copies them."""
    return _taken(buffer, start, length).buffers()[2]


def _taken(buffer: ByteBuffer, start: Vector, length: Vector) -> pa.Array:
    """The slices by Arrow's take: of an array of them and of the gaps between them, every second one."""
    count = len(start)
    edges = np.empty(2 * count, np.int32)
    edges[0::2] = start
    np.add(start, length, out=edges[1::2], casting="unsafe")
    both = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(edges), pa.py_buffer(buffer.raw)])
    wanted = pa.array(np.arange(0, 2 * count - 1, 2, dtype=np.int32))
    return pc.take(both, wanted, boundscheck=False, memory_pool=_POOL)


def _short(arrow: pa.DataType, buffer: ByteBuffer, start: Vector, length: Vector, is_string: bool) -> pa.Array | None:
    """Slices of eight bytes at most, which one look at a word gives; None for a string that is not all ASCII."""
    first = FIRST_BYTES[length]
    word = buffer.words[start]
    if is_string and np.count_nonzero(word & (first << np.uint64(7))):
        return None
    ends = np.zeros(len(start) + 1, np.int32)
    np.cumsum(length, out=ends[1:])
    data = word.view(np.uint8)[first.view(bool)]
    return pa.Array.from_buffers(arrow, len(start), [None, pa.py_buffer(ends), pa.py_buffer(data)])
