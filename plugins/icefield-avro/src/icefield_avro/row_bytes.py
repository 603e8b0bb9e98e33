"""Assembly of rows from columns of parts: short values as matrices of bytes, long ones as Arrow binaries.

``RowBytes`` takes the parts of all rows from left to right. Neighbouring short parts become one matrix with a mask of
valid bytes, and one selection returns the bytes of all rows. Arrow's join then inserts them between the long parts. No
Python object is created for a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield_avro.arrays import FIRST_BYTES, Vector, bitmap

_U8: Final = np.uint8
_U64: Final = np.uint64

# the continuation bits of an integer of n bytes
_MORE: Final = np.array([0, *(int.from_bytes(b"\x80" * min(n - 1, 8), "little") for n in range(1, 11))], "<u8")


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """The bytes of records one after another; record i is from ``starts[i]`` to ``starts[i + 1]``."""

    starts: Vector
    data: pa.Buffer


class RowBytes:
    """Collects the parts of ``rows`` rows."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self._short: list[tuple[Vector, Vector | int]] = []
        self._parts: list[pa.Array] = []

    def add_matrix(self, matrix: Vector, present: Vector | None) -> None:
        """Add a row of ``matrix`` (bytes) to each row that is ``present`` (None: to all rows)."""
        width = matrix.shape[1]
        if width:
            self._short.append((matrix, width if present is None else present.view(_U8) * _U8(min(width, 8))))

    def add_words(self, words: Vector, lengths: Vector) -> None:
        """Add the first ``lengths`` (0 to 8) bytes of each word, in little-endian order."""
        width = int(lengths.max(initial=0))
        if width:
            self._short.append((words.view(_U8).reshape(self.rows, 8)[:, :width], lengths))

    def add_varints(self, numbers: Vector, present: Vector | None) -> None:
        """The numbers (int64) as Avro writes them."""
        zigzag = ((numbers << 1) ^ (numbers >> 63)).view(_U64)
        if present is not None:
            zigzag = zigzag * present
        top = int(zigzag.max(initial=0))
        lengths = np.ones(self.rows, _U8)
        bound = 0x80
        while bound <= top:
            lengths += zigzag >= _U64(bound)
            bound <<= 7
        low = np.minimum(lengths, _U8(8)) if top >> 56 else lengths
        words = _spread(zigzag, top) | _MORE[lengths] if top >= 0x80 else zigzag
        self.add_words(words, low if present is None else low * present)
        if top >> 56:
            rest = zigzag >> _U64(56)
            rest = (rest & _U64(0x7F)) | ((rest & _U64(0x80)) << _U64(1)) | (rest & _U64(0x80))
            self.add_words(rest, np.where(lengths > 8, lengths - _U8(8), _U8(0)))

    def add_binary(self, starts: Vector, data: Any, present: Vector | None) -> None:
        """The bytes of ``data`` from ``starts[i]`` to ``starts[i + 1]`` for each row, where ``present``."""
        self._close_short()
        buffers = [bitmap(present), pa.py_buffer(starts.astype(np.int32, copy=False)), pa.py_buffer(data)]
        self._parts.append(pa.Array.from_buffers(pa.binary(), self.rows, buffers))

    def _close_short(self) -> None:
        if self._short:
            matrix, mask, sizes = self._matrix()
            self._short = []
            starts = np.zeros(self.rows + 1, np.int32)
            np.cumsum(sizes, out=starts[1:])
            data = matrix.ravel() if mask is None else matrix.ravel()[mask.ravel()]
            buffers = [None, pa.py_buffer(starts), pa.py_buffer(data)]
            self._parts.append(pa.Array.from_buffers(pa.binary(), self.rows, buffers))

    def _matrix(self) -> tuple[Vector, Vector | None, Vector | int]:
        """Return all short parts side by side, the mask of their valid bytes, and the number of these in each row."""
        width = sum(part.shape[1] for part, _ in self._short)
        matrix = np.empty((self.rows, width), _U8)
        masked = any(not isinstance(length, int) for _, length in self._short)
        mask = np.ones((self.rows, width), bool) if masked else None
        sizes: Any = np.zeros(self.rows, np.int32) if masked else np.full(self.rows, width, np.int32)
        at = 0
        for part, length in self._short:
            end = at + part.shape[1]
            matrix[:, at:end] = part
            if mask is not None:
                if isinstance(length, int):
                    sizes += length
                else:
                    sizes += _mask(mask[:, at:end], length)
            at = end
        return matrix, mask, sizes

    def finish(self) -> tuple[Vector, pa.Buffer]:
        """Where each row starts, with the end of the last (int32), and the bytes of all rows."""
        self._close_short()
        if not self._parts:
            return np.zeros(self.rows + 1, np.int32), pa.py_buffer(b"")
        if len(self._parts) == 1 and self._parts[0].null_count == 0:
            whole = self._parts[0]
        else:
            whole = pc.binary_join_element_wise(*self._parts, b"", null_handling="replace", null_replacement=b"")
        _, starts, data = whole.buffers()
        return np.frombuffer(starts, np.int32)[: self.rows + 1], data if data is not None else pa.py_buffer(b"")


def _mask(mask: Vector, length: Vector) -> Vector:
    """Mark the first ``length`` bytes of each row; a wide matrix counts whole or not at all."""
    width = mask.shape[1]
    if width > 8:
        mask[:] = (length > 0)[:, None]
        return np.where(length > 0, np.int32(width), np.int32(0))
    mask[:] = FIRST_BYTES[length].view(bool).reshape(len(length), 8)[:, :width]
    return length


def _spread(bits: Vector, top: int) -> Vector:
    """Spread the lowest 56 bits over the bytes, seven bits in each."""
    words = bits
    if top >> 28:
        words = (words & _U64(0x0FFFFFFF)) | ((words & _U64(0x00FFFFFFF0000000)) << _U64(4))
    if top >> 14:
        words = (words & _U64(0x00003FFF00003FFF)) | ((words & _U64(0x0FFFC0000FFFC000)) << _U64(2))
    return (words & _U64(0x007F007F007F007F)) | ((words & _U64(0x3F803F803F803F80)) << _U64(1))
